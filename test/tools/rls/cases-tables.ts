import { type Case, IS_MEMBER, MEMBER, ROWS, replaceOwn, type Shown } from './support.js';

/** Makes the caller a member, and counts what it then sees. */
const JOIN_AND_COUNT = `do $$ begin insert into app.member values ('rls_app', 'rls_other');
  if (select count(*) from app.doc where owner_name = 'rls_other') <> 1 then raise 'no row'; end if; end $$`;
const FOREIGN = `
  create foreign data wrapper rls_wrapper; create server rls_server foreign data wrapper rls_wrapper;
  create foreign table app.remote (id int) server rls_server; alter foreign table app.remote owner to rls_owner;`;
const PARTITION = `
  set local role rls_owner;
  create table app.whole (owner_name text) partition by list (owner_name);
  create table app.part partition of app.whole for values in ('rls_app', 'rls_other');
  create index on app.whole (owner_name);
  alter table app.whole enable row level security;
  create policy own on app.whole to rls_app using (owner_name = 'rls_app');
  grant select on app.whole to rls_app;
  reset role;`;
const PART_POLICIES = `
  grant select on app.part to rls_app; alter table app.part enable row level security; drop policy own on app.whole;
  create policy own on app.whole to rls_app
    using (exists (select from app.member m where m.owner_name = whole.owner_name));
  create policy own on app.part to rls_app
    using (exists (select from app.member m where m.owner_name = part.owner_name));`;
const PART_ROWS: readonly Shown[] = [[null, `insert into app.whole values ('rls_app'), ('rls_other')`]];

export const TABLES_CASES: readonly Case[] = [
  {
    code: 'RLS019',
    faulty: replaceOwn(
      'owner_name = any (array(select d.owner_name from app.doc d where d.body = current_user::text))',
    ),
    finds: ['RLS019 own on app.doc'],
    sound: '',
    shown: [['rls_app', 'select * from app.doc', '42P17']],
  },
  {
    code: 'RLS019',
    faulty: `${MEMBER} ${replaceOwn(IS_MEMBER)} alter table app.member enable row level security;
             create policy own on app.member to rls_app using (owner_name = any (array(select d.owner_name from app.doc d)));`,
    finds: [
      'RLS017 own on app.member',
      'RLS019 own on app.doc',
      'RLS019 own on app.member',
      'RLS020 own on app.doc',
      'RLS020 own on app.member',
    ],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)} alter table app.member enable row level security;
            create policy own on app.member to rls_app using (user_name = (select current_user::text collate "default"));
            create index on app.member (user_name);`,
    soundFinds: ['RLS020 own on app.doc'],
    shown: [['rls_app', 'select * from app.doc', '42P17']],
    soundShown: [['rls_app', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS019',
    faulty: `create function app.owners() returns setof text language plpgsql stable
               as $$ begin return query select d.owner_name from app.doc d; end $$;
             ${replaceOwn('owner_name = any (array(select app.owners()))')}`,
    finds: ['RLS019 own on app.doc'],
    sound: `set local role rls_owner;
            create function app.owners() returns setof text language plpgsql stable security definer
              set search_path = app, pg_temp as $$ begin return query select d.owner_name from app.doc d; end $$;
            revoke execute on function app.owners() from public;
            grant execute on function app.owners() to rls_app;
            reset role; ${replaceOwn('owner_name = any (array(select app.owners()))')}`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', '54001']],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 2]],
  },
  {
    code: 'RLS019',
    // The policies of each role read the other table, but none applies to both.
    faulty: `${MEMBER} ${replaceOwn(IS_MEMBER)} alter table app.member enable row level security;
             create policy own on app.member using (owner_name = any (array(select d.owner_name from app.doc d)));
             create index on app.member (owner_name);`,
    finds: [
      'RLS008 own on app.member',
      'RLS019 own on app.doc',
      'RLS019 own on app.member',
      'RLS020 own on app.doc',
      'RLS020 own on app.member',
    ],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)} alter table app.member enable row level security;
            create policy own on app.member to rls_other using (owner_name = any (array(select d.owner_name from app.doc d)));
            create index on app.member (owner_name);`,
    soundFinds: ['RLS020 own on app.doc', 'RLS020 own on app.member'],
    shown: [
      ['rls_app', 'select * from app.doc', '42P17'],
      ['rls_other', 'select * from app.member', 0],
    ],
    soundShown: [
      ['rls_app', 'select * from app.doc', 0],
      ['rls_other', 'select * from app.member', 0],
    ],
  },
  {
    code: 'RLS019',
    // SELECT policies with a subquery, too, are not evaluated within another policy of their table.
    faulty: `create policy known on app.doc as restrictive for insert to rls_app
               with check (body in (select d.body from app.doc d));`,
    finds: ['RLS019 known on app.doc'],
    sound: `create policy known on app.doc as restrictive for insert to rls_app
              with check (body in (select d.body from app.doc d));
            ${replaceOwn("owner_name = 'rls_app'")}`,
    shown: [['rls_app', `insert into app.doc (owner_name, body) values ('rls_app', 'a')`, '42P17']],
    soundShown: [ROWS, ['rls_app', `insert into app.doc (owner_name, body) values ('rls_app', 'a')`, 1]],
  },
  {
    code: 'RLS020',
    faulty: `${MEMBER} ${replaceOwn(IS_MEMBER)} alter table app.member enable row level security;
             create policy own on app.member to rls_app using (user_name = (select session_user::text collate "default"));
             create index on app.member (user_name);`,
    finds: ['RLS020 own on app.doc'],
    sound: '',
    shown: [
      ROWS,
      [null, `insert into app.member values ('rls_app', 'rls_other')`],
      ['rls_app', 'select * from app.doc', 0],
    ],
  },
  {
    code: 'RLS021',
    faulty: 'create view app.docs as select * from app.doc; grant select on app.docs to rls_app;',
    finds: ['RLS021 app.docs'],
    sound: `create view app.docs with (security_invoker = true) as select * from app.doc;
            grant select on app.docs to rls_app;`,
    shown: [ROWS, ['rls_app', 'select * from app.docs', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.docs', 1]],
  },
  {
    code: 'RLS021',
    faulty: `create view app.inner_docs as select * from app.doc;
             create view app.docs with (security_invoker = on) as select * from app.inner_docs;
             grant select on app.docs, app.inner_docs to rls_app;`,
    finds: ['RLS021 app.docs', 'RLS021 app.inner_docs'],
    sound: `create view app.inner_docs with (security_invoker = on) as select * from app.doc;
            create view app.docs with (security_invoker = on) as select * from app.inner_docs;
            grant select on app.docs, app.inner_docs to rls_app;`,
    shown: [ROWS, ['rls_app', 'select * from app.docs', 2]],
    soundShown: [ROWS, ['rls_app', 'select * from app.docs', 1]],
  },
  {
    code: 'RLS021',
    faulty: `insert into app.doc (owner_name) values ('rls_app'), ('rls_other');
             create materialized view app.all_docs as select * from app.doc;
             create view app.docs as select * from app.all_docs; grant select on app.docs to rls_app;`,
    finds: ['RLS021 app.docs'],
    sound: `create materialized view app.all_docs as select * from app.doc;
            create view app.docs with (security_invoker = true) as select * from app.all_docs;
            grant select on app.docs to rls_app;`,
    shown: [['rls_app', 'select * from app.docs', 2]],
    soundShown: [['rls_app', 'select * from app.docs', '42501']],
  },
  {
    code: 'RLS022',
    faulty: `insert into app.doc (owner_name) values ('rls_app'), ('rls_other');
             create materialized view app.docs as select * from app.doc; grant select on app.docs to rls_app;`,
    finds: ['RLS022 app.docs'],
    sound: 'create materialized view app.docs as select * from app.doc',
    shown: [['rls_app', 'select * from app.docs', 2]],
  },
  {
    code: 'RLS056',
    faulty: `${MEMBER} revoke select on app.member from rls_app; ${replaceOwn(IS_MEMBER)}`,
    finds: ['RLS001 app.member', 'RLS056 own on app.doc'],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS001 app.member'],
    shown: [['rls_app', 'select * from app.doc', '42501']],
    soundShown: [['rls_app', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS057',
    faulty: `${MEMBER} grant insert on app.member to rls_app; ${replaceOwn(IS_MEMBER)}`,
    finds: ['RLS001 app.member', 'RLS057 own on app.doc'],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS001 app.member'],
    shown: [ROWS, ['rls_app', JOIN_AND_COUNT]],
    soundShown: [ROWS, ['rls_app', JOIN_AND_COUNT, '42501']],
  },
  {
    code: 'RLS057',
    faulty: `${MEMBER} grant insert on app.member to rls_app; alter table app.member enable row level security;
             create policy own on app.member for select to rls_app using (user_name = 'rls_app');
             create policy add on app.member for insert to rls_app with check (true);
             create index on app.member (user_name); ${replaceOwn(IS_MEMBER)}`,
    finds: ['RLS013 add on app.member', 'RLS020 own on app.doc', 'RLS057 own on app.doc'],
    sound: `${MEMBER} grant insert on app.member to rls_app; alter table app.member enable row level security;
            create policy own on app.member for select to rls_app using (user_name = 'rls_app');
            create policy add on app.member for insert to rls_app with check (owner_name = 'rls_app');
            create index on app.member (user_name); ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS020 own on app.doc'],
    shown: [ROWS, ['rls_app', JOIN_AND_COUNT]],
    soundShown: [ROWS, ['rls_app', JOIN_AND_COUNT, '42501']],
  },
  {
    code: 'RLS057',
    faulty: `${MEMBER} grant insert on app.member to rls_app; create view app.members as select * from app.member;
             grant select on app.members to rls_app; ${replaceOwn(IS_MEMBER.replace('app.member', 'app.members'))}`,
    finds: ['RLS001 app.member', 'RLS057 own on app.doc'],
    sound: `${MEMBER} create view app.members as select * from app.member;
            grant select on app.members to rls_app; ${replaceOwn(IS_MEMBER.replace('app.member', 'app.members'))}`,
    soundFinds: ['RLS001 app.member'],
    shown: [ROWS, ['rls_app', JOIN_AND_COUNT]],
    soundShown: [ROWS, ['rls_app', JOIN_AND_COUNT, '42501']],
  },
  {
    code: 'RLS057',
    faulty: `${MEMBER} grant insert on app.member to rls_app; alter table app.member enable row level security;
             create policy own on app.member to rls_app using (true);
             create policy of_doc on app.member as restrictive for select to rls_app using (user_name = 'rls_app');
             ${replaceOwn(IS_MEMBER)}`,
    finds: ['RLS007 own on app.member', 'RLS020 own on app.doc', 'RLS057 own on app.doc'],
    sound: `${MEMBER} grant insert on app.member to rls_app; alter table app.member enable row level security;
            create policy own on app.member to rls_app using (true);
            create policy of_doc on app.member as restrictive to rls_app using (owner_name = 'rls_app');
            ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS020 own on app.doc'],
    shown: [ROWS, ['rls_app', JOIN_AND_COUNT]],
    soundShown: [ROWS, ['rls_app', JOIN_AND_COUNT, '42501']],
  },
  {
    code: 'RLS056',
    // A role that may not insert does not run the condition of an INSERT policy.
    faulty: `${MEMBER} revoke select on app.member from rls_other; drop policy own on app.doc;
             create policy read on app.doc for select to rls_app, rls_other using (owner_name = 'a');
             create policy add on app.doc for insert to rls_app, rls_other with check (${IS_MEMBER});`,
    finds: ['RLS001 app.member', 'RLS056 add on app.doc'],
    sound: `${MEMBER} revoke select on app.member from rls_other; drop policy own on app.doc;
            create policy read on app.doc for select to rls_app, rls_other using (owner_name = 'a');
            create policy add on app.doc for insert to rls_app, rls_other with check (${IS_MEMBER});
            revoke insert on app.doc from rls_other;`,
    soundFinds: ['RLS001 app.member'],
    shown: [['rls_other', `insert into app.doc (owner_name) values ('a')`, '42501']],
    soundShown: [['rls_other', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS040',
    faulty: `${FOREIGN} grant select on app.remote to rls_app;`,
    finds: ['RLS040 app.remote'],
    sound: FOREIGN,
    shown: [
      [null, 'savepoint refused'],
      ['rls_owner', 'alter foreign table app.remote enable row level security', '42809'],
    ],
  },
  {
    code: 'RLS050',
    faulty: `create view app.masked with (security_invoker = true) as select id, owner_name, left(body, 1) as body from app.doc;
             grant select on app.masked to rls_app;`,
    finds: ['RLS050 app.doc.body'],
    sound: `create view app.masked with (security_invoker = true) as select id, owner_name, body from app.doc;
            grant select on app.masked to rls_app;`,
    shown: [ROWS, ['rls_app', 'select body from app.doc', 1]],
  },
  {
    code: 'RLS050',
    faulty: `create view app.masked with (security_invoker = true) as
               select id, '***' || right(body, 2) as body from app.doc union all select id, null from app.doc;
             grant select on app.masked to rls_app;`,
    finds: ['RLS050 app.doc.body'],
    sound: `create view app.masked with (security_invoker = true) as
              select id, '***' || right(body, 2) as body from app.doc union all select id, null from app.doc;
            revoke select on app.doc from rls_app, rls_other; grant select (id) on app.doc to rls_app;
            grant select on app.masked to rls_app;`,
    shown: [ROWS, ['rls_app', 'select body from app.doc', 1]],
    soundShown: [ROWS, ['rls_app', 'select body from app.doc', '42501']],
  },
  {
    code: 'RLS030',
    faulty: `${PARTITION} grant select on app.part to rls_app;`,
    finds: ['RLS030 app.part'],
    sound: PARTITION,
    shown: [
      ...PART_ROWS,
      ['rls_app', 'select * from app.whole', 1],
      ['rls_app', 'select * from app.part', 2],
    ],
    soundShown: [
      ...PART_ROWS,
      ['rls_app', 'select * from app.whole', 1],
      ['rls_app', 'select * from app.part', '42501'],
    ],
  },
  {
    code: 'RLS030',
    faulty: `${PARTITION} create table app.leaf () inherits (app.doc); create table app.twig () inherits (app.leaf);
             alter table app.leaf owner to rls_owner; alter table app.twig owner to rls_owner; grant select on app.twig to rls_app;`,
    finds: ['RLS030 app.twig'],
    sound: `${PARTITION} create table app.leaf () inherits (app.doc); create table app.twig () inherits (app.leaf);
            alter table app.leaf owner to rls_owner; alter table app.twig owner to rls_owner;`,
  },
  {
    code: 'RLS031',
    faulty: `${PARTITION} grant select on app.part to rls_app; alter table app.part enable row level security;
             create policy own on app.part to rls_app using (owner_name in ('rls_app', 'rls_other'));`,
    finds: ['RLS031 app.part'],
    sound: `${PARTITION} grant select on app.part to rls_app; alter table app.part enable row level security;
            create policy own on app.part to rls_app using (owner_name = 'rls_app');`,
    shown: [
      ...PART_ROWS,
      ['rls_app', 'select * from app.whole', 1],
      ['rls_app', 'select * from app.part', 2],
    ],
    soundShown: [
      ...PART_ROWS,
      ['rls_app', 'select * from app.whole', 1],
      ['rls_app', 'select * from app.part', 1],
    ],
  },
  {
    code: 'RLS031',
    faulty: `${PARTITION} ${MEMBER} ${PART_POLICIES} drop policy own on app.part;
             create policy own on app.part to rls_app using (true);`,
    finds: ['RLS001 app.member', 'RLS007 own on app.part', 'RLS018 own on app.whole', 'RLS031 app.part'],
    // In the subquery, each policy names its own table.
    sound: `${PARTITION} ${MEMBER} ${PART_POLICIES}`,
    soundFinds: ['RLS001 app.member', 'RLS018 own on app.part', 'RLS018 own on app.whole'],
  },
];
