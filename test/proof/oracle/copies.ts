import { createHmac } from 'node:crypto';
import type { Access, Catalog, Column, Relation } from 'osl-compiler';
import { column } from '../golden/catalog.js';
import { keyOf } from '../golden/outcome.js';
import {
  effectiveMask,
  type Filter,
  type Grant,
  isClear,
  type Subject,
  type Table,
  visibleColumns,
  visibleComputed,
  type World,
} from './world.js';

/**
 * The copies that a caller's answers are judged by: each table filtered and masked beforehand, in plain SQL that
 * shares nothing with the compiler. Sealed columns have a second form, `<name>_key`, in which a mask is NULL.
 */
const KEY = '_key';

/** SQL that makes the tables of `world` in `schema`, rows in the order given. */
export function tablesSql(world: World, schema: string): string {
  return world.tables.map((t) => tableSql(t, t.rows, schema)).join('\n');
}

export function tableSql(table: Table, rows: Table['rows'], schema: string): string {
  const columns = table.columns.map((c) => `${c.physical} ${c.type}`).join(', ');
  const values = rows.map((r) => `(${r.map(literal).join(', ')})`).join(', ');
  const insert = rows.length === 0 ? '' : `insert into ${schema}.${table.name} values ${values};`;
  return `drop table if exists ${schema}.${table.name}; create table ${schema}.${table.name} (${columns}); ${insert}`;
}

function literal(value: string | null): string {
  return value === null ? 'null' : `'${value.replaceAll("'", "''")}'`;
}

/** SQL that makes the caller's copies of the tables in `from`. */
export function copiesSql(world: World, from: string, to: string): string {
  const tables = world.tables
    .map((table) => {
      const shown = visibleColumns(table).map((v) => v.column);
      const lists = shown.map((c) => `${cellSql(c, table, world.subjects)} as ${c.name}`);
      const keys = shown
        .filter((c) => table.sealed.includes(c.name))
        .map((c) => `${keySql(c, table, world.subjects)} as ${c.name}${KEY}`);
      const rows = anyOf(table.grants, table, world.subjects);
      return `drop table if exists ${to}.${table.name};
        create table ${to}.${table.name} as select ${[...lists, ...keys].join(', ')} from ${from}.${table.name} where ${rows};`;
    })
    .join('\n');
  const computed = world.tables.flatMap((table) =>
    visibleComputed(table, world).map(({ name, type, copied }) => {
      const value = copied.replaceAll('@', 'a.').replaceAll('#', `${to}.`);
      return `alter table ${to}.${table.name} add ${name} ${type}; update ${to}.${table.name} a set ${name} = ${value};`;
    }),
  );
  return [tables, ...computed].join('\n');
}

/**
 * SQL that makes the copies in `from` once more in `to`, as views in which computed columns are joined when they are
 * read, as in a governed statement: which of their rows a condition runs on is then the planner's choice.
 */
export function joinedCopiesSql(world: World, from: string, to: string): string {
  return world.tables
    .map((table, i) => {
      const computed = visibleComputed(table, world);
      const shown = visibleColumns(table).map(({ column: { name } }) => name);
      const keys = shown.filter((name) => table.sealed.includes(name)).map((name) => `${name}${KEY}`);
      const own = [...shown, ...keys].map((name) => `a.${name}`);
      const made = computed.map((c) => `(${c.joined.replaceAll('@', 'a.')})::${c.type} as ${c.name}`);
      const next = world.tables[i + 1]?.name;
      const isJoined = computed.some(({ keys: through }) => through.length > 0);
      const join = isJoined ? ` left join ${from}.${next} p on p.id${KEY} = a.ref${KEY}` : '';
      return `create view ${to}.${table.name} as select ${[...own, ...made].join(', ')} from ${from}.${table.name} a${join};`;
    })
    .join('\n');
}

function cellSql(column: Column, table: Table, subjects: readonly Subject[]): string {
  const [clear, covered] = conditions(column, table, subjects);
  const mask = maskSql(column, table);
  return `(case when ${clear} then ${column.physical} when ${covered} then ${mask} else ${redactedSql(column)} end)::${column.type}`;
}

function keySql(column: Column, table: Table, subjects: readonly Subject[]): string {
  const [clear, covered] = conditions(column, table, subjects);
  const mask = effectiveMask(column, table) === 'hash' ? maskSql(column, table) : 'null';
  return `(case when ${clear} then ${column.physical} when ${covered} then ${mask} end)::${column.type}`;
}

function conditions(column: Column, table: Table, subjects: readonly Subject[]): readonly [string, string] {
  const covering = table.grants.filter((g) => g.columns.has(column.name));
  const clearing = covering.filter((g) => isClear(column, g));
  return [anyOf(clearing, table, subjects), anyOf(covering, table, subjects)];
}

/** SQL that holds for the rows of `table` that any of `grants` shows. */
export function anyOf(grants: readonly Grant[], table: Table, subjects: readonly Subject[]): string {
  const each = grants.map((g) => (g.filter === null ? 'true' : filterSql(g.filter, table, subjects)));
  return each.length === 0 ? 'false' : `(${each.join(' or ')})`;
}

/** The filter holds if it holds for every subject of the chain; one that lacks an attribute sees nothing. */
function filterSql(filter: Filter, table: Table, subjects: readonly Subject[]): string {
  const physical = (text: string): string =>
    table.columns.reduce(
      (s, c) => s.replace(new RegExp(`(?<![@:\\w])${c.name}(?!\\w)`, 'g'), c.physical),
      text,
    );
  if (!filter.text.includes('@')) return `(${physical(filter.text)})`;
  const each = subjects.map((subject) => {
    let lacks = false;
    const text = filter.text.replace(/@(\w+):(\w+)/g, (_, column: string, name: string) => {
      const values = subject.get(name);
      if (values === undefined) lacks = true;
      if (values === undefined || values === 'any') return 'true';
      const found = table.columns.find((c) => c.name === column);
      return `${found?.physical} in (select unnest(array[${values.map(literal).join(', ')}]::${found?.type}[]))`;
    });
    return lacks ? 'false' : `(${text})`;
  });
  return `(${each.join(' and ')})`;
}

/** SQL that tells of each row its id, whether it is visible, and which columns are clear, then which are covered. */
export function rightsSql(table: Table, subjects: readonly Subject[], schema: string): string {
  const id = table.columns[0]?.physical ?? 'id';
  const both = table.columns.map((c) => conditions(c, table, subjects));
  const flags = [
    anyOf(table.grants, table, subjects),
    ...both.map(([clear]) => clear),
    ...both.map(([, covered]) => covered),
  ];
  return `select ${id}, ${flags.map((f) => `coalesce(${f}, false)`).join(', ')} from ${schema}.${table.name}`;
}

function redactedSql(column: Column): string {
  return column.type === 'text' ? `'[redacted]'` : 'null';
}

function maskSql(column: Column, table: Table): string {
  const kind = effectiveMask(column, table);
  const p = column.physical;
  switch (kind) {
    case 'redact':
    case 'deny':
      return redactedSql(column);
    case 'null':
      return 'null';
    case 'hash':
      return hashSql(column, table);
    case 'partial':
      return `case when ${p} is not null then substr(${p}, 1, 1) || repeat('*', 3) end`;
    case 'year':
      return column.type === 'date'
        ? `make_date(extract(year from ${p})::int, 1, 1)`
        : column.type === 'timestamp'
          ? `make_timestamp(extract(year from ${p})::int, 1, 1, 0, 0, 0)`
          : `make_timestamptz(extract(year from ${p} at time zone 'UTC')::int, 1, 1, 0, 0, 0, 'UTC')`;
    default: {
      const unknown: never = kind;
      throw new Error(`no mask ${String(unknown)}`);
    }
  }
}

/** Each value's HMAC as Node makes it, so that the SQL of the compiler is checked against another implementation. */
function hashSql(column: Column, table: Table): string {
  const domain = column.keyDomain ?? column.sensitivity ?? column.name;
  const at = table.columns.indexOf(column);
  const values = [...new Set(table.rows.map((r) => r[at]).filter((v) => v !== null && v !== undefined))];
  const arms = values.map((v) => {
    const digest = createHmac('sha256', keyOf(domain)).update(v, 'utf8').digest('hex');
    return `when ${literal(v)} then '${digest}'`;
  });
  return arms.length === 0 ? 'null' : `case ${column.physical} ${arms.join(' ')} end`;
}

// ---------------------------------------------------------------- the copies, as the compiler sees them

export function copyCatalog(world: World, schema: string): Catalog {
  const relations = world.tables.map((table): [string, Relation] => {
    const shown = visibleColumns(table);
    const plain = shown.map(({ column }) => ({ ...column, physical: column.name, sensitivity: null }));
    const sealed = shown.map((v) => v.column).filter((c) => table.sealed.includes(c.name));
    const keys = sealed.map((c) => ({
      ...c,
      name: `${c.name}${KEY}`,
      physical: `${c.name}${KEY}`,
      sensitivity: null,
    }));
    const computed = visibleComputed(table, world).map(({ name, type }) => column(name, type));
    const hasKey = shown.some((v) => v.column.name === 'id' && v.masked === 'none');
    return [
      table.name,
      {
        kind: 'entity',
        name: table.name,
        description: null,
        connector: 'main',
        schema,
        table: table.name,
        columns: [...plain, ...computed, ...keys],
        primaryKey: hasKey ? ['id'] : [],
        sealedKeys: [...sealed.map((c) => c.name), ...keys.map((c) => c.name)],
      },
    ];
  });
  return {
    version: 'copy',
    relations: new Map(relations),
    metrics: new Map(),
    facets: new Map(),
    edges: [],
    joins: 'any',
  };
}

/** Everything of `catalog` in the clear. */
export function allClear(catalog: Catalog): Access {
  const relations = [...catalog.relations.values()].map((r) => ({
    name: r.name,
    rights: {
      grants: [
        {
          id: 'all',
          columns: new Set(r.columns.map((c) => c.name)),
          unmask: new Set<string>(),
          filter: null,
        },
      ],
      masks: new Map(),
      denied: new Set<string>(),
    },
  }));
  return {
    signature: 'clear',
    policyVersion: 'p',
    chainLength: 1,
    relations: new Map(relations.map(({ name, rights }) => [name, rights])),
  };
}
