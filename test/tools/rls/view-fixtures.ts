/** Views over tables with row security, each in a schema of its own. Their callers are in `CALLERS` of the test. */
export interface ViewFixture {
  readonly name: string;
  /**
   * Statements in the fixture's schema, which make a view `v`. `:auth`, `:anon` and `:lead` are roles of callers, `:staff`
   * is a group with the member `:lead`, and `:owner` may own tables and views.
   */
  readonly sql: string;
  /** `view`: an entity over the view. `table`: one over its table. A pattern: reason of the refusal. */
  readonly becomes: 'view' | 'table' | RegExp;
  /** Masks of columns, where the policy gives some. */
  readonly masks?: Readonly<Record<string, string>>;
  /** Columns of the view that its entity does not show. */
  readonly leftOut?: readonly string[];
  /** Callers who see fewer rows, or more masks, through the gateway than in the database. */
  readonly less?: readonly string[];
  /** True if nobody sees a row. */
  readonly empty?: true;
}

const [ANN, BOB] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

/** 24 documents with row security, which only the view's owner may read unless a fixture grants more. */
const DOC = `
create table doc (id int primary key, owner_id uuid, team_id int, email text, owner_name text, salary numeric(8,2),
  born date, status text);
insert into doc
  select n, (array['${ANN}', '${BOB}', null]::uuid[])[1 + n % 3], n % 4,
         (array['ann@example.org', 'bob@example.org', null, 'x'])[1 + n % 4], (array[':auth', ':lead'])[1 + n % 2],
         n * 100, date '1980-03-05' + n * 100, (array['draft', 'published', null])[1 + n % 3]
    from generate_series(1, 24) n;
alter table doc enable row level security;`;

const OF_OWNER = `${DOC} alter table doc owner to :owner; alter table doc force row level security;
  grant all on schema :schema to :owner;`;
const READ_V = 'grant select on v to :auth, :anon;';
const READ_DOC = 'grant select on doc to :auth, :anon;';
const OWN_ROWS = 'create policy own on doc for select to :auth using (owner_id = auth.uid());';
const MEMBER = `
create table member (user_id uuid, team_id int, primary key (user_id, team_id));
insert into member values ('${ANN}', 1), ('${ANN}', 2), ('${BOB}', 3);
alter table member enable row level security;`;

export const VIEW_FIXTURES: readonly ViewFixture[] = [
  {
    name: 'plain',
    sql: `${DOC} create view v as select id, email, team_id from doc; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'barrier',
    sql: `${DOC} create view v with (security_barrier) as select id, email as mail from doc where status = 'published'; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'joined',
    sql: `${DOC} ${MEMBER} create view v as select d.id, m.user_id, d.email from doc d join member m on m.team_id = d.team_id; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'aggregated',
    sql: `${DOC} create view v as select team_id, count(*) as documents, sum(salary) as total from doc group by team_id; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'owner_under_policies',
    sql: `${OF_OWNER} create policy published on doc for select to :owner using (status = 'published');
      create view v as select id, email from doc; alter view v owner to :owner; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'owner_under_policies_of_caller',
    sql: `${OF_OWNER} create policy own on doc for select to :owner using (owner_id = auth.uid());
      create policy others on doc for select to :auth using (true);
      create view v as select id, email from doc; alter view v owner to :owner; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'owner_without_policies',
    sql: `${OF_OWNER} create policy others on doc for select to :auth using (true);
      create view v as select id, email from doc where owner_id = auth.uid() or team_id = 1;
      alter view v owner to :owner; ${READ_V}`,
    becomes: 'table',
    empty: true,
  },
  {
    name: 'invoker',
    sql: `${DOC} ${READ_DOC} ${OWN_ROWS} create policy open on doc for select to :anon using (team_id = 1);
      create view v with (security_invoker) as select id, email, status from doc where status is not null; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'invoker_without_privilege',
    sql: `${DOC} grant select (id, email) on doc to :auth; grant select on doc to :lead; ${OWN_ROWS}
      create view v with (security_invoker) as select id, email from doc where team_id > 0; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'invoker_join',
    sql: `${DOC} ${MEMBER} ${READ_DOC} ${OWN_ROWS} grant select on member to :auth, :anon;
      create view v with (security_invoker) as select d.id from doc d join member m using (team_id); ${READ_V}`,
    becomes: /rights of the caller.* a join$/,
  },
  {
    name: 'invoker_over_open_tables',
    sql: `create table team (id int primary key, name text); create table place (team_id int, town text);
      insert into team values (1, 'a'), (2, 'b'); insert into place values (1, 'x'), (1, 'y'), (2, 'z');
      create view v with (security_invoker) as select t.id, p.town from team t join place p on p.team_id = t.id;
      grant select on team, place to :auth; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'mask_by_role',
    sql: `${DOC} create view v as select id, team_id,
        case when pg_has_role(current_user, ':staff', 'member') then email else '***' end as email,
        case when pg_has_role(':staff', 'usage') then salary end as salary from doc
        where team_id <> 1 or (owner_name = current_user and pg_has_role(':staff', 'usage')); ${READ_V}`,
    becomes: 'table',
    masks: { email: 'redact', salary: 'null' },
  },
  {
    name: 'mask_by_flag',
    sql: `${DOC} create view v as select id, case when current_setting('app.unmask', true) = 'on' then email end as mail from doc; ${READ_V}`,
    becomes: 'table',
    masks: { mail: 'null' },
  },
  {
    name: 'mask_by_claim',
    sql: `${DOC} create view v as select id, case auth.jwt() ->> 'user_role' when 'staff' then email else '[redacted]' end as email
      from doc where team_id <> 3; ${READ_V}`,
    becomes: 'table',
    masks: { email: 'redact' },
  },
  {
    name: 'mask_in_two_branches',
    sql: `${DOC} create view v as select id, case when owner_id is null then 'nobody' when owner_id = auth.uid() then email
      when team_id = 1 then email else left(email, 1) || '***' end as email from doc; ${READ_V}`,
    becomes: 'table',
    masks: { email: 'redact' },
  },
  {
    name: 'mask_unless',
    sql: `${DOC} create view v as select id, case when auth.uid() is null then null else email end as email from doc; ${READ_V}`,
    becomes: 'table',
    masks: { email: 'null' },
  },
  {
    name: 'mask_in_part',
    sql: `${DOC} create view v as select id, owner_id,
        case when owner_id = auth.uid() then email else left(email, 2) || '***' end as email,
        case when owner_id = auth.uid() then born else date_trunc('year', born)::date end as born from doc; ${READ_V}`,
    becomes: 'table',
    masks: { email: 'partial', born: 'year' },
  },
  {
    name: 'mask_by_hash',
    sql: `${DOC} create view v as select id, md5(email) as email, substring(owner_name from 1 for 3) as name
      from doc where owner_id = auth.uid(); ${READ_V}`,
    becomes: 'table',
    masks: { email: 'hash', name: 'partial' },
  },
  {
    name: 'mask_without_equal',
    sql: `${DOC} create view v as select id,
        case when owner_id = auth.uid() then email else regexp_replace(email, '@.*', '') end as email,
        case when owner_id > auth.uid() then salary else 0 end as salary from doc; ${READ_V}`,
    becomes: 'table',
    masks: { email: 'redact', salary: 'redact' },
    less: ['nobody', 'no-claims', 'ann', 'bob', 'lead'],
  },
  {
    name: 'cast_that_shows_less',
    sql: `${DOC} create view v as select id, case when owner_id = auth.uid() then born::text else '' end as born,
      email::varchar(3) as email, id as again from doc; ${READ_V}`,
    becomes: 'table',
    leftOut: ['born', 'email', 'again'],
  },
  {
    name: 'constant_masks',
    sql: `${DOC} create view v as select id, null::text as email, '***' as owner_name from doc; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'constant_masks_of_caller',
    sql: `${DOC} create view v as select id, null::text as email, '***' as owner_name from doc where owner_id = auth.uid(); ${READ_V}`,
    becomes: 'table',
    leftOut: ['email', 'owner_name'],
  },
  {
    name: 'partial_for_all',
    sql: `${DOC} create view v as select id, left(email, 2) || '***' as email from doc; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'masked_key',
    sql: `${DOC} create view v as select case when owner_id = auth.uid() then id end as id, team_id, status from doc; ${READ_V}`,
    becomes: 'table',
    leftOut: ['id'],
  },
  {
    name: 'two_masks_of_one_column',
    sql: `${DOC} ${READ_DOC} ${OWN_ROWS}
      create view v as select id, case when owner_id = auth.uid() then email else left(email, 1) || '***' end as email from doc;
      create view w as select id, case when owner_id = auth.uid() then email end as email from doc; ${READ_V}
      grant select on w to :auth;`,
    becomes: 'table',
    masks: { email: 'redact' },
  },
  {
    name: 'view_over_view',
    sql: `${DOC} create view below as select id, email, team_id from doc where team_id > 0;
      create view v as select id, email from below where team_id < 3; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'view_over_view_of_caller',
    sql: `${DOC} create view below as select id, email from doc where owner_id = auth.uid();
      create view v as select id, email from below; ${READ_V}`,
    becomes: /auth\.uid\(\).* a view below it$/,
  },
  {
    name: 'view_over_invoker',
    sql: `${DOC} ${READ_DOC} ${OWN_ROWS} create view below with (security_invoker) as select id, email from doc;
      create view v as select id, email from below; ${READ_V}`,
    becomes: /below, which has the rights of the caller/,
  },
  {
    name: 'of_current_user',
    sql: `${DOC} create view v as select id, owner_name from doc where owner_name = current_user; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'of_members',
    sql: `${DOC} ${MEMBER} create view v as
      select id, case when owner_id = auth.uid() then team_id end as own_team, team_id from doc
      where team_id in (select team_id from member where user_id = auth.uid()) or owner_id = auth.uid(); ${READ_V}`,
    becomes: 'table',
    leftOut: ['own_team'],
  },
  {
    name: 'function_of_caller_in_view',
    sql: `${DOC} ${MEMBER} grant select on member to :auth, :anon, :owner; alter table doc owner to :owner;
      create policy me on member for select to :auth using (user_id = auth.uid());
      create policy all_of_them on member for select to :owner using (true);
      create function my_teams() returns setof int language sql stable set search_path = :schema as $$ select team_id from member $$;
      create view v as select id, team_id from doc where team_id in (select my_teams());
      alter view v owner to :owner; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'function_with_a_setting',
    sql: `${DOC} create function me() returns text language sql immutable as $$ select current_setting('app.name', true) $$;
      create view v as select id, owner_name from doc where owner_name = me(); ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'function_without_right',
    sql: `${DOC} create function known(text) returns boolean language sql immutable as $$ select $1 is not null $$;
      revoke execute on function known(text) from public; grant execute on function known(text) to :lead;
      create view v as select id, email from doc where known(email); ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'policy_with_a_function_without_right',
    sql: `${DOC} ${READ_DOC} create function me() returns uuid language sql stable as $$ select auth.uid() $$;
      revoke execute on function me() from public; grant execute on function me() to :lead;
      create policy own on doc for select using (owner_id = :schema.me());
      create view v with (security_invoker) as select id, email from doc; ${READ_V}`,
    becomes: 'table',
  },
  {
    name: 'policy_with_the_user_of_a_definer',
    sql: `${DOC} ${READ_DOC} create function is_me(text) returns boolean language sql stable security definer as
        $$ select $1 = current_user $$;
      create policy own on doc for select using (:schema.is_me(owner_name));
      create view v with (security_invoker) as select id, email from doc; ${READ_V}`,
    becomes: 'table',
    empty: true,
  },
  {
    name: 'function_of_rows',
    sql: `${DOC} create view v as select id, unnest(array[1, 2]) as half from doc where owner_id = auth.uid(); ${READ_V}`,
    becomes: /the function unnest, in the column half$/,
  },
  {
    name: 'materialized',
    sql: `${DOC} ${OWN_ROWS} create materialized view v as select id, email, team_id from doc; ${READ_V}
      delete from doc where id > 20;`,
    becomes: 'view',
  },
  {
    name: 'limited',
    sql: `${DOC} create view v as select id, email from doc order by id limit 5; ${READ_V}`,
    becomes: 'view',
  },
  {
    name: 'limited_of_caller',
    sql: `${DOC} create view v as select id, email from doc where owner_id = auth.uid() order by id limit 2; ${READ_V}`,
    becomes: /auth\.uid\(\).* LIMIT$/,
  },
  {
    name: 'union_of_caller',
    sql: `${DOC} create view v as select id from doc where owner_id = auth.uid() union select 0; ${READ_V}`,
    becomes: /UNION/,
  },
  {
    name: 'volatile',
    sql: `${DOC} create view v as select id, email from doc where random() < 2; ${READ_V}`,
    becomes: /random/,
  },
  {
    name: 'sampled',
    sql: `${DOC} create view v as select id from doc tablesample bernoulli (100); ${READ_V}`,
    becomes: /TABLESAMPLE.* a sample in FROM$/,
  },
  {
    name: 'of_the_system',
    sql: `create view v as select pid as id, usename::text as name from pg_stat_activity where usename = current_user; ${READ_V}`,
    becomes: /current_user/,
  },
  {
    name: 'columns_granted',
    sql: `${DOC} create view v as select id, team_id, case when owner_id = auth.uid() then email end as email, status from doc;
      grant select (id, status) on v to :anon; grant select (id, email) on v to :auth;`,
    becomes: 'table',
    masks: { email: 'null' },
  },
  {
    name: 'foreign_table',
    sql: `create foreign data wrapper nothing_:schema; create server nowhere_:schema foreign data wrapper nothing_:schema;
      create foreign table v (id int) server nowhere_:schema; ${READ_V}`,
    becomes: /another server/,
  },
  {
    name: 'partitions',
    sql: `create table v (id int primary key, owner_id uuid) partition by range (id);
      create table v_low partition of v for values from (1) to (10); create table v_high partition of v for values from (10) to (100);
      insert into v select n, (array['${ANN}', '${BOB}']::uuid[])[1 + n % 2] from generate_series(1, 20) n;
      alter table v enable row level security; create policy own on v for select using (owner_id = auth.uid());
      grant select on v, v_low to :auth, :anon;`,
    becomes: 'view',
  },
];

const AUTH = `
create schema auth;
create function auth.jwt() returns jsonb language sql stable as
  $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $$;
create function auth.uid() returns uuid language sql stable as $$ select (auth.jwt() ->> 'sub')::uuid $$;
grant usage on schema auth to public;`;

/** Statements that create the roles and the functions of claims. @param mark of the roles, which a server has once */
export function rolesOf(mark: string): string {
  return `create role auth_${mark}; create role anon_${mark}; create role staff_${mark}; create role owner_${mark};
    create role lead_${mark} in role auth_${mark}, staff_${mark}; ${AUTH}`;
}

/** The statements of a fixture. */
export function statementsOf({ name, sql }: ViewFixture, mark: string): string {
  const text = sql
    .replaceAll(':schema', name)
    .replaceAll(/(?<!:):(auth|anon|lead|staff|owner)\b/g, (_, role: string) => `${role}_${mark}`);
  return `create schema ${name}; grant usage on schema ${name} to auth_${mark}, anon_${mark}, owner_${mark};
    set search_path = ${name}, public; ${text}; reset search_path`;
}
