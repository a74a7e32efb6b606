import { stringify } from 'yaml';
import { TENANT } from '../support/gateway.js';
import { COLUMNS, GUARDED, KEYS, SCHEMA, TABLES, type TableName } from './data.js';
import type { ByHand } from './questions.js';

export type PolicyName = 'none' | 'tenant' | 'failing' | 'masked';

/** The tenant whose rows the policy's subject sees. */
const OWN = 't1';

/** Row filter of a table: as written in the policy, and as written by hand with the columns' prefix. */
interface RowFilter {
  readonly policy: string;
  readonly byHand: (prefix: string) => string;
  /** Expression for Postgres row security. */
  readonly guarded: string;
}

const tenant = (column: string): RowFilter => ({
  policy: `${column} = attribute('tenant')`,
  byHand: (prefix) => `${prefix}${column} = '${OWN}'`,
  guarded: `${column} = current_setting('app.tenant')`,
});
const always = (condition: (prefix: string) => string): RowFilter => ({
  policy: condition(''),
  byHand: condition,
  guarded: condition(''),
});

type RowFilters = Readonly<Partial<Record<TableName, RowFilter>>>;

const OF_TENANT: RowFilters = {
  customer: tenant('c_tenant'),
  orders: tenant('o_tenant'),
  lineitem: tenant('l_tenant'),
};
/** Filters that may fail: a division of numerics, and LIKE with a pattern from the row. */
const FAILING: RowFilters = {
  orders: always((p) => `${p}o_clerk like ${p}o_pattern`),
  lineitem: always((p) => `${p}l_extendedprice / ${p}l_quantity > 1000`),
};

const FILTERS: Readonly<Record<PolicyName, RowFilters>> = {
  none: {},
  tenant: OF_TENANT,
  failing: FAILING,
  masked: OF_TENANT,
};

/** Masked columns, each with the expression that one would write by hand. */
const MASKS: Readonly<Record<string, { readonly label: string; readonly byHand: string }>> = {
  c_name: { label: 'name', byHand: "left(c_name, 1) || '***'" },
  c_address: { label: 'contact', byHand: "'[redacted]'::text" },
  c_comment: { label: 'contact', byHand: "'[redacted]'::text" },
  s_name: { label: 'name', byHand: "left(s_name, 1) || '***'" },
  s_address: { label: 'contact', byHand: "'[redacted]'::text" },
  s_comment: { label: 'contact', byHand: "'[redacted]'::text" },
};

export const POLICIES = Object.keys(FILTERS) as readonly PolicyName[]; // Object.keys loses the key type

export function byHand(policy: PolicyName): ByHand {
  return {
    condition: (table, prefix) => FILTERS[policy][table]?.byHand(prefix) ?? null,
    column: (name) => (policy === 'masked' ? MASKS[name]?.byHand : undefined) ?? name,
  };
}

/** Policies that Postgres row security can express exactly; it has no masks. */
export const GUARDED_POLICIES: readonly PolicyName[] = ['tenant', 'failing'];

const guardedRole = (policy: PolicyName): string => `osl_tpch_${policy}`;

/** Statements that set up Postgres row security with one role per policy. */
export function guardedScript(): string {
  const roles = GUARDED_POLICIES.map((policy) => {
    const role = guardedRole(policy);
    const rules = TABLES.map((table) => {
      const filter = FILTERS[policy][table];
      return `create policy ${policy} on ${table} for select to ${role} using (${filter?.guarded ?? 'true'})`;
    });
    return [
      `create role ${role}`,
      `grant usage on schema ${GUARDED} to ${role}`,
      `grant select on all tables in schema ${GUARDED} to ${role}`,
      ...rules,
    ].join('; ');
  });
  const enabled = TABLES.filter((t) => GUARDED_POLICIES.some((p) => FILTERS[p][t] !== undefined)).map(
    (table) => `alter table ${table} enable row level security`,
  );
  return `set search_path = ${GUARDED}; set app.tenant = '${OWN}'; ${roles.join('; ')}; ${enabled.join('; ')}; reset search_path`;
}

/** First statement in a session of a guarded role. */
export const guardedSession = (policy: PolicyName): string =>
  `set role ${guardedRole(policy)}; set search_path = ${GUARDED}; set app.tenant = '${OWN}'`;

/** Drops the roles, because they belong to the server, which may outlive the bench. */
export const dropRoles = (): string =>
  GUARDED_POLICIES.map((p) => `drop owned by ${guardedRole(p)}; drop role ${guardedRole(p)}`).join('; ');

export const subjectOf = (policy: PolicyName): string => `user:${policy}`;

export function manifestText(): string {
  const physical = (table: TableName) =>
    Object.fromEntries(
      Object.entries(COLUMNS[table]).map(([name, type]) => {
        const label = MASKS[name]?.label;
        return [name, { type, nullable: false, ...(label === undefined ? {} : { sensitivity: label }) }];
      }),
    );
  return stringify({
    version: 1,
    tenant: TENANT,
    features: { joins: 'any' },
    connectors: {
      main: {
        kind: 'postgres',
        url_env: 'BENCH_DATABASE_URL',
        tables: Object.fromEntries(TABLES.map((t) => [`${SCHEMA}.${t}`, { columns: physical(t) }])),
      },
    },
    entities: Object.fromEntries(
      TABLES.map((t) => [
        t,
        { source: `main.${SCHEMA}.${t}`, primary_key: [...KEYS[t]], columns: Object.keys(COLUMNS[t]) },
      ]),
    ),
  });
}

export function policyText(): string {
  const unmask = [...new Set(Object.values(MASKS).map((m) => m.label))];
  const grants = (policy: PolicyName) =>
    TABLES.map((on) => {
      const filter = FILTERS[policy][on];
      return {
        on,
        columns: '*',
        ...(filter === undefined ? {} : { rows: filter.policy }),
        ...(policy === 'masked' ? {} : { unmask }),
      };
    });
  return stringify({
    version: 1,
    tenant: TENANT,
    subjects: Object.fromEntries(
      POLICIES.map((p) => [
        subjectOf(p),
        { ceiling: [p], attributes: { tenant: OWN }, admin: ['TENANT_ADMIN'] },
      ]),
    ),
    roles: Object.fromEntries(POLICIES.map((p) => [p, { grants: grants(p) }])),
    masks: { name: 'partial', contact: 'redact' },
    limits: { query: 1_000_000, catalog: 1_000_000 },
  });
}
