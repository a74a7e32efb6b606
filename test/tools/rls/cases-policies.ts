import { type Case, LATER_ROLE, ROWS, replaceOwn, type Shown } from './support.js';

/** A row of nobody. */
const SHARED_ROW: Shown = [null, `insert into app.doc (body) values ('a')`];
const SHARED_ROW_FAILS: Shown = [null, `insert into app.doc (body) values ('a')`, '23502'];

export const POLICIES_CASES: readonly Case[] = [
  {
    code: 'RLS001',
    faulty: `set local role rls_owner; create table app.country (name text); grant select on app.country to rls_app;`,
    finds: ['RLS001 app.country'],
    sound: `set local role rls_owner; create table app.country (name text);`,
    shown: [
      [null, `insert into app.country values ('x'), ('y')`],
      ['rls_app', 'select * from app.country', 2],
    ],
  },
  {
    code: 'RLS002',
    faulty: 'drop policy own on app.doc',
    finds: ['RLS002 app.doc'],
    sound: '',
    shown: [ROWS, ['rls_app', 'select * from app.doc', 0], ['rls_app', 'delete from app.doc', 0]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS003',
    faulty: 'alter table app.doc disable row level security',
    finds: ['RLS003 app.doc'],
    sound: '',
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
  },
  {
    code: 'RLS010',
    faulty: `drop policy own on app.doc;
             create policy own on app.doc as restrictive to rls_app using (owner_name = (select current_user::text collate "default"));`,
    finds: ['RLS010 app.doc'],
    sound: '',
    shown: [ROWS, ['rls_app', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS011',
    faulty: replaceOwn('owner_name = (select current_user::text collate "default")', 'for update'),
    finds: ['RLS011 app.doc'],
    sound: `${replaceOwn('owner_name = (select current_user::text collate "default")', 'for update')}
            create policy own_read on app.doc for select to rls_app using (owner_name = (select current_user::text collate "default"));`,
    shown: [ROWS, ['rls_app', `update app.doc set body = 'x' where body is not null`, 0]],
    soundShown: [ROWS, ['rls_app', `update app.doc set body = 'x' where body is not null`, 1]],
  },
  {
    code: 'RLS011',
    faulty: `drop policy own on app.doc; create policy change on app.doc for update using (owner_name = 'rls_app');
             create policy read on app.doc for select to rls_app using (owner_name = 'rls_app');`,
    finds: ['RLS008 change on app.doc', 'RLS011 app.doc'],
    // No other role may update the table.
    sound: `drop policy own on app.doc; create policy change on app.doc for update using (owner_name = 'rls_app');
            create policy read on app.doc for select to rls_app using (owner_name = 'rls_app');
            revoke update on app.doc from rls_other;`,
    soundFinds: ['RLS008 change on app.doc'],
    shown: [ROWS, ['rls_other', `update app.doc set body = 'x' where body is not null`, 0]],
    soundShown: [ROWS, ['rls_app', `update app.doc set body = 'x' where body is not null`, 1]],
  },
  {
    code: 'RLS007',
    faulty: replaceOwn('true', 'for select'),
    finds: ['RLS007 own on app.doc'],
    sound: replaceOwn('owner_name = (select current_user::text collate "default")', 'for select'),
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS007',
    faulty: replaceOwn('1 = 1 or owner_name = current_user::text'),
    finds: ['RLS007 own on app.doc', 'RLS036 own on app.doc'],
    sound: replaceOwn('1 = 1 and owner_name = (select current_user::text collate "default")'),
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
  },
  {
    code: 'RLS008',
    faulty: `create policy all_roles on app.doc for select using (owner_name = 'rls_other')`,
    finds: ['RLS008 all_roles on app.doc'],
    sound: `create policy all_roles on app.doc for select to rls_app using (owner_name = 'rls_other')`,
    shown: [ROWS, LATER_ROLE, ['rls_later', 'select * from app.doc', 1]],
    soundShown: [ROWS, LATER_ROLE, ['rls_later', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS009',
    faulty: 'create policy open on app.doc to rls_app, rls_other using (true)',
    finds: ['RLS007 open on app.doc', 'RLS009 own on app.doc'],
    sound: `create policy open on app.doc to rls_app using (true);
            drop policy own on app.doc;
            create policy own on app.doc as restrictive to rls_app using (owner_name = (select current_user::text collate "default"));`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS007',
    // A restrictive policy about the session shows all rows to a session that meets it.
    faulty: `create policy open on app.doc to rls_app using (true); drop policy own on app.doc;
             create policy mfa on app.doc as restrictive to rls_app using ((select current_user) = 'rls_app');`,
    finds: ['RLS007 open on app.doc'],
    sound: `create policy open on app.doc for select to rls_app using (true); drop policy own on app.doc;
            create policy own on app.doc as restrictive for select using (owner_name = 'rls_app');`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS012',
    faulty: `drop policy own on app.doc;
             create policy own on app.doc to rls_app using (owner_name = (select current_user::text collate "default")) with check (true);`,
    finds: ['RLS012 own on app.doc'],
    sound: '',
    shown: [ROWS, ['rls_app', `update app.doc set owner_name = 'rls_other'`, 1]],
    soundShown: [ROWS, ['rls_app', `update app.doc set owner_name = 'rls_other'`, '42501']],
  },
  {
    code: 'RLS013',
    // Without USING, a policy of all commands lets rows be inserted only.
    faulty: `create policy add on app.doc to rls_app with check (true)`,
    finds: ['RLS013 add on app.doc'],
    sound: `create policy add on app.doc to rls_app with check (true);
            create policy limit_add on app.doc as restrictive for all to rls_app using (owner_name = 'rls_app');`,
    shown: [['rls_app', `insert into app.doc (owner_name) values ('rls_other')`, 1]],
    soundShown: [['rls_app', `insert into app.doc (owner_name) values ('rls_other')`, '42501']],
  },
  {
    code: 'RLS013',
    faulty: `create policy add on app.doc for insert to rls_app with check (true)`,
    finds: ['RLS013 add on app.doc'],
    sound: `create policy add on app.doc for insert to rls_app with check (owner_name = current_user::text)`,
    shown: [['rls_app', `insert into app.doc (owner_name) values ('rls_other')`, 1]],
    soundShown: [['rls_app', `insert into app.doc (owner_name) values ('rls_other')`, '42501']],
  },
  {
    code: 'RLS060',
    faulty: `${replaceOwn('owner_name = (select current_user::text collate "default")', 'for select')} create policy add on app.doc for insert to rls_app;`,
    finds: ['RLS060 add on app.doc'],
    sound: `create policy add on app.doc for insert to rls_app with check (owner_name = current_user::text);`,
    shown: [['rls_app', `insert into app.doc (owner_name) values ('rls_app')`, '42501']],
    soundShown: [['rls_app', `insert into app.doc (owner_name) values ('rls_app')`, 1]],
  },
  {
    code: 'RLS044',
    faulty: `alter table app.doc alter owner_name drop not null;
             ${replaceOwn('owner_name is null or owner_name = (select current_user::text collate "default")')}`,
    finds: ['RLS044 own on app.doc'],
    sound: `alter table app.doc alter owner_name drop not null;`,
    shown: [SHARED_ROW, ['rls_app', 'select * from app.doc', 1]],
    soundShown: [SHARED_ROW, ['rls_app', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS044',
    faulty: `alter table app.doc alter owner_name drop not null;
             ${replaceOwn('owner_name is null or owner_name = (select current_user::text collate "default")')}`,
    finds: ['RLS044 own on app.doc'],
    sound: replaceOwn('owner_name is null or owner_name = (select current_user::text collate "default")'),
    soundShown: [SHARED_ROW_FAILS],
  },
  {
    code: 'RLS048',
    faulty: replaceOwn(`(select current_user) = 'rls_app'`, 'for select'),
    finds: ['RLS048 own on app.doc'],
    sound: replaceOwn(`(select current_user) = 'rls_app' and owner_name = 'rls_app'`, 'for select'),
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS048',
    faulty: `${replaceOwn(`(select current_user) = 'rls_app'`).replace(/;$/, '')} with check (owner_name = 'rls_app');`,
    finds: ['RLS048 own on app.doc'],
    sound: `${replaceOwn(`(select current_user) = 'rls_app'`)}
            create policy only_own on app.doc as restrictive to rls_app using (owner_name = 'rls_app');`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS048',
    faulty: `create policy osl_others on app.doc to rls_app using ((select current_user) = 'rls_app')`,
    finds: ['RLS048 osl_others on app.doc'],
    // Of the gateway, which compares its policies itself.
    sound: `create schema osl_row_security;
            create policy osl_others on app.doc to rls_app using ((select current_user) = 'rls_app')`,
  },
  {
    code: 'RLS042',
    faulty:
      'revoke all on app.doc from rls_other; create policy late on app.doc to rls_other using (owner_name = body)',
    finds: ['RLS042 late on app.doc'],
    sound: 'create policy late on app.doc to rls_other using (owner_name = body)',
    shown: [ROWS, ['rls_other', 'select * from app.doc', '42501']],
  },
  {
    code: 'RLS043',
    faulty: `create policy own_again on app.doc to rls_other, rls_app using (owner_name = (select current_user::text collate "default"))`,
    finds: ['RLS043 own_again on app.doc'],
    sound: `create policy own_again on app.doc to rls_app using (owner_name = (select current_user::text collate "default"))`,
    shown: [[null, 'drop policy own on app.doc'], ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS032',
    faulty: replaceOwn(`owner_name = (select current_setting('app.owner'))`),
    finds: ['RLS032 own on app.doc', 'RLS034 own on app.doc'],
    sound: replaceOwn(`owner_name = (select current_setting('app.owner', true))`),
    soundFinds: ['RLS034 own on app.doc'],
    shown: [['rls_app', 'select * from app.doc', '42704']],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS033',
    faulty: replaceOwn(`id = (select current_setting('app.id', true)::uuid)`),
    finds: ['RLS033 own on app.doc', 'RLS034 own on app.doc'],
    sound: replaceOwn(`id = (select nullif(current_setting('app.id', true), '')::uuid)`),
    soundFinds: ['RLS034 own on app.doc'],
    shown: [
      ['rls_app', 'select * from app.doc', 0],
      [null, `select set_config('app.id', '', true)`],
      ['rls_app', 'select * from app.doc', '22P02'],
    ],
    soundShown: [
      [null, `select set_config('app.id', '', true)`],
      ['rls_app', 'select * from app.doc', 0],
    ],
  },
  {
    code: 'RLS034',
    faulty: `create function app.owner() returns text language sql stable as $$ select current_setting('app.owner', true) $$;
             ${replaceOwn('owner_name = (select app.owner())')}`,
    finds: ['RLS034 own on app.doc'],
    sound: '',
    shown: [
      ROWS,
      ['rls_app', 'select * from app.doc', 0],
      [
        'rls_app',
        `do $$ begin perform set_config('app.owner', 'rls_other', true);
         if (select count(*) from app.doc) <> 1 then raise 'no row'; end if; end $$`,
      ],
    ],
  },
  {
    code: 'RLS038',
    faulty: `create function app.jwt() returns jsonb language sql stable as $$ select '{"user_metadata": {"name": "rls_other"}}'::jsonb $$;
             ${replaceOwn(`owner_name = (select app.jwt() -> 'user_metadata' ->> 'name')`)}`,
    finds: ['RLS038 own on app.doc'],
    sound: `create function app.jwt() returns jsonb language sql stable as $$ select '{}'::jsonb $$;
            ${replaceOwn(`owner_name = (select app.jwt() -> 'app_metadata' ->> 'name')`)}`,
  },
  {
    code: 'RLS058',
    faulty: `create view app.long_text as select '${'x '.repeat(600_000)}' as words`,
    finds: ['RLS058 app.long_text'],
    sound: `create view app.long_text as select '${'x '.repeat(60)}' as words`,
  },
  {
    code: 'RLS058',
    faulty: replaceOwn(`owner_name = any ('{${'x,'.repeat(600_000)}x}'::text[])`),
    finds: ['RLS058 own on app.doc'],
    sound: replaceOwn(`owner_name = any ('{${'x,'.repeat(60)}x}'::text[])`),
  },
];
