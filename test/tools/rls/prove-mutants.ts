import type { PolicyProofVerdict } from '../../../cli/rls/prove/prove-policy.js';
import type { GrantDocument, PolicyDocument, TableAttributeDocument } from '../../../policy/document.js';
import type { RlsFixture } from './import-fixtures.js';

/** A fault that a person could make in an imported policy, and the verdict about it. */
export interface Mutant {
  /** Schema of the fixture. */
  readonly fixture: string;
  readonly what: string;
  /** Replaces a text in the filters of the role's grants on `doc`, or the filters themselves; null: all rows. */
  readonly rows?: (rows: readonly string[]) => readonly (string | null)[];
  /** Changes the attributes that are read from the fixture's tables. */
  readonly attribute?: (attribute: TableAttributeDocument) => TableAttributeDocument;
  readonly columns?: readonly string[];
  readonly verdict: PolicyProofVerdict['kind'];
}

const replaced =
  (from: string, to: string) =>
  (rows: readonly string[]): readonly string[] =>
    rows.map((row) => row.replaceAll(from, to));
const all = (): readonly null[] => [null];
const withRows =
  (from: string, to: string) =>
  (attribute: TableAttributeDocument): TableAttributeDocument => ({
    ...attribute,
    rows: attribute.rows.replace(from, to),
  });

/** Conditions that only some values of `NAME_list.id` meet, with the names of their fixtures. */
const SOME_ROWS: readonly (readonly [name: string, condition: string, verdict: Mutant['verdict']])[] = [
  [
    'each_kind',
    'id in (select distinct on (l.kind) l.id from each_kind_list l order by l.kind, l.id)',
    'unknown',
  ],
  [
    'collected',
    'id = any ((select array_agg(l.id) filter (where l.open) from collected_list l)::int[])',
    'unknown',
  ],
  ['exchanged', 'id in (select l.id from exchanged_list l(other, kind, open, id))', 'wider'],
];

/** Shapes that the published ones lack. */
export const MORE_FIXTURES: readonly Pick<RlsFixture, 'name' | 'sql'>[] = [
  {
    name: 'some_columns',
    sql: `create table doc (id int primary key, secret text); grant select (id) on doc to :auth;`,
  },
  {
    name: 'without_using',
    sql: `create table doc (id int primary key); alter table doc enable row level security; grant select on doc to :auth;
      create policy nothing on doc for select to :auth;`,
  },
  {
    name: 'user_of_definer',
    sql: `create table doc (id int primary key, owner_name text); alter table doc enable row level security; grant select on doc to :auth;
      create function me() returns text language sql stable security definer as $$ select current_user::text $$;
      create policy own on doc for select to :auth using (owner_name = user_of_definer.me());`,
  },
  {
    name: 'schema_of_user',
    sql: `create table doc (id int primary key); create table member (doc_id int primary key);
      create schema :auth; grant usage on schema :auth to :auth; create table :auth.member (doc_id int primary key);
      alter table doc enable row level security; grant select on doc, member, :auth.member to :auth;
      create function docs() returns setof int language sql stable set search_path = "$user", :schema as
        $$ select doc_id from member $$;
      create policy listed on doc for select to :auth using (id in (select schema_of_user.docs()));`,
  },
  {
    name: 'not_readable',
    sql: `create table doc (id int primary key, open boolean not null); create table member (doc_id int primary key);
      alter table doc enable row level security; grant select on doc to :auth;
      create policy listed on doc for select to :auth using (open or id in (select doc_id from member));`,
  },
  {
    name: 'two_settings',
    sql: `create table doc (id int primary key, owner_id uuid); alter table doc enable row level security; grant select on doc to :auth;
      create function me() returns uuid language sql stable as $$ select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
        (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'))::uuid $$;
      create policy own on doc for select to :auth using (owner_id = (select two_settings.me()));`,
  },
  {
    name: 'default_tenant',
    sql: `create table doc (id int primary key, tenant text); alter table doc enable row level security; grant select on doc to :auth;
      create policy own on doc for select to :auth using (tenant = coalesce(current_setting('app.current_tenant', true), 'everybody'));`,
  },
  {
    name: 'time_zone',
    sql: `create table doc (id int primary key, at timestamptz not null); alter table doc enable row level security; grant select on doc to :auth;
      create policy today on doc for select to :auth using (at::date = current_date);`,
  },
  ...SOME_ROWS.map(([name, condition]) => ({
    name,
    sql: `create table doc (id int primary key); create table every (id int primary key);
      create table ${name}_list (id int primary key, kind int not null, open boolean not null, other int not null);
      alter table doc enable row level security; alter table every enable row level security;
      grant select on doc, every, ${name}_list to :auth;
      create policy part on doc for select to :auth using (${condition});
      create policy every on every for select to :auth using (id in (select l.id from ${name}_list l));`,
  })),
  {
    name: 'owner_and_forced',
    sql: `create table doc (id int primary key); alter table doc owner to :auth; alter table doc enable row level security;
      create table forced (id int primary key); alter table forced owner to :auth; alter table forced enable row level security;
      alter table forced force row level security; create policy few on forced for select using (id > 10);`,
  },
];

export const MUTANTS: readonly Mutant[] = [
  { fixture: 'own_rows', what: 'condition dropped', rows: all, verdict: 'wider' },
  {
    fixture: 'own_rows_wrapped',
    what: 'another attribute',
    rows: replaced("'sub'", "'org_id'"),
    verdict: 'differs',
  },
  {
    fixture: 'claim_of_metadata',
    what: 'another column',
    rows: replaced('tenant_id', 'owner_id'),
    verdict: 'differs',
  },
  {
    fixture: 'public_or_own',
    what: 'a grant dropped',
    rows: (rows) => rows.slice(0, 1),
    verdict: 'narrower',
  },
  {
    fixture: 'public_or_own_in_one',
    what: 'AND for OR',
    rows: (rows) => [rows.join(' and ')],
    verdict: 'narrower',
  },
  {
    fixture: 'published_or_team',
    what: 'OR for AND',
    rows: replaced("'draft'::text) and", "'draft'::text) or"),
    verdict: 'wider',
  },
  {
    fixture: 'second_factor',
    what: 'restrictive policy dropped',
    rows: () => ["owner_id = attribute('sub')"],
    verdict: 'wider',
  },
  {
    fixture: 'restrictive_tenant_and_permissive_owner',
    what: 'restrictive policy dropped from one grant',
    rows: (rows) => [rows[0] ?? '', "status = 'published'"],
    verdict: 'wider',
  },
  {
    fixture: 'not_archived',
    what: 'NULL check lost',
    rows: replaced("is distinct from 'draft'", "<> 'draft'"),
    verdict: 'narrower',
  },
  {
    fixture: 'restrictive_of_postgres',
    what: 'NULL check too many',
    rows: replaced('level <> 3', 'level is distinct from 3'),
    verdict: 'wider',
  },
  {
    fixture: 'nested_parentheses',
    what: 'NOT dropped',
    rows: replaced('not (public)', 'public'),
    verdict: 'differs',
  },
  {
    fixture: 'team_by_exists',
    what: 'condition of the membership dropped',
    attribute: (attribute) => ({ ...attribute, rows: "user_id = attribute('sub')" }),
    verdict: 'wider',
  },
  {
    fixture: 'teams_in_plpgsql',
    what: 'another literal in the membership',
    attribute: withRows("'owner'", "'member'"),
    verdict: 'differs',
  },
  {
    fixture: 'two_joins',
    what: 'inner membership of everybody',
    attribute: (attribute) =>
      attribute.rows.includes('sub') ? { ...attribute, rows: 'user_id is not null' } : attribute,
    verdict: 'wider',
  },
  {
    fixture: 'tenant_of_profile',
    what: 'another column of the membership',
    attribute: (attribute) => ({ ...attribute, column: 'id' }),
    verdict: 'differs',
  },
  {
    fixture: 'closure_table',
    what: 'the columns of the hierarchy exchanged',
    attribute: (attribute) =>
      attribute.column === 'descendant' ? { ...attribute, column: 'ancestor' } : attribute,
    verdict: 'differs',
  },
  {
    fixture: 'member_under_its_own_policy',
    what: 'row security of the inner table lost',
    attribute: (attribute) => ({ ...attribute, rows: 'user_id is not null' }),
    verdict: 'wider',
  },
  {
    fixture: 'tenant_or_bypass',
    what: 'another literal for a setting',
    rows: replaced("'on'", "'off'"),
    verdict: 'differs',
  },
  {
    fixture: 'role_in_claims',
    what: 'an alternative dropped',
    rows: () => ["'staff' = attribute('user_role')"],
    verdict: 'narrower',
  },
  {
    fixture: 'case_of_status',
    what: 'another bound',
    rows: replaced('level > 1', 'level >= 1'),
    verdict: 'wider',
  },
  { fixture: 'not_blocked', what: 'NOT EXISTS dropped', rows: all, verdict: 'wider' },
  {
    fixture: 'tenants_in_setting',
    what: 'another setting',
    rows: replaced("'tenants'", "'current_tenant'"),
    verdict: 'differs',
  },
  {
    fixture: 'helios_functions',
    what: 'a literal for any value',
    rows: replaced("status = 'published'::text", 'status is not null'),
    verdict: 'wider',
  },
  {
    fixture: 'service_or_login',
    what: 'an alternative dropped',
    rows: (rows) => rows.slice(0, 1),
    verdict: 'narrower',
  },
  {
    fixture: 'admin_flag',
    what: 'the flag of administrators dropped',
    attribute: (attribute) => ({ ...attribute, rows: "id = attribute('sub')" }),
    verdict: 'wider',
  },
  {
    fixture: 'claim_list',
    what: 'another claim',
    rows: replaced("'teams'", "'user_role'"),
    verdict: 'differs',
  },
  { fixture: 'database_user', what: 'condition dropped', rows: all, verdict: 'wider' },
  { fixture: 'some_columns', what: 'a column too many', columns: ['id', 'secret'], verdict: 'wider' },
  { fixture: 'without_using', what: 'a policy without USING as all rows', rows: all, verdict: 'wider' },
  {
    fixture: 'user_of_definer',
    what: 'current_user of the session for that of the owner',
    rows: () => ["owner_name = attribute('database_user')"],
    verdict: 'differs',
  },
  { fixture: 'not_readable', what: 'rows of a policy that fails', rows: () => ['open'], verdict: 'wider' },
  {
    fixture: 'default_tenant',
    what: 'the default for a missing setting lost',
    rows: () => ["tenant = attribute('current_tenant')"],
    verdict: 'narrower',
  },
  ...SOME_ROWS.map(([fixture, , verdict]) => ({
    fixture,
    what: 'all values for some',
    rows: () => [`id = attribute('${fixture}_list_id')`],
    verdict,
  })),
  // What changes no row stays equal.
  {
    fixture: 'two_settings',
    what: 'what the import does not read',
    rows: () => ["owner_id = attribute('sub')"],
    verdict: 'equal',
  },
  {
    fixture: 'tenant_function',
    what: 'a condition that follows',
    rows: (rows) => rows.map((row) => `${row} and tenant_id is not null`),
    verdict: 'equal',
  },
  {
    fixture: 'permission_check',
    what: 'written twice',
    rows: (rows) => [...rows, ...rows.map((row) => `not (not (${row}))`)],
    verdict: 'equal',
  },
  {
    fixture: 'roles_array',
    what: 'a list as alternatives',
    attribute: (attribute) => ({
      ...attribute,
      rows: "user_id = attribute('sub') and (role = 'admin' or role = 'owner')",
    }),
    verdict: 'equal',
  },
];

/** The policy with the faults, each in the fixture of its own. @param entityOf name of a fixture's entity `doc` */
export function mutated(
  policy: PolicyDocument,
  role: string,
  entityOf: (fixture: string) => string,
  tablesOf: (fixture: string) => ReadonlySet<string>,
): PolicyDocument {
  const { description = '', grants } = policy.roles[role] ?? { grants: [] };
  let left: readonly GrantDocument[] = grants;
  const attributes: Record<string, TableAttributeDocument> = { ...policy.attributes };
  for (const { fixture, rows, columns, attribute } of MUTANTS) {
    const on = entityOf(fixture);
    const own = left.filter((grant) => grant.on === on);
    const filters =
      rows?.(own.map((grant) => grant.rows ?? 'true')) ?? own.map((grant) => grant.rows ?? null);
    const changed = filters.map((filter) => ({
      on,
      columns: columns === undefined ? (own[0]?.columns ?? '*') : [...columns],
      ...(filter !== null && { rows: filter }),
    }));
    left = [...left.filter((grant) => grant.on !== on), ...changed];
    const tables = tablesOf(fixture);
    for (const [name, document] of Object.entries(attributes))
      if (attribute !== undefined && tables.has(document.on)) attributes[name] = attribute(document);
  }
  return { ...policy, attributes, roles: { ...policy.roles, [role]: { description, grants: left } } };
}
