import { createHash } from 'node:crypto';
import {
  type Catalog,
  columnsRead,
  type Expr,
  type MatchedAttribute,
  predicateSql,
  quoteLiteral,
  type Relation,
} from 'osl-compiler';
import { attributesOf, MAX_CHAIN, type PolicySnapshot, roleAccess, roleIn } from '../../../policy/index.js';
import type { Connector } from '../manifest/index.js';
import { call, texts } from './functions.js';

/**
 * A row filter of the policy as SQL over the session's rights: true if it holds for every subject in the chain.
 * `granted` checks that each of them has the attributes.
 */
function filterSql(filter: Expr): string {
  const conjuncts = filter.kind === 'and' ? filter.args : [filter];
  return conjuncts.map((c) => (distributes(c) ? shared(c) : unrolled(c))).join(' and ');
}

/**
 * True if testing `expr` for each subject and combining the results with AND gives the same as testing it once with
 * the ANDed attributes. That holds for AND, and for OR if at most one arm has attributes.
 */
function distributes(expr: Expr): boolean {
  if (!mentions(expr)) return true;
  switch (expr.kind) {
    case 'attribute_match':
      return !mentions(expr.arg);
    case 'and':
      return expr.args.every(distributes);
    case 'or':
      return expr.args.filter(mentions).length === 1 && expr.args.every(distributes);
    default:
      return false;
  }
}

function mentions(expr: Expr): boolean {
  return attributesOf(expr).size > 0;
}

/** SQL that tests the filter once, with the attribute values that all subjects in the chain share. */
function shared(expr: Expr): string {
  return predicateSql(expr, (m) => matchSql(m, 'null::int4'));
}

/** SQL that tests the filter for each subject, up to the longest chain that a token may have. */
function unrolled(expr: Expr): string {
  let sql = '';
  for (let i = MAX_CHAIN - 1; i >= 0; i--) {
    const one = predicateSql(expr, (m) => matchSql(m, `${i}`));
    sql = i === MAX_CHAIN - 1 ? one : `(${one} and (${call('beyond', `${i + 1}`)} or ${sql}))`;
  }
  return sql;
}

function matchSql({ attribute, arg, operator, type }: MatchedAttribute, subject: string): string {
  const unbound = call('unbound', quoteLiteral(attribute), subject);
  // The cast has no effect on the value, but without it this would be parsed as a subquery of rows.
  const values = `${call('shared', quoteLiteral(attribute), subject, `null::${type}`)}::${type}`;
  return `(${unbound} or ${arg} ${operator} any (${values}))`;
}

/** Version of the generated SQL; incrementing it causes existing installations to be rewritten. */
const FORMAT = 1;

/** Row security of one database, derived from the policy in force. */
export interface RowSecurity {
  /** Equal versions allow the same rows and columns for the same rights. Signed rights include the version. */
  readonly version: string;
  readonly role: string;
  /** Tables by `schema.table`. */
  readonly tables: ReadonlyMap<string, GuardedTable>;
  /** Declared tables that no grant reaches; the role may not read them at all. */
  readonly closed: readonly Pick<GuardedTable, 'schema' | 'table'>[];
}

export interface GuardedTable {
  readonly schema: string;
  readonly table: string;
  /** SQL predicate on the table's columns and the session's rights. */
  readonly rows: string;
  /** Columns that at least one grant needs, sorted. The role may read only these. */
  readonly columns: readonly string[];
}

type DeclaredTables = Pick<Connector, 'name' | 'tables'>;

const KNOWN = new WeakMap<PolicySnapshot, Map<string, RowSecurity>>();

/** Row security that `snapshot` requires in the database of `connector`, where statements run as `role`. */
export function rowSecurityOf(
  connector: DeclaredTables,
  role: string,
  catalog: Catalog,
  snapshot: PolicySnapshot,
): RowSecurity {
  const known = KNOWN.get(snapshot) ?? new Map<string, RowSecurity>();
  KNOWN.set(snapshot, known);
  const key = JSON.stringify([connector.name, role]);
  const found = known.get(key) ?? designTable(connector, role, catalog, snapshot);
  known.set(key, found);
  return found;
}

function designTable(
  connector: DeclaredTables,
  role: string,
  catalog: Catalog,
  snapshot: PolicySnapshot,
): RowSecurity {
  const relations = [...catalog.relations.values()].filter(
    // A facet's source is read only by the indexer, through the system engine.
    (r) => r.connector === connector.name && r.kind !== 'facet' && isGranted(r, snapshot),
  );
  const byTable = new Map<string, Relation[]>();
  for (const relation of relations) {
    const name = `${relation.schema}.${relation.table}`;
    byTable.set(name, [...(byTable.get(name) ?? []), relation]);
  }
  const read = columnsOfRoles(relations, catalog, snapshot);
  const tables = new Map(
    [...byTable].sort(byName).map(([name, governing]): [string, GuardedTable] => {
      const { schema, table } = governing[0] as Relation; // lists are never empty
      const rows = governing.map((r) => rowsSql(r, snapshot)).join(' or ');
      const columns = [...new Set(governing.flatMap((r) => [...(read.get(r) ?? [])]))].sort();
      return [name, Object.freeze({ schema, table, rows, columns })];
    }),
  );
  const closed = [...connector.tables]
    .filter(([name]) => !tables.has(name))
    .sort(byName)
    .map(([, { schema, table }]) => Object.freeze({ schema, table }));
  const version = createHash('sha256')
    .update(JSON.stringify([FORMAT, role, [...tables.values()], closed]))
    .digest('hex')
    .slice(0, 32);
  return Object.freeze({ version, role, tables, closed });
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function isGranted({ name }: Relation, { roles }: PolicySnapshot): boolean {
  return [...roles.values()].some((role) => (role.grants.get(name)?.length ?? 0) > 0);
}

/** Roles with the same filter share an arm, so that it is evaluated once. */
function rowsSql({ name }: Relation, { roles }: PolicySnapshot): string {
  const arms = new Map<string, { readonly roles: Set<string>; readonly filter: Expr | null }>();
  for (const [role, { grants }] of roles) {
    for (const { filter, conditions } of grants.get(name) ?? []) {
      const key = filter === null ? '' : filterSql(filter);
      const arm = arms.get(key) ?? { roles: new Set<string>(), filter };
      arm.roles.add(roleIn(role, conditions?.key ?? null));
      arms.set(key, arm);
    }
  }
  const shown = [...arms].sort(byName).map(([sql, arm]) => armSql(sql, [...arm.roles].sort(), arm.filter));
  const denying = [...roles].filter(([, r]) => r.denied.get(name) === 'all').map(([role]) => role);
  const any = `(${shown.join(' or ')})`;
  return denying.length === 0 ? any : `(not ${call('denied', texts(denying.sort()))} and ${any})`;
}

/** INVARIANT: if one subject lacks an attribute, the whole filter is false. */
function armSql(sql: string, roles: readonly string[], filter: Expr | null): string {
  const needs = filter === null ? [] : [...attributesOf(filter)].sort();
  const granted = call('granted', texts(roles), texts(needs));
  return sql === '' ? granted : `(${granted} and ${sql})`;
}

function columnsOfRoles(
  relations: readonly Relation[],
  catalog: Catalog,
  snapshot: PolicySnapshot,
): ReadonlyMap<Relation, ReadonlySet<string>> {
  const found = new Map(
    relations.map((r): [Relation, Set<string>] => [r, new Set(keysForFacets(r, catalog))]),
  );
  for (const role of snapshot.roles.keys()) {
    const access = roleAccess(role, snapshot, catalog);
    for (const [relation, columns] of found) {
      const rights = access.relations.get(relation.name);
      if (rights !== undefined) for (const c of columnsRead(relation, rights)) columns.add(c);
    }
  }
  return found;
}

/** Keys that facets use to refer to the entity: a passage is shown only if its entity is. */
function keysForFacets(relation: Relation, catalog: Catalog): readonly string[] {
  const keys = [...catalog.facets.values()]
    .filter((f) => f.entity === relation.name)
    .map((f) => f.keyOfEntity);
  return relation.columns.filter((c) => keys.includes(c.name)).map((c) => c.physical);
}
