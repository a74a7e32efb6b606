import { type Case, ROWS, replaceOwn } from './support.js';

const NUMBERED = `
  set local role rls_owner; create sequence app.doc_number;
  alter table app.doc add number bigint default nextval('app.doc_number');
  alter sequence app.doc_number owned by app.doc.number;
  reset role;`;
/** A trigger of one role that runs when another writes: it sees the row, and runs with the rights of the other. */
const TRIGGER_OF_OTHERS = `do $do$ begin
  create function pg_temp.spy() returns trigger language plpgsql
    as $$ begin raise exception '% wrote %', current_user, new.owner_name; end $$;
  create trigger spy before insert on app.doc for each row execute function pg_temp.spy();
  set local role postgres;
  insert into app.doc (owner_name) values ('rls_other'); end $do$`;
const NOTE = `
  set local role rls_owner;
  create table app.note (doc uuid constraint note_doc references app.doc (id));
  grant select, insert on app.note to rls_app;
  reset role;`;
const LOGGED = `
  create table app.log (owner_name text) partition by list (owner_name);
  create table app.log_part partition of app.log default; create index on app.log (owner_name);
  alter table app.log enable row level security;
  create policy own on app.log to rls_app using (owner_name = 'rls_app'); grant select on app.log to rls_app;`;

export const PRIVILEGES_CASES: readonly Case[] = [
  {
    code: 'RLS025',
    faulty: 'grant select (id) on app.doc to rls_app',
    finds: ['RLS025 app.doc'],
    sound: 'revoke select on app.doc from rls_app; grant select (id, owner_name) on app.doc to rls_app',
    shown: [ROWS, ['rls_app', 'select body from app.doc', 1]],
    soundShown: [['rls_app', 'select body from app.doc', '42501']],
  },
  {
    code: 'RLS026',
    faulty: `${NUMBERED} grant select on sequence app.doc_number to rls_app;`,
    finds: ['RLS026 app.doc_number'],
    sound: `${NUMBERED} grant usage on sequence app.doc_number to rls_app;`,
    shown: [ROWS, ['rls_app', 'select last_value from app.doc_number', /2/]],
    soundShown: [['rls_app', 'select last_value from app.doc_number', '42501']],
  },
  {
    code: 'RLS037',
    faulty: 'grant truncate on app.doc to rls_app',
    finds: ['RLS037 app.doc'],
    sound: '',
    shown: [
      ROWS,
      [
        'rls_app',
        `do $$ begin truncate app.doc; set local role postgres;
      if exists (select from app.doc) then raise 'rows'; end if; end $$`,
      ],
    ],
    soundShown: [['rls_app', 'truncate app.doc', '42501']],
  },
  {
    code: 'RLS053',
    faulty: 'grant trigger on app.doc to rls_app',
    finds: ['RLS053 app.doc'],
    sound: '',
    shown: [['rls_app', TRIGGER_OF_OTHERS, 'P0001']],
    soundShown: [['rls_app', TRIGGER_OF_OTHERS, '42501']],
  },
  {
    code: 'RLS047',
    faulty: 'alter default privileges for role rls_owner in schema app grant select on tables to rls_app',
    finds: ['RLS047 FOR ROLE rls_owner IN SCHEMA app TO rls_app'],
    sound: 'alter default privileges for role rls_owner in schema app grant usage on sequences to rls_app',
    shown: [
      [null, 'set local role rls_owner'],
      [null, 'create table app.late (id int)'],
      ['rls_app', 'select * from app.late', 0],
    ],
  },
  {
    code: 'RLS027',
    faulty: 'alter table app.doc add constraint doc_body unique (body)',
    finds: ['RLS027 doc_body on app.doc'],
    sound: 'alter table app.doc add constraint doc_body unique (owner_name, body)',
    shown: [
      ROWS,
      ['rls_app', `select * from app.doc where body = 'b'`, 0],
      ['rls_app', `insert into app.doc (owner_name, body) values ('rls_app', 'b')`, '23505'],
    ],
    soundShown: [ROWS, ['rls_app', `insert into app.doc (owner_name, body) values ('rls_app', 'b')`, 1]],
  },
  {
    code: 'RLS028',
    faulty: NOTE,
    finds: ['RLS001 app.note', 'RLS028 note_doc on app.note'],
    sound: `${NOTE} alter table app.note drop constraint note_doc;
            alter table app.doc add unique (owner_name, id); alter table app.note add owner_name text;
            alter table app.note add foreign key (owner_name, doc) references app.doc (owner_name, id);`,
    soundFinds: ['RLS001 app.note'],
    shown: [
      [
        null,
        `insert into app.doc (id, owner_name) values ('00000000-0000-0000-0000-000000000001', 'rls_other')`,
      ],
      ['rls_app', `insert into app.note values ('00000000-0000-0000-0000-000000000001')`, 1],
      ['rls_app', `insert into app.note values ('00000000-0000-0000-0000-000000000002')`, '23503'],
    ],
  },
  {
    code: 'RLS028',
    faulty: `${NOTE} ${replaceOwn(`id = (select '00000000-0000-0000-0000-000000000001'::uuid)`)}`,
    finds: ['RLS001 app.note', 'RLS028 note_doc on app.note'],
    sound: `${NOTE} alter table app.note enable row level security;
            create policy add on app.note for insert to rls_app
              with check (doc = any (array(select d.id from app.doc d)));`,
    soundFinds: ['RLS020 add on app.note'],
    soundShown: [
      [
        null,
        `insert into app.doc (id, owner_name) values ('00000000-0000-0000-0000-000000000001', 'rls_other')`,
      ],
      ['rls_app', `insert into app.note values ('00000000-0000-0000-0000-000000000001')`, '42501'],
      ['rls_app', `insert into app.note values ('00000000-0000-0000-0000-000000000002')`, '42501'],
    ],
  },
  {
    code: 'RLS041',
    faulty: 'create publication rls_all for table app.doc',
    finds: ['RLS041 rls_all'],
    sound: `create publication rls_all for table app.doc where (owner_name = 'rls_app')`,
  },
  {
    code: 'RLS041',
    // Published are the partitions, whose rows the policies of the whole hide.
    faulty: `${LOGGED} create publication rls_all for table app.log;`,
    finds: ['RLS041 rls_all'],
    sound: `${LOGGED} create publication rls_all for table app.log where (owner_name = 'rls_app')
              with (publish_via_partition_root);`,
    shown: [[null, `select tablename from pg_publication_tables where pubname = 'rls_all'`, /^log_part$/]],
  },
  {
    code: 'RLS059',
    faulty: 'revoke select on pg_catalog.pg_policy from public',
    readAs: 'rls_app',
    finds: ['RLS059 policies'],
    sound: '',
  },
];
