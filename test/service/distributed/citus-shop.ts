import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Citus } from '../../support/citus.js';
import { temporary } from '../../tools/cli/support.js';
import type { Place } from '../operations/support.js';

/**
 * A shop of several tenants on Citus, three times: `parts` distributed by tenant, `twin` likewise with other hidden
 * rows and masked cells, and `one` as plain tables of the coordinator with the rows of `parts`.
 */
const TENANTS = 40;
/** The tenant whose rows the caller `tenant` sees. */
export const OWN_TENANT = 7;
/** The tenants whose rows the caller `tenants` sees. */
export const SEVERAL_TENANTS = [3, OWN_TENANT, 21] as const;

const TABLES = {
  nation: { id: 'int4', name: 'text' },
  customer: { tenant_id: 'int4', id: 'int4', name: 'text', email: 'text', nation_id: 'int4', joined: 'date' },
  orders: {
    tenant_id: 'int4',
    id: 'int4',
    customer_id: 'int4',
    status: 'text',
    placed: 'date',
    amount: 'numeric',
  },
  line: { tenant_id: 'int4', order_id: 'int4', no: 'int4', price: 'numeric', quantity: 'int4', sku: 'text' },
} as const;
type TableName = keyof typeof TABLES;
const NAMES = Object.keys(TABLES) as readonly TableName[]; // Object.keys loses the key type

const KEYS: Readonly<Record<TableName, readonly string[]>> = {
  nation: ['id'],
  customer: ['tenant_id', 'id'],
  orders: ['tenant_id', 'id'],
  line: ['tenant_id', 'order_id', 'no'],
};

/** @param change added to what the caller `tenant` must not see: rows of others, and addresses */
const fillText = (schema: string, change: number, customers: number): string => `
  set search_path = ${schema};
  insert into nation select i, 'nation ' || i from generate_series(1, 12) i;
  insert into customer select 1 + i % ${TENANTS}, i, 'name ' || i,
      'mail' || (i + ${change} * 13) || '@example.org', 1 + i % 12, date '2025-01-01' + i % 400
    from generate_series(1, ${customers}) i;
  insert into orders select tenant_id, id * 10 + n, id, (array['open', 'paid', 'sent', 'back'])[1 + (id * n + 3 * n) % 4],
      date '2026-01-01' + (id * 7 + n) % 300, ((id * 31 + n * 17) % 1000) / 10.0
    from customer, generate_series(1, 4) n;
  insert into line select tenant_id, id, n, ((id * 7 + n * 13) % 500) / 10.0, (id + n) % 10, 'sku ' || (id * n) % 90
    from orders, generate_series(1, 2) n;
  update customer set nation_id = 1 + (nation_id + ${change}) % 12, name = name || repeat('x', ${change})
    where tenant_id <> ${OWN_TENANT};
  update line set price = price + ${change}, quantity = (quantity + ${change}) % 10 where tenant_id <> ${OWN_TENANT};
  delete from orders where tenant_id <> ${OWN_TENANT} and id % 11 = 0 and ${change} > 0;`;

function createText(schema: string): string {
  const tables = NAMES.map((name) => {
    const columns = Object.entries(TABLES[name]).map(([column, type]) => `${column} ${type}`);
    return `create table ${name} (${columns.join(', ')}, primary key (${KEYS[name].join(', ')}));`;
  });
  return `create schema ${schema}; set search_path = ${schema}; ${tables.join(' ')}`;
}

/** Statements that distribute the tables of `schema`, each in a transaction of its own. */
const distribute = (schema: string): readonly string[] => [
  `select create_reference_table('${schema}.nation')`,
  `select create_distributed_table('${schema}.customer', 'tenant_id')`,
  ...['orders', 'line'].map(
    (name) =>
      `select create_distributed_table('${schema}.${name}', 'tenant_id', colocate_with => '${schema}.customer')`,
  ),
];

/** Suffix of the entities over each schema. */
const SUFFIXES = { parts: '', twin: '_twin', one: '_one' } as const;
type SchemaName = keyof typeof SUFFIXES;
const SCHEMA_NAMES = Object.keys(SUFFIXES) as readonly SchemaName[]; // Object.keys loses the key type

/** @param customers number of customers; each has four orders of two lines */
export async function fillShop(
  { coordinator }: Citus,
  customers = 800,
  schemas: readonly SchemaName[] = SCHEMA_NAMES,
): Promise<void> {
  for (const schema of schemas) {
    await coordinator.query(
      `${createText(schema)} ${fillText(schema, schema === 'twin' ? 1 : 0, customers)}`,
    );
    if (schema !== 'one') for (const statement of distribute(schema)) await coordinator.query(statement);
    await coordinator.query(
      `grant usage on schema ${schema} to osl_reader; grant select on all tables in schema ${schema} to osl_reader`,
    );
    for (const name of NAMES) await coordinator.query(`analyze ${schema}.${name}`);
  }
}

/** Entities of one schema: a question with `{}` behind each name is about those with the suffix. */
export const inSchema = (text: string, schema: SchemaName): string => text.replaceAll('{}', SUFFIXES[schema]);

const SENSITIVE: Readonly<Record<string, string>> = { email: 'mail' };

function manifestText(tenant: string, schemas: readonly SchemaName[]): string {
  const declared = schemas.flatMap((schema) =>
    NAMES.map((name) => {
      const columns = Object.entries(TABLES[name]).map(([column, type]) => {
        const sensitivity = SENSITIVE[column];
        return [column, { type, ...(sensitivity === undefined ? {} : { sensitivity }) }];
      });
      return [`${schema}.${name}`, { columns: Object.fromEntries(columns) }];
    }),
  );
  const entities = schemas.flatMap((schema) =>
    NAMES.map((name) => [
      `${name}${SUFFIXES[schema]}`,
      {
        source: `db.${schema}.${name}`,
        primary_key: [...KEYS[name]],
        columns: Object.keys(TABLES[name]),
      },
    ]),
  );
  return stringify({
    version: 1,
    tenant,
    features: { joins: 'any' },
    connectors: { db: { kind: 'postgres', url_env: 'STORE_URL', tables: Object.fromEntries(declared) } },
    entities: Object.fromEntries(entities),
  });
}

const OWN = "tenant_id = attribute('tenant')";
const grantsOn = (
  schemas: readonly SchemaName[],
  rows: string | null,
  unmask: readonly string[],
): readonly object[] =>
  schemas.flatMap((schema) =>
    NAMES.map((name) => ({
      on: `${name}${SUFFIXES[schema]}`,
      columns: '*',
      unmask,
      ...(rows === null || name === 'nation' ? {} : { rows }),
    })),
  );

export const ROLES = ['analyst', 'tenant', 'tenants', 'mixed'] as const;

function policyText(tenant: string, schemas: readonly SchemaName[]): string {
  const grants = (rows: string | null, unmask: readonly string[]) => grantsOn(schemas, rows, unmask);
  return stringify({
    version: 1,
    tenant,
    subjects: {
      'user:analyst': { ceiling: ['analyst'] },
      'user:tenant': { ceiling: ['tenant'], attributes: { tenant: OWN_TENANT } },
      'user:tenants': { ceiling: ['tenants'], attributes: { tenant: [...SEVERAL_TENANTS] } },
      'user:status': { ceiling: ['status'] },
      'user:mixed': { ceiling: ['mixed'], attributes: { tenant: OWN_TENANT } },
      'user:admin-tenants': {
        ceiling: ['tenants'],
        admin: ['TENANT_ADMIN'],
        attributes: { tenant: [...SEVERAL_TENANTS] },
      },
      'user:admin': {
        ceiling: [...ROLES],
        admin: ['TENANT_ADMIN'],
        attributes: { tenant: OWN_TENANT },
      },
    },
    roles: {
      analyst: { grants: grants(null, ['mail']) },
      tenant: { grants: grants(OWN, []) },
      tenants: { grants: grants(OWN, []) },
      status: { grants: [{ on: 'orders', columns: '*', rows: "status = 'open'" }] },
      // Reads addresses of its own tenant unmasked, and all other rows masked.
      mixed: { grants: [...grants(null, []), ...grants(OWN, ['mail'])] },
    },
    masks: { mail: 'redact' },
    limits: { query: 1_000_000, catalog: 1_000_000 },
  });
}

/** Manifest and policy of the shop. */
export function shopFiles(tenant = 'demo', schemas: readonly SchemaName[] = SCHEMA_NAMES): Place {
  const dir = temporary();
  const [manifest, policy, dataDir] = [
    join(dir, 'manifest.yaml'),
    join(dir, 'policy.yaml'),
    join(dir, 'data'),
  ];
  writeFileSync(manifest, manifestText(tenant, schemas));
  writeFileSync(policy, policyText(tenant, schemas));
  mkdirSync(dataDir);
  return { dataDir, manifest, policy };
}

/** SQL that creates views of `parts` in the schema `hand_…` of a role, with its row filter and mask written by hand. */
export function viewsByHand(role: 'analyst' | 'tenant' | 'tenants'): string {
  const filter = {
    analyst: 'true',
    tenant: `tenant_id = ${OWN_TENANT}`,
    tenants: `tenant_id in (${SEVERAL_TENANTS.join()})`,
  };
  const views = NAMES.map((name) => {
    const columns = Object.keys(TABLES[name]).map((column) =>
      role !== 'analyst' && column in SENSITIVE ? `'[redacted]'::text as ${column}` : column,
    );
    const rows = name === 'nation' ? 'true' : filter[role];
    return `create view hand_${role}.${name} as select ${columns.join(', ')} from parts.${name} where ${rows};`;
  });
  return `create schema hand_${role}; ${views.join(' ')} grant usage on schema hand_${role} to osl_reader;
    grant select on all tables in schema hand_${role} to osl_reader`;
}

/** What people ask of such a shop. */
export const QUESTIONS: ReadonlyMap<string, string> = new Map([
  [
    'rows',
    "select id, amount from orders{} where placed >= date '2026-06-01' order by id, tenant_id limit 50",
  ],
  ['a row', 'select id, status from orders{} where tenant_id = 7 and id = 61'],
  ['a row by half of its key', 'select id, status from orders{} where id = 461'],
  ['a guarded condition', "select id from orders{} where lower(status) = 'open' and id < 500 order by id"],
  [
    'a condition that may fail',
    'select count(*) from line{} where 1000 / nullif(quantity, 0) > 200 and price > 10',
  ],
  ['masked cells', 'select id, name, email from customer{} order by id limit 40'],
  ['a condition on masked cells', "select count(*) from customer{} where email = '[redacted]'"],
  ['like', "select count(*) from customer{} where name like 'name 1%'"],
  ['in all', 'select count(*), sum(amount), min(placed), max(amount), avg(amount) from orders{}'],
  ['by tenant', 'select tenant_id, sum(amount), count(*) from orders{} group by tenant_id order by 1'],
  [
    'by something else',
    'select status, sum(amount), count(*), avg(amount) from orders{} group by status order by 1',
  ],
  ['counted once', 'select count(distinct customer_id), count(distinct status) from orders{}'],
  [
    'counted once, by something else',
    'select status, count(distinct customer_id) from orders{} group by status order by 1',
  ],
  [
    'a group that is kept',
    'select status, count(*) from orders{} group by status having count(*) > 3 order by 1',
  ],
  ['distinct', 'select distinct nation_id from customer{} order by 1'],
  [
    'a list',
    "select status, string_agg(id::text, ',' order by id) from orders{} where id < 300 group by 1 order by 1",
  ],
  [
    'a join by tenant',
    `select c.name, sum(o.amount) from customer{} c join orders{} o on o.tenant_id = c.tenant_id and o.customer_id = c.id
     group by c.tenant_id, c.id, c.name order by 2 desc, 1 limit 10`,
  ],
  [
    'a join of three',
    `select c.name, sum(l.price * l.quantity) from customer{} c
     join orders{} o on o.tenant_id = c.tenant_id and o.customer_id = c.id
     join line{} l on l.tenant_id = o.tenant_id and l.order_id = o.id group by 1 order by 2 desc, 1 limit 5`,
  ],
  [
    'a join with a reference table',
    'select n.name, count(*) from customer{} c join nation{} n on n.id = c.nation_id group by 1 order by 1',
  ],
  [
    'a join by something else',
    `select count(*), sum(o.amount) from customer{} c join orders{} o on o.customer_id = c.id where c.id < 200`,
  ],
  [
    'a left join by tenant',
    `select c.id, o.id from customer{} c left join orders{} o on o.tenant_id = c.tenant_id and o.customer_id = c.id
     and o.amount > 90 where c.id < 100 order by 1, 2`,
  ],
  [
    'a left join by something else',
    `select c.id, o.id from customer{} c left join orders{} o on o.customer_id = c.id and o.amount > 90
     where c.id < 50 order by 1, 2`,
  ],
  [
    'a right join with a reference table',
    `select n.name, count(c.id) from customer{} c right join nation{} n on n.id = c.nation_id and c.id < 40
     group by 1 order by 1`,
  ],
  [
    'a full join',
    `select count(*), count(c.id), count(o.id) from customer{} c full join orders{} o
     on o.tenant_id = c.tenant_id and o.customer_id = c.id and o.amount > 50`,
  ],
  [
    'a semi-join',
    `select count(*) from customer{} c where exists (select 1 from orders{} o
     where o.tenant_id = c.tenant_id and o.customer_id = c.id and o.amount > 95)`,
  ],
  [
    'an IN by something else',
    'select count(*) from customer{} c where c.id in (select o.customer_id from orders{} o where o.amount > 99)',
  ],
  [
    'an anti-join',
    `select count(*) from customer{} c where not exists (select 1 from orders{} o
     where o.tenant_id = c.tenant_id and o.customer_id = c.id and o.status = 'back')`,
  ],
  [
    'a correlated scalar',
    `select c.id, (select max(o.amount) from orders{} o where o.tenant_id = c.tenant_id and o.customer_id = c.id)
     from customer{} c where c.id < 60 order by 1`,
  ],
  [
    'a correlated scalar by something else',
    `select c.id, (select max(o.amount) from orders{} o where o.customer_id = c.id) from customer{} c
     where c.id < 60 order by 1`,
  ],
  ['a scalar', 'select count(*) from orders{} where amount > (select avg(amount) from orders{})'],
  [
    'lateral',
    `select c.id, x.amount from customer{} c cross join lateral (select o.amount from orders{} o
     where o.tenant_id = c.tenant_id and o.customer_id = c.id order by o.amount desc limit 1) x
     where c.id < 60 order by 1`,
  ],
  [
    'a window by tenant',
    `select id, rank() over (partition by tenant_id order by amount desc, id) from orders{} where id < 900 order by id`,
  ],
  [
    'a window by something else',
    `select id, rank() over (partition by status order by amount desc, id) from orders{} where id < 900 order by id`,
  ],
  [
    'WITH',
    `with big as (select tenant_id, customer_id, sum(amount) as total from orders{} group by 1, 2)
     select count(*), max(total) from big where total > 150`,
  ],
  [
    'WITH RECURSIVE',
    `with recursive r as (select id, nation_id from customer{} where id = 7 union
     select c.id, c.nation_id from customer{} c join r on c.id = r.id + 40 where c.id < 200)
     select count(*) from r`,
  ],
  ['UNION', 'select status from orders{} where id < 100 union select name from nation{} order by 1'],
  [
    'UNION ALL',
    'select id from orders{} where id < 100 union all select id from customer{} where id < 30 order by 1',
  ],
  [
    'EXCEPT',
    'select id from customer{} except select customer_id from orders{} where amount > 50 order by 1',
  ],
  [
    'INTERSECT',
    "select customer_id from orders{} where status = 'open' intersect select customer_id from orders{} where status = 'paid' order by 1",
  ],
  ['ROLLUP', 'select status, count(*), grouping(status) from orders{} group by rollup (status) order by 1'],
  [
    'GROUPING SETS',
    'select status, customer_id, count(*) from orders{} where id < 200 group by grouping sets ((status), (customer_id)) order by 1, 2',
  ],
  [
    'a filter of an aggregate',
    "select tenant_id, count(*) filter (where status = 'paid') from orders{} group by 1 order by 1",
  ],
  ['a median', 'select percentile_cont(0.5) within group (order by amount) from orders{}'],
  [
    'DISTINCT ON',
    'select distinct on (tenant_id) tenant_id, id from orders{} order by tenant_id, amount desc, id',
  ],
  ['OFFSET', 'select id from orders{} order by id, tenant_id offset 5 limit 5'],
  // Citus drops WITH TIES in a join, so the gateway refuses it.
  [
    'WITH TIES of a join',
    'select c.joined from customer{} c join orders{} o on o.customer_id = c.id order by 1 desc fetch first 3 rows with ties',
  ],
  ['WITH TIES', 'select status, amount from orders{} order by amount desc fetch first 3 rows with ties'],
  [
    'TABLESAMPLE of one tenant',
    'select count(*) from orders{} tablesample bernoulli (100) where tenant_id = 7',
  ],
  ['TABLESAMPLE', 'select count(*) from orders{} tablesample bernoulli (100)'],
  [
    'VALUES',
    "select v.a, count(o.id) from (values ('open'), ('paid')) v(a) left join orders{} o on o.status = v.a group by 1 order by 1",
  ],
  [
    'VALUES first',
    'select v.a, o.id from (values (60), (70)) v(a) left join orders{} o on o.id = v.a order by 1, 2',
  ],
  [
    'a self-join',
    `select count(*) from orders{} a join orders{} b on a.tenant_id = b.tenant_id and a.customer_id = b.customer_id
     and a.id < b.id`,
  ],
  [
    'a subquery as LIMIT',
    'select id from orders{} order by id, tenant_id limit (select min(n.id) + 3 from nation{} n)',
  ],
  [
    'a reference table, and rows of each',
    'select n.name from nation{} n where exists (select 1 from customer{} c where c.nation_id = n.id and c.id < 60) order by 1',
  ],
  [
    'a lateral outer join of a reference table',
    `select n.name, x.m from nation{} n left join lateral
     (select max(c.id) as m from customer{} c where c.nation_id = n.id) x on true order by 1`,
  ],
  [
    'lateral of a reference table',
    `select n.name, x.m from nation{} n cross join lateral
     (select max(c.id) as m from customer{} c where c.nation_id = n.id) x order by 1`,
  ],
  ['a cross join', 'select count(*) from customer{} c cross join orders{} o'],
]);
