import { ANALYSE, type Case, MANY, PLAN, ROWS, replaceOwn, WITHOUT_INDEX } from './support.js';

const COUNTRY = 'create table app.country (name text);';
const countCountries = (options: string): string =>
  `create function app.countries() returns bigint language plpgsql security definer ${options}
     as $$ begin return (select count(*) from country); end $$;`;
/** Calls it with a temporary table of 42 rows in the place of its own. */
const CALL_WITH_OWN_TABLE = `
  create temporary table country on commit drop as select 'x' as name from generate_series(1, 42);
  grant select on country to public;
  select app.countries()`;
const countDocs = (rest: string): string => `
  set local role rls_owner;
  create function app.count_docs() returns bigint language sql stable security definer set search_path = app, pg_temp
    as 'select count(*) from doc';
  ${rest} reset role;`;
/** A policy that calls a function. */
const ME = `create function app.me() returns text language sql stable as $$ select current_user::text $$;
  ${replaceOwn('owner_name = (select app.me())')}`;

export const FUNCTIONS_CASES: readonly Case[] = [
  {
    code: 'RLS014',
    faulty: `create function app.is_short(text) returns boolean language plpgsql leakproof cost 0.0001
               as $$ begin raise exception 'saw %', $1; end $$;`,
    finds: ['RLS014 app.is_short(text)'],
    sound: `create function app.is_short(text) returns boolean language plpgsql cost 0.0001
              as $$ begin raise exception 'saw %', $1; end $$;`,
    shown: [
      ROWS,
      WITHOUT_INDEX,
      ['rls_app', `select * from app.doc where body = 'b' and app.is_short(body)`, 'P0001'],
    ],
    soundShown: [
      ROWS,
      WITHOUT_INDEX,
      ['rls_app', `select * from app.doc where body = 'b' and app.is_short(body)`, 0],
    ],
  },
  {
    code: 'RLS015',
    faulty: `create function app.me() returns text language plpgsql as $$ begin return current_user; end $$;
             ${replaceOwn('owner_name = app.me()')}`,
    finds: ['RLS015 own on app.doc'],
    sound: `create function app.me() returns text language sql stable as $$ select current_user::text $$;
            ${replaceOwn('owner_name = (select app.me())')}`,
    shown: [MANY, ANALYSE, ['rls_app', PLAN, /Seq Scan/]],
    soundShown: [MANY, ANALYSE, ['rls_app', PLAN, /Index/]],
  },
  {
    code: 'RLS023',
    faulty: `${COUNTRY} ${countCountries('')}`,
    finds: ['RLS023 app.countries()'],
    sound: `${COUNTRY} ${countCountries('set search_path = app, pg_temp')}`,
    shown: [['rls_app', CALL_WITH_OWN_TABLE, /42/]],
    soundShown: [['rls_app', CALL_WITH_OWN_TABLE, /0/]],
  },
  {
    code: 'RLS023',
    faulty: 'create procedure app.clean() language sql security definer as $$ delete from app.doc $$',
    finds: ['RLS023 app.clean()', 'RLS024 app.clean()'],
    sound: 'create procedure app.clean() language sql as $$ delete from app.doc $$',
    shown: [ROWS, ['rls_app', 'call app.clean()']],
  },
  {
    code: 'RLS049',
    faulty: `${COUNTRY} ${countCountries('set search_path = app')}`,
    finds: ['RLS049 app.countries()'],
    sound: `${COUNTRY} ${countCountries('set search_path = app, pg_temp')}`,
    shown: [['rls_app', CALL_WITH_OWN_TABLE, /42/]],
    soundShown: [['rls_app', CALL_WITH_OWN_TABLE, /0/]],
  },
  {
    code: 'RLS024',
    faulty: countDocs(''),
    finds: ['RLS024 app.count_docs()'],
    sound: countDocs('revoke execute on function app.count_docs() from public;'),
    shown: [ROWS, ['rls_app', 'select app.count_docs()', /2/]],
    soundShown: [ROWS, ['rls_app', 'select app.count_docs()', '42501']],
  },
  {
    code: 'RLS024',
    faulty: `create view app.docs as select * from app.doc; ${countDocs('').replace('from doc', 'from docs')}
             alter view app.docs owner to rls_owner;`,
    finds: ['RLS024 app.count_docs()'],
    sound: `create view app.docs as select * from app.doc; alter view app.docs owner to rls_owner;
            ${countDocs('revoke execute on function app.count_docs() from public;').replace('from doc', 'from docs')}`,
    shown: [ROWS, ['rls_app', 'select app.count_docs()', /2/]],
    soundShown: [ROWS, ['rls_app', 'select app.count_docs()', '42501']],
  },
  {
    code: 'RLS055',
    faulty: `${ME} revoke execute on function app.me() from public;`,
    finds: ['RLS055 own on app.doc'],
    sound: `${ME} revoke execute on function app.me() from public; grant execute on function app.me() to rls_app;`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', '42501']],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
  {
    code: 'RLS055',
    faulty: `${ME} create function app.me(int) returns text language sql stable as $$ select 'x' $$;
             revoke execute on function app.me() from public;`,
    finds: ['RLS055 own on app.doc'],
    // The policy does not call the other function of this name.
    sound: `${ME} create function app.me(int) returns text language sql stable as $$ select 'x' $$;
            revoke execute on function app.me(int) from public;`,
    shown: [ROWS, ['rls_app', 'select * from app.doc', '42501']],
    soundShown: [ROWS, ['rls_app', 'select * from app.doc', 1]],
  },
];
