import { ANALYSE, type Case, IS_MEMBER, MANY, MEMBER, PLAN, replaceOwn } from './support.js';

const SEARCH = `select * from app.doc where to_tsvector('simple', body) @@ 'b77'::tsquery`;
/** Gives the column of the policy another type, and a policy that compares it. */
const withOwnerType = (type: string, condition: string): string =>
  `drop policy own on app.doc; alter table app.doc alter owner_name type ${type};
   create policy own on app.doc to rls_app using (${condition});`;
const VARCHAR = withOwnerType('varchar(63)', `owner_name = (select 'x'::text)`);

export const SPEED_CASES: readonly Case[] = [
  {
    code: 'RLS016',
    faulty: `create sequence app.calls; grant usage on sequence app.calls to rls_app;
             create function app.me() returns text language plpgsql stable
               as $$ begin perform nextval('app.calls'); return 'o1'; end $$;
             ${replaceOwn('owner_name = app.me()')} drop index app.doc_owner;`,
    finds: ['RLS016 own on app.doc', 'RLS017 own on app.doc'],
    sound: `create sequence app.calls; grant usage on sequence app.calls to rls_app;
            create function app.me() returns text language plpgsql stable
              as $$ begin perform nextval('app.calls'); return 'o1'; end $$;
            ${replaceOwn('owner_name = (select app.me())')} drop index app.doc_owner;`,
    soundFinds: ['RLS017 own on app.doc'],
    shown: [
      MANY,
      ['rls_app', 'select * from app.doc', 1],
      [null, 'select last_value from app.calls', /^5\d{3}$/],
    ],
    soundShown: [
      MANY,
      ['rls_app', 'select * from app.doc', 1],
      [null, 'select last_value from app.calls', /^1$/],
    ],
  },
  {
    code: 'RLS017',
    faulty: 'drop index app.doc_owner',
    finds: ['RLS017 own on app.doc'],
    sound: 'drop index app.doc_owner; create index on app.doc (owner_name) include (body);',
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS017',
    faulty: `${VARCHAR} drop index app.doc_owner;`,
    finds: ['RLS017 own on app.doc'],
    sound: VARCHAR,
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS018',
    faulty: `${MEMBER} ${replaceOwn('exists (select from app.member m where m.owner_name = doc.owner_name and m.user_name = current_user)')}`,
    finds: ['RLS001 app.member', 'RLS018 own on app.doc'],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS001 app.member'],
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan on doc/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index Scan (on|using) doc_owner/]],
  },
  {
    code: 'RLS018',
    faulty: `${MEMBER} insert into app.member values ('rls_app', 'o1');
             ${replaceOwn('owner_name in (select m.owner_name from app.member m where m.user_name <> doc.body)')}`,
    finds: ['RLS001 app.member', 'RLS018 own on app.doc'],
    sound: `${MEMBER} ${replaceOwn(IS_MEMBER)}`,
    soundFinds: ['RLS001 app.member'],
    // RLS062 is about subqueries that run once.
    shown: [
      MANY,
      ['rls_app', `explain (analyze, costs off) select * from app.doc`, /SubPlan[\s\S]*loops=5000/],
    ],
  },
  {
    code: 'RLS017',
    faulty:
      'drop index app.doc_owner; insert into app.doc (owner_name) select $$x$$ from generate_series(1, 2000); analyze app.doc',
    finds: ['RLS017 own on app.doc'],
    // A table of few rows is read as a whole in any case.
    sound: 'drop index app.doc_owner; insert into app.doc (owner_name) values ($$x$$); analyze app.doc',
  },
  {
    code: 'RLS035',
    faulty: replaceOwn(`id::text = (select 'x'::text)`),
    finds: ['RLS035 own on app.doc'],
    sound: replaceOwn(`id = (select '00000000-0000-0000-0000-000000000000'::uuid)`),
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS035',
    faulty: replaceOwn(`id::text = (select 'x'::text)`),
    finds: ['RLS035 own on app.doc'],
    sound: `${replaceOwn(`id::text = (select 'x'::text)`)} create index on app.doc ((id::text));`,
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS035',
    faulty: `create domain app.key as uuid; alter table app.doc alter id type app.key; ${replaceOwn(`id::text = 'x'`)}`,
    finds: ['RLS035 own on app.doc'],
    sound: `create domain app.owner as varchar;
            ${withOwnerType('app.owner', `owner_name = 'x'`)}`,
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS062',
    faulty: `${MEMBER} ${replaceOwn('owner_name in (select m.owner_name from app.member m)')}`,
    finds: ['RLS001 app.member', 'RLS062 own on app.doc'],
    sound: `${MEMBER} ${replaceOwn('owner_name = any (array(select m.owner_name from app.member m))')}`,
    soundFinds: ['RLS001 app.member'],
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan on doc/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index Scan (on|using) doc_owner/]],
  },
  {
    code: 'RLS061',
    faulty: replaceOwn('owner_name = (select current_user)'),
    finds: ['RLS061 own on app.doc'],
    sound: `drop policy own on app.doc; alter table app.doc alter owner_name type text collate "C";
            create policy own on app.doc to rls_app using (owner_name = (select current_user));`,
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS061',
    faulty: replaceOwn('owner_name = current_user::text'),
    finds: ['RLS061 own on app.doc'],
    sound: replaceOwn('owner_name = current_user::text collate "default"'),
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS036',
    faulty: replaceOwn(`body = 'shared' or owner_name = (select 'x'::text)`),
    finds: ['RLS036 own on app.doc'],
    sound: `${replaceOwn(`body = 'shared' or owner_name = (select 'x'::text)`)} create index on app.doc (body);`,
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /BitmapOr/]],
  },
  {
    code: 'RLS036',
    faulty: `${MEMBER} ${replaceOwn(`owner_name = 'x' or owner_name in (select m.owner_name from app.member m)`)}`,
    finds: ['RLS001 app.member', 'RLS036 own on app.doc'],
    sound: `${MEMBER} ${withOwnerType('varchar(63)', `owner_name = 'x' or owner_name = any (array(select m.owner_name from app.member m))`)}`,
    soundFinds: ['RLS001 app.member'],
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan on doc/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /BitmapOr/]],
  },
  {
    code: 'RLS045',
    faulty: `create index doc_words on app.doc using gin (to_tsvector('simple', body));
             drop policy own on app.doc; create policy own on app.doc to rls_app using (owner_name like 'o%');`,
    finds: ['RLS045 doc_words on app.doc'],
    sound: `drop policy own on app.doc; create policy own on app.doc to rls_app using (owner_name like 'o%');`,
    shown: [
      MANY,
      ANALYSE,
      [null, `explain (costs off) ${SEARCH}`, /doc_words/],
      ['rls_app', `explain (costs off) ${SEARCH}`, /Seq Scan/],
    ],
  },
  {
    code: 'RLS045',
    faulty: 'create index doc_prefix on app.doc (body text_pattern_ops)',
    finds: ['RLS045 doc_prefix on app.doc'],
    sound: 'create index doc_body on app.doc (body)',
  },
];
