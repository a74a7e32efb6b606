/**
 * Policies as they are published, each in a schema of its own, written by us after the shape of its source. Their callers
 * are in `CALLERS` of the test.
 */
export interface RlsFixture {
  readonly name: string;
  /** Where policies of this shape are published. */
  readonly source: string;
  /** Statements in the fixture's schema. `:auth` and `:anon` are the database roles of callers with and without a login. */
  readonly sql: string;
  /** Callers who see less through the gateway, because they lack an attribute under NOT. */
  readonly less?: readonly string[];
  /** Reason, in part, why the policy is not imported; absent if it is. */
  readonly refused?: RegExp;
}

const UIDS = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
const [ANN = '', BOB = ''] = UIDS;

/** A table of documents with an owner, a team and a tenant, and its rows. */
const DOC = `
create table doc (id int primary key, owner_id uuid, team_id int, tenant_id uuid, email text, owner_name text,
  public boolean not null default false, status text, level int, tags text[]);
insert into doc
  select n, (array['${ANN}', '${BOB}', null]::uuid[])[1 + n % 3], n % 5, (array['${ANN}', '${BOB}']::uuid[])[1 + n % 2],
         (array['ann@example.org', 'bob@example.org', null])[1 + n % 3], (array['ann', 'bob'])[1 + n % 2], n % 7 = 0,
         (array['draft', 'published', null])[1 + n % 3], n % 4, array['a', 'b']
    from generate_series(1, 40) n;
alter table doc enable row level security;
grant select on doc to :auth, :anon;`;

/** Members of teams, without row security of its own. */
const MEMBER = `
create table member (user_id uuid, team_id int, role text not null default 'member', primary key (user_id, team_id));
insert into member values ('${ANN}', 1, 'owner'), ('${ANN}', 2, 'member'), ('${BOB}', 2, 'owner'), ('${BOB}', 3, 'member');
grant select on member to :auth, :anon;`;

const SUPABASE = 'Supabase, guide on row level security';

export const FIXTURES: readonly RlsFixture[] = [
  {
    name: 'own_rows',
    source: SUPABASE,
    sql: `${DOC} create policy own on doc for select using (auth.uid() = owner_id);`,
  },
  {
    name: 'own_rows_wrapped',
    source: `${SUPABASE}, performance`,
    sql: `${DOC} create policy own on doc for select to :auth using ((select auth.uid()) = owner_id);`,
  },
  {
    name: 'everybody',
    source: SUPABASE,
    sql: `${DOC} create policy everybody on doc for select to :anon, :auth using (true);`,
  },
  {
    name: 'public_or_own',
    source: 'Supabase, quick starts: public profiles',
    sql: `${DOC} create policy open on doc for select using (public);
      create policy own on doc for select to :auth using (owner_id = auth.uid());`,
  },
  {
    name: 'public_or_own_in_one',
    source: 'PostgREST, tutorial',
    sql: `${DOC} create policy one on doc for select using (public or owner_id = auth.uid());`,
  },
  {
    name: 'team_by_in',
    source: `${SUPABASE}, joins`,
    sql: `${DOC} ${MEMBER}
      create policy team on doc for select using (team_id in (select team_id from member where user_id = auth.uid()));`,
  },
  {
    name: 'team_by_user_in',
    source: `${SUPABASE}, joins (the slow form)`,
    sql: `${DOC} ${MEMBER}
      create policy team on doc for select using (auth.uid() in (select user_id from member where member.team_id = doc.team_id));`,
  },
  {
    name: 'team_by_exists',
    source: 'Supabase, discussions: policies of teams',
    sql: `${DOC} ${MEMBER}
      create policy team on doc for select using (exists (
        select 1 from member m where m.team_id = doc.team_id and m.user_id = auth.uid() and m.role in ('owner', 'admin')));`,
  },
  {
    name: 'team_by_definer',
    source: `${SUPABASE}, security definer functions`,
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create function is_member(team int) returns boolean language sql stable security definer set search_path = :schema as
        $$ select exists (select 1 from member where team_id = team and user_id = auth.uid()) $$;
      create policy team on doc for select using (is_member(team_id));`,
  },
  {
    name: 'teams_of_function',
    source: `${SUPABASE}, functions that return a set`,
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create function my_teams() returns setof int language sql stable security definer set search_path = :schema as
        $$ select team_id from member where user_id = auth.uid() $$;
      create policy team on doc for select to :auth using (team_id in (select my_teams()));`,
  },
  {
    name: 'teams_in_plpgsql',
    source: 'MakerKit, accounts and memberships',
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create function has_role(team int, wanted text default null) returns boolean language plpgsql stable security definer
        set search_path = :schema as
        $$ begin return exists (select 1 from member m where m.team_id = team and m.user_id = auth.uid() and m.role = wanted); end $$;
      create policy team on doc for select using (has_role(team_id, 'owner'));`,
  },
  {
    name: 'member_under_its_own_policy',
    source: 'Supabase, user management with teams',
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create policy me on member for select using (user_id = auth.uid());
      create policy team on doc for select using (team_id in (select team_id from member));`,
  },
  {
    name: 'claim_of_metadata',
    source: `${SUPABASE}, auth.jwt()`,
    sql: `${DOC} create policy org on doc for select using (tenant_id = ((auth.jwt() -> 'app_metadata' ->> 'org_id')::uuid));`,
  },
  {
    name: 'claim_list',
    source: `${SUPABASE}, auth.jwt() with teams`,
    sql: `${DOC} create policy org on doc for select to :auth using (
      team_id::text in (select jsonb_array_elements_text(auth.jwt() -> 'app_metadata' -> 'teams')));`,
  },
  {
    name: 'claim_contains',
    source: 'Supabase, custom claims',
    sql: `${DOC} create policy org on doc for select to :auth using ((auth.jwt() -> 'app_metadata' -> 'teams') ? team_id::text);`,
  },
  {
    name: 'second_factor',
    source: 'Supabase, multi-factor authentication',
    sql: `${DOC} create policy own on doc for select using (owner_id = auth.uid());
      create policy mfa on doc as restrictive for select to :auth using ((select auth.jwt() ->> 'aal') = 'aal2');`,
  },
  {
    name: 'email_of_claims',
    source: 'PostgREST, database authorization',
    sql: `${DOC} create policy mail on doc for select using (
      email = current_setting('request.jwt.claims', true)::json ->> 'email');`,
  },
  {
    name: 'tenant_setting',
    source: 'AWS, multi-tenant data isolation with row level security',
    sql: `${DOC} create policy tenant on doc using (tenant_id = current_setting('app.current_tenant', true)::uuid);`,
  },
  {
    name: 'tenant_setting_as_text',
    source: 'AWS Prescriptive Guidance, SaaS on PostgreSQL',
    sql: `${DOC} create policy tenant on doc using (tenant_id::text = current_setting('app.current_tenant', true));`,
  },
  {
    name: 'tenant_setting_nullif',
    source: 'Crunchy Data, row level security for tenants',
    sql: `${DOC} create policy tenant on doc using (tenant_id = nullif(current_setting('app.current_tenant', true), '')::uuid);`,
  },
  {
    name: 'tenant_or_bypass',
    source: 'Prisma, client extension for row level security',
    sql: `${DOC} create policy tenant on doc using (tenant_id = current_setting('app.current_tenant', true)::uuid);
      create policy bypass on doc using (current_setting('app.bypass_rls', true)::text = 'on');`,
  },
  {
    name: 'tenants_in_setting',
    source: 'Azure, multi-tenant apps with Citus and row level security',
    sql: `${DOC} create policy tenant on doc using (tenant_id = any (string_to_array(current_setting('app.tenants', true), ',')::uuid[]));`,
  },
  {
    name: 'database_user',
    source: 'PostgreSQL, documentation of row security: managers of accounts',
    sql: `${DOC} update doc set owner_name = ':auth' where id % 3 = 0; create policy manager on doc for select to :auth using (owner_name = current_user);`,
  },
  {
    name: 'group_level',
    source: 'PostgreSQL, documentation of row security: users and group levels',
    sql: `${DOC} create table clearance (user_name text primary key, level int not null); grant select on clearance to :auth;
      create policy level on doc for select to :auth using (level <= (select c.level from clearance c where c.user_name = current_user));`,
    refused: /compared by <=/,
  },
  {
    name: 'admin_flag',
    source: 'Supabase, role-based access control',
    sql: `${DOC} create table profile (id uuid primary key, is_admin boolean not null); grant select on profile to :auth;
      insert into profile values ('${ANN}', true), ('${BOB}', false);
      create policy admin on doc for select to :auth using (
        owner_id = auth.uid() or exists (select 1 from profile where profile.id = auth.uid() and profile.is_admin));`,
  },
  {
    name: 'admin_function',
    source: 'Supabase, discussions: policies for administrators',
    sql: `${DOC} create table profile (id uuid primary key, is_admin boolean not null);
      insert into profile values ('${ANN}', false), ('${BOB}', true);
      create function is_admin() returns boolean language sql stable security definer set search_path = :schema as
        $$ select is_admin from profile where id = auth.uid() $$;
      create policy admin on doc for select to :auth using ((select is_admin()));`,
  },
  {
    name: 'role_in_claims',
    source: 'Supabase, custom claims and role-based access control',
    sql: `${DOC} create policy staff on doc for select using ((auth.jwt() ->> 'user_role') in ('staff', 'admin'));`,
  },
  {
    name: 'tenant_of_profile',
    source: 'Supabase, discussions: multi-tenancy by profile',
    sql: `${DOC} create table profile (id uuid primary key, tenant_id uuid not null); grant select on profile to :auth;
      insert into profile values ('${ANN}', '${BOB}'), ('${BOB}', '${ANN}');
      create policy tenant on doc for select to :auth using (tenant_id = (select tenant_id from profile where id = auth.uid()));`,
  },
  {
    name: 'tenant_function',
    source: 'Nile and others: current_tenant()',
    sql: `${DOC} create function current_tenant() returns uuid language sql stable as
        $$ select nullif(current_setting('app.current_tenant', true), '')::uuid $$;
      create policy tenant on doc using (tenant_id = current_tenant());`,
  },
  {
    name: 'two_joins',
    source: 'Basejump, accounts of projects',
    sql: `${DOC} ${MEMBER} create table project (id int primary key, team_id int not null); grant select on project to :auth;
      insert into project select n, n % 5 from generate_series(0, 20) n;
      create policy project on doc for select to :auth using (exists (
        select 1 from project p join member m on m.team_id = p.team_id where p.id = doc.id and m.user_id = auth.uid()));`,
  },
  {
    name: 'published_or_team',
    source: 'Hasura, permissions as row security',
    sql: `${DOC} ${MEMBER} create policy any_of on doc for select using (
      status = 'published' or (status = 'draft' and team_id in (select m.team_id from member m where m.user_id = auth.uid())));`,
  },
  {
    name: 'not_archived',
    source: 'PostGraphile, row level security guide',
    sql: `${DOC} create policy visible on doc for select using (owner_id = auth.uid());
      create policy live on doc as restrictive for select using (status is distinct from 'draft');`,
  },
  {
    name: 'not_blocked',
    source: 'Supabase, discussions: blocked users',
    sql: `${DOC} create table blocked (owner_id uuid, by_user uuid, primary key (owner_id, by_user)); grant select on blocked to :auth;
      insert into blocked values ('${BOB}', '${ANN}');
      create policy unblocked on doc for select to :auth using (not exists (
        select 1 from blocked b where b.owner_id = doc.owner_id and b.by_user = auth.uid()));`,
    less: ['no-claims'],
  },
  {
    name: 'not_in',
    source: 'Stack Overflow, NOT IN of blocked users',
    sql: `${DOC} create table blocked (owner_id uuid, by_user uuid, n int primary key); grant select on blocked to :auth;
      create policy unblocked on doc for select to :auth using (owner_id not in (select b.owner_id from blocked b where b.by_user = auth.uid()));`,
    refused: /NOT over IN/,
  },
  {
    name: 'not_in_required',
    source: 'Stack Overflow, NOT IN over a column that is NOT NULL',
    sql: `${DOC} create table blocked (owner_id uuid not null, by_user uuid, n int primary key); grant select on blocked to :auth;
      insert into blocked values ('${BOB}', '${ANN}', 1);
      create policy unblocked on doc for select to :auth using (owner_id not in (select b.owner_id from blocked b where b.by_user = auth.uid()));`,
    less: ['no-claims'],
  },
  {
    name: 'closure_table',
    source: 'Hierarchies by a closure table',
    sql: `${DOC} ${MEMBER} create table below (descendant int, ancestor int, primary key (descendant, ancestor)); grant select on below to :auth;
      insert into below values (0, 1), (1, 1), (2, 2), (3, 2), (3, 3), (4, 4);
      create policy tree on doc for select to :auth using (team_id in (
        select b.descendant from below b where b.ancestor in (select m.team_id from member m where m.user_id = auth.uid())));`,
  },
  {
    name: 'recursive_membership',
    source: 'Hierarchies by WITH RECURSIVE',
    sql: `${DOC} create table team (id int primary key, parent int, lead uuid); grant select on team to :auth;
      create policy tree on doc for select to :auth using (team_id in (
        with recursive t as (select id from team where lead = auth.uid() union select c.id from team c join t on c.parent = t.id)
        select id from t));`,
    refused: /recursive|WITH/,
  },
  {
    name: 'reads_itself',
    source: 'Supabase, infinite recursion in a policy',
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create policy mates on member for select to :auth using (team_id in (select m.team_id from member m where m.user_id = auth.uid()));
      create policy team on doc for select to :auth using (team_id in (select team_id from member));
      create policy own on doc for select to :auth using (owner_id = auth.uid());`,
    refused: /reads itself/,
  },
  {
    name: 'fails_beside_another',
    source: 'A policy that fails for the role, beside one that would show rows',
    sql: `${DOC} create function secret() returns boolean language sql stable as 'select true';
      revoke execute on function secret() from public;
      create policy own on doc for select to :auth using (owner_id = auth.uid());
      create policy other on doc for select to :auth using (secret());`,
    refused: /may not execute: the policy fails/,
  },
  {
    name: 'time_window',
    source: 'Access in a window of time',
    sql: `${DOC} create table window_of (owner_id uuid primary key, starts timestamptz not null, ends timestamptz not null); grant select on window_of to :auth;
      insert into window_of values ('${ANN}', now() - interval '1 day', now() + interval '1 day'), ('${BOB}', now() - interval '2 days', now() - interval '1 day');
      create policy now on doc for select to :auth using (owner_id in (select w.owner_id from window_of w where now() between w.starts and w.ends));`,
  },
  {
    name: 'anybody_with_a_login',
    source: 'Many projects on Supabase: auth.uid() is not null',
    sql: `${DOC} create policy login on doc for select using (auth.uid() is not null);`,
  },
  {
    name: 'role_claim',
    source: 'Many projects on Supabase: auth.role()',
    sql: `${DOC} create policy login on doc for select using (auth.role() = 'authenticated' and public);`,
  },
  {
    name: 'service_or_login',
    source: 'github.com: a tenant schema with global administrators',
    sql: `${DOC} create policy any_of on doc for select using (auth.role() = 'service_role' or auth.uid() is not null);`,
  },
  {
    name: 'project_members',
    source: 'github.com/tambo-ai/tambo-cloud, packages/db/migrations/0013',
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create policy member_user on member as permissive for all to :auth using (member.user_id = (select auth.uid()));
      create policy team_user on doc as permissive for all to :auth using (
        exists (select 1 from member where member.team_id = doc.team_id and member.user_id = (select auth.uid())));`,
  },
  {
    name: 'api_key_setting',
    source: 'github.com/tambo-ai/tambo-cloud, packages/db/migrations/0013',
    sql: `${DOC} create policy api_key on doc for all to :auth using (doc.tenant_id::text = current_setting('app.current_tenant', true));`,
  },
  {
    name: 'user_metadata',
    source: 'github.com/kingart22/cluben, supabase/migrations',
    sql: `${DOC} create table users (id uuid primary key, raw_user_meta_data jsonb); grant select on users to :auth;
      insert into users values ('${ANN}', '{"team": 1}'), ('${BOB}', '{"team": 3}');
      create policy own on doc for select to :auth using (exists (
        select 1 from users u where u.id = auth.uid() and (u.raw_user_meta_data ->> 'team')::int = doc.team_id));`,
    refused: /linked to the row by an expression|linked to the row/,
  },
  {
    name: 'org_members_unqualified',
    source: 'gist.github.com/mpokryva, organizations of users',
    sql: `${DOC} ${MEMBER}
      create function app_user() returns uuid language sql security definer as $$ select nullif(current_setting('app.current_tenant', true), '')::uuid $$;
      create policy org on doc using (exists (select 1 from member m where user_id = app_user() and m.team_id = doc.team_id));`,
  },
  {
    name: 'shared_teams',
    source: 'gist.github.com/mpokryva, users who share an organization',
    sql: `${DOC} ${MEMBER}
      create function share(a uuid, b uuid) returns boolean language sql stable set search_path = :schema as
        $$ select exists (select 1 from member m1, member m2 where m1.team_id = m2.team_id and m1.user_id = a and m2.user_id = b) $$;
      create policy mates on doc for select to :auth using (share(auth.uid(), owner_id));`,
  },
  {
    name: 'security_level_of_postgres',
    source: 'PostgreSQL, src/test/regress/sql/rowsecurity.sql: p1',
    sql: `${DOC} create table uaccount (pguser name primary key, seclv int); grant select on uaccount to :auth;
      create policy p1 on doc as permissive for select to :auth using (level <= (select seclv from uaccount where pguser = current_user));`,
    refused: /compared by <=/,
  },
  {
    name: 'restrictive_of_postgres',
    source: 'PostgreSQL, src/test/regress/sql/rowsecurity.sql: pp1r',
    sql: `${DOC} create policy p1 on doc for select to :auth using (true);
      create policy p1r on doc as restrictive for select to :auth using (level <> 3 and id > 2);`,
  },
  {
    name: 'granted_locations',
    source: 'github.com/sephanguyen/go, migrations/timesheet/1066',
    sql: `${DOC} create table permission (id int primary key, name text not null unique); create table granted (user_id uuid, permission_id int, team_id int, primary key (user_id, permission_id, team_id));
      grant select on permission, granted to :auth, :anon; insert into permission values (1, 'doc.read'), (2, 'doc.write');
      insert into granted values ('${ANN}', 1, 1), ('${ANN}', 2, 2), ('${BOB}', 1, 4);
      create policy location on doc for all using (team_id in (select g.team_id from granted g
        where g.user_id = current_setting('app.current_tenant', true)::uuid
          and g.permission_id = (select p.id from permission p where p.name = 'doc.read')));`,
  },
  {
    name: 'permission_check',
    source: 'github.com/sephanguyen/go, migrations/eureka/1074',
    sql: `${DOC} create function permission_check(resource_path text, table_name text) returns boolean as
        $$ select ($1 = current_setting('app.current_tenant', true))::boolean $$ language sql stable;
      create policy tenant on doc using (permission_check(tenant_id::text, 'doc'));`,
  },
  {
    name: 'tenant_array_function',
    source: 'errorhandle.ai, row level security with session variables',
    sql: `${DOC} create function tenant_array(setting text) returns text[] as $$ select string_to_array(current_setting('app.tenants', true), ',') $$ language sql immutable;
      create policy tenants on doc using (tenant_id::text = any (tenant_array('app.tenants')));`,
  },
  {
    name: 'admin_role',
    source: 'blog.rajpoot.dev, per-role policies',
    sql: `${DOC} create policy admin on doc for all to :anon using (true) with check (true);
      create policy tenant on doc for all to :auth using (tenant_id = nullif(current_setting('app.current_tenant', true), '')::uuid);`,
  },
  {
    name: 'helios_functions',
    source: 'Documentation of a Postgres-compatible database: current_user_id()',
    sql: `${DOC} create function current_user_id() returns uuid language sql stable return nullif(current_setting('app.current_tenant', true), '')::uuid;
      create policy own on doc for select using (owner_id = current_user_id());
      create policy read on doc for select using (status = 'published');`,
  },
  {
    name: 'roles_array',
    source: 'Supabase, discussions: has_tenant_role(tenant, roles)',
    sql: `${DOC} ${MEMBER} alter table member enable row level security;
      create function has_team_role(team int, roles text[]) returns boolean language sql stable security definer set search_path = :schema as
        $$ select exists (select 1 from member m where m.team_id = team and m.user_id = auth.uid() and m.role = any (roles)) $$;
      create policy staff on doc for select to :auth using (has_team_role(team_id, array['owner', 'admin']));`,
  },
  {
    name: 'or_with_admin_setting',
    source: 'Administrators by a flag that loses every index',
    sql: `${DOC} create policy either on doc for select using (
      coalesce(current_setting('app.bypass_rls', true), '') = 'on' or owner_id = nullif(current_setting('app.current_tenant', true), '')::uuid);`,
  },
  {
    name: 'restrictive_tenant_and_permissive_owner',
    source: 'Restrictive tenants with permissive owners',
    sql: `${DOC} create policy tenant on doc as restrictive using (tenant_id = nullif(current_setting('app.current_tenant', true), '')::uuid);
      create policy own on doc using (owner_id = auth.uid()); create policy published on doc for select using (status = 'published');`,
  },
  {
    name: 'nested_parentheses',
    source: 'Drizzle, crudPolicy of Neon',
    sql: `${DOC} create policy crud on doc as permissive for select to :auth using (((select auth.uid()) = owner_id) and (true) and not (public));`,
  },
  {
    name: 'list_column',
    source: 'Access by tags of a row',
    sql: `${DOC} create policy tags on doc for select to :auth using ((auth.jwt() ->> 'user_role') = any (tags));`,
    refused: /column that is a list/,
  },
  {
    name: 'two_link_columns',
    source: 'Memberships by tenant and team',
    sql: `${DOC} create table access_to (user_id uuid, team_id int, tenant_id uuid, primary key (user_id, team_id, tenant_id)); grant select on access_to to :auth;
      create policy pair on doc for select to :auth using (exists (select 1 from access_to a
        where a.user_id = auth.uid() and a.team_id = doc.team_id and a.tenant_id = doc.tenant_id));`,
    refused: /more than one condition/,
  },
  {
    name: 'materialized_path',
    source: 'Hierarchies by a path',
    sql: `${DOC} create policy path on doc for select to :auth using (owner_name like (auth.jwt() ->> 'email') || '%');`,
    refused: /value of the caller|nothing is known|function/,
  },
  {
    name: 'session_table',
    source: 'Sessions in a table',
    sql: `${DOC} create table session (token text primary key, user_id uuid not null, ends timestamptz not null); grant select on session to :auth;
      insert into session values ('${ANN}', '${ANN}', now() + interval '1 day'), ('${BOB}', '${BOB}', now() - interval '1 day');
      create policy session on doc for select to :auth using (owner_id = (
        select s.user_id from session s where s.token = current_setting('app.current_tenant', true) and s.ends > now()));`,
  },
  {
    name: 'case_of_status',
    source: 'Conditions with CASE',
    sql: `${DOC} create policy cases on doc for select using (case when status = 'published' then true when level > 1 then public else false end);`,
  },
  {
    name: 'operator_of_users',
    source: 'An operator that only looks like equality',
    sql: `${DOC} create function :schema.other(a uuid, b uuid) returns boolean language sql immutable as $$ select a <> b $$;
      create operator :schema.= (leftarg = uuid, rightarg = uuid, function = :schema.other);
      create policy other on doc for select to :auth using (owner_id operator(:schema.=) auth.uid());`,
    refused: /the operator operator_of_users\.=/,
  },
  {
    name: 'only_the_parent',
    source: 'A subquery over a table without those that inherit from it',
    sql: `${DOC} ${MEMBER} create table guest () inherits (member); insert into guest values ('${ANN}', 4, 'guest');
      create policy team on doc for select to :auth using (team_id in (select m.team_id from only member m where m.user_id = auth.uid()));`,
    refused: /ONLY member/,
  },
  {
    name: 'first_team',
    source: 'A function that returns the first of several rows',
    sql: `${DOC} ${MEMBER} create function my_team() returns int language sql stable security definer set search_path = :schema as
        $$ select team_id from member where user_id = auth.uid() order by team_id $$;
      create policy team on doc for select to :auth using (team_id = my_team());`,
    refused: /may have several rows/,
  },
  {
    name: 'limit_one',
    source: 'A subquery with LIMIT 1 of several rows',
    sql: `${DOC} ${MEMBER} create policy team on doc for select to :auth using (
      team_id in (select m.team_id from member m where m.user_id = auth.uid() order by m.team_id limit 1));`,
    refused: /LIMIT in a subquery/,
  },
  {
    name: 'first_of_each_role',
    source: 'A subquery with DISTINCT ON, which drops rows',
    sql: `${DOC} ${MEMBER} create policy team on doc for select to :auth using (team_id in (
        select distinct on (m.role) m.team_id from member m where m.user_id = auth.uid() or m.role = 'owner' order by m.role, m.team_id));`,
    refused: /DISTINCT ON in a subquery/,
  },
  {
    name: 'filtered_list',
    source: 'A list that array_agg collects of some rows',
    sql: `${DOC} ${MEMBER} create policy team on doc for select to :auth using (team_id = any ((
        select array_agg(m.team_id) filter (where m.role = 'owner') from member m where m.user_id = auth.uid())::int[]));`,
    refused: /linked to the row by an expression|may have several rows/,
  },
  {
    name: 'renamed_columns',
    source: 'A table whose alias exchanges the names of its columns',
    sql: `${DOC} create table manages (boss uuid, staff uuid, primary key (boss, staff)); grant select on manages to :auth;
      insert into manages values ('${ANN}', '${BOB}');
      create policy boss on doc for select to :auth using (owner_id in (select m.boss from manages m(staff, boss) where m.staff = auth.uid()));`,
    refused: /renamed columns in FROM/,
  },
  {
    name: 'shortened_setting',
    source: 'A cast that shortens a value of the caller',
    sql: `${DOC} create policy own on doc for select to :auth using (
      owner_id::text = current_setting('app.current_tenant', true)::varchar(8));`,
    refused: /./,
  },
  {
    name: 'shortened_list',
    source: 'A cast that shortens the values of a list',
    sql: `${DOC} create policy own on doc for select to :auth using (
      owner_id::text = any (string_to_array(current_setting('app.tenants', true), ',')::varchar(8)[]));`,
    refused: /./,
  },
  {
    name: 'list_with_where',
    source: 'A list of the caller that counts under a condition',
    sql: `${DOC} create policy listed on doc for select to :auth using (tenant_id::text in (
      select unnest(string_to_array(current_setting('app.tenants', true), ','))
       where current_setting('app.bypass_rls', true) = 'on'));`,
  },
  {
    name: 'text_and_list',
    source: 'A setting that is one value in one policy and a list in others',
    sql: `${DOC} create policy one on doc for select to :auth using (tenant_id::text = current_setting('app.tenants', true));
      create policy listed on doc for select to :auth using (
        level = 1 and owner_id::text = any (string_to_array(current_setting('app.tenants', true), ',')));`,
  },
  {
    name: 'strict_function',
    source: 'A STRICT function with a NULL among its arguments',
    sql: `${DOC} create function open_to(team int) returns boolean language sql stable strict as $$ select team is null or team = 1 $$;
      create policy open on doc for select to :auth using (open_to(nullif(team_id, 3)));`,
    refused: /STRICT/,
  },
  {
    name: 'exists_of_count',
    source: 'EXISTS over an aggregate, which always has a row',
    sql: `${DOC} ${MEMBER} create policy none on doc for select to :auth using (not exists (
      select count(*) from member m where m.team_id = doc.team_id and m.user_id = auth.uid()));`,
    refused: /EXISTS over something else/,
  },
];
