import {
  type Access,
  type Catalog,
  compile,
  type EmittedSql,
  QueryError,
  type Relation,
  type RelationAccess,
  type RelationGrant,
} from 'osl-compiler';
import { allowedTables } from '../golden/reparse.js';
import { type Expr, type GovernedScan, type Select, walk } from './internals.js';

/**
 * A second reading of emitted SQL: our own compiler takes it as raw SQL, over tables that have nothing but the
 * columns which this caller's statement may hold. What then binds refers to nothing else. Of the columns that only
 * row filters read, and of masked ones, it is looked at where they stand.
 */
export type Recompiled =
  | { readonly kind: 'compiled'; readonly findings: readonly string[] }
  /** The compiler refuses the text for another reason than a name. */
  | { readonly kind: 'unreached'; readonly error: QueryError };

/** Refusals that say that a name means nothing here. */
const NAMES: ReadonlySet<string> = new Set([
  'outsideAllowlist',
  'mixedWorlds',
  'unknownRelation',
  'unknownColumn',
  'unknownAlias',
  'denied',
]);

export function recompile({ sql }: Pick<EmittedSql, 'sql'>, catalog: Catalog, access: Access): Recompiled {
  const tables = tablesFor(catalog, access);
  try {
    const plan = compile(readable(sql), tables.catalog, tables.access, { world: 'physical' });
    const levels = walk.allQueries(plan.query).flatMap((q) => (q.kind === 'select' ? [q] : []));
    return { kind: 'compiled', findings: levels.flatMap((q) => findingsAt(q, catalog, access)) };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    if (NAMES.has(error.entry)) return { kind: 'compiled', findings: [error.message] };
    return { kind: 'unreached', error };
  }
}

/**
 * `convert_to` is the one function that masks have and callers do not; `decode` takes and gives the same types. The
 * collation of patterns is not a caller's either, and a configuration of a search is named by its last name.
 */
function readable(sql: string): string {
  return sql
    .replaceAll('pg_catalog.convert_to(', 'pg_catalog.decode(')
    .replaceAll(' collate pg_catalog."default"', '')
    .replaceAll(/'pg_catalog\.(\w+)'::regconfig/g, "'$1'");
}

/** The caller's tables with the columns that its statements may hold, all of them in the clear. */
function tablesFor(catalog: Catalog, access: Access): { catalog: Catalog; access: Access } {
  const allowed = allowedTables(catalog, access);
  const relations = relationsOf(catalog, access).map(({ relation }): Relation => {
    const columns = allowed.get(`${relation.schema}.${relation.table}`) ?? new Set();
    return {
      ...relation,
      kind: 'entity',
      primaryKey: [],
      sealedKeys: [],
      columns: relation.columns
        .filter((c) => columns.has(c.physical))
        .map((c) => ({ ...c, name: c.physical, sensitivity: null, keyDomain: null })),
    };
  });
  const whole = (r: Relation): RelationAccess => ({
    grants: [{ id: 'all', columns: new Set(r.columns.map((c) => c.name)), unmask: new Set(), filter: null }],
    masks: new Map(),
    denied: new Set(),
  });
  return {
    catalog: {
      ...catalog,
      relations: new Map(relations.map((r) => [r.name, r])),
      metrics: new Map(),
      facets: new Map(),
      edges: [],
      rawTables: new Map(relations.map((r) => [`${r.schema}.${r.table}`, r])),
    },
    access: { ...access, relations: new Map(relations.map((r) => [r.name, whole(r)])) },
  };
}

function relationsOf(catalog: Catalog, access: Access) {
  return [...access.relations].flatMap(([name, rights]) => {
    const relation = catalog.relations.get(name);
    return relation === undefined ? [] : [{ relation, rights }];
  });
}

/** What is wrong with one level: a table stands alone in a SELECT, and that SELECT is its row filter and masks. */
function findingsAt(query: Select, catalog: Catalog, access: Access): readonly string[] {
  const scans = walk.leavesOf(query.from).filter((l) => l.kind === 'governed');
  const [scan] = scans;
  if (scan === undefined) return [];
  if (query.from !== scan) return [`a join reads ${scan.relation.table} itself`];
  const known = relationsOf(catalog, access).find((r) => r.relation.name === scan.relation.name);
  if (known === undefined) return [`${scan.relation.name} is not the caller's`];
  const shown = query.outputs.flatMap((o) =>
    o.name === SHOWN
      ? asksOnly(o.expr, query.where)
        ? []
        : [`${scan.relation.table} asks for more than its row filter`]
      : misuses(o.expr, scan, known, 'shown'),
  );
  const filtered = query.where.flatMap((w) => misuses(w, scan, known, 'tested'));
  // A fence is OFFSET 0, which the compiler answers with an order of its own.
  const extra = query.grouped || query.distinct || query.with.length > 0 || query.limit !== null;
  return [...shown, ...filtered, ...(extra ? [`the scan of ${scan.relation.table} is no scan`] : [])];
}

/** The column by which conditions ask whether a row is shown. */
const SHOWN = '#shown';

/** True if `expr` is true of the rows that pass `where`, and looks at nothing else. */
function asksOnly(expr: Expr, where: readonly Expr[]): boolean {
  if (expr.kind !== 'truth_test' || expr.test !== 'true' || expr.negated) return false;
  const tested = new Set(where.map((w) => JSON.stringify(w)));
  const asked = expr.arg.kind === 'and' ? expr.arg.args : [expr.arg];
  return asked.every((e) => tested.has(JSON.stringify(e)));
}

interface Known {
  readonly relation: Relation;
  readonly rights: RelationAccess;
}

/** Where a column stands: as the value itself, in an arm of a CASE, or in what a function makes of it. */
type Place = 'bare' | 'arm' | 'computed';

/** Columns of `expr` that stand where this caller may not have them. */
function misuses(expr: Expr, scan: GovernedScan, known: Known, use: 'shown' | 'tested'): readonly string[] {
  const found: string[] = [];
  const visit = (e: Expr, place: Place): void => {
    if (e.kind === 'column') {
      const wrong = e.source === scan.id ? misuse(e.name, place, known, use) : 'of another table';
      if (wrong !== null) found.push(`${scan.relation.table}.${e.name} is ${wrong}`);
      return;
    }
    if (e.kind === 'case') {
      // Conditions of a CASE are filters of grants: policy's own words.
      const inside = place === 'computed' ? 'computed' : 'arm';
      for (const arm of e.arms) visit(arm.result, inside);
      visit(e.otherwise, inside);
      return;
    }
    // A predicate may compute with what is shown, so that only the form in which a column stands in it matters.
    for (const child of walk.childrenOf(e)) visit(child, use === 'tested' ? place : 'computed');
  };
  visit(expr, 'bare');
  return found;
}

function misuse(name: string, place: Place, known: Known, use: 'shown' | 'tested'): string | null {
  const { relation, rights } = known;
  // The row filter is policy's; a predicate of the caller's beside it is over columns as they are shown.
  if (use === 'tested' && filterColumns(rights).has(name)) return null;
  if (isAggregated(name, known)) return null;
  const column = relation.columns.find((c) => c.physical === name && isGranted(c.name, rights));
  if (column === undefined) return 'of a row filter, and stands outside of one';
  const masked = maskedFor(column.name, column.sensitivity, rights);
  if (masked === 'none') return null;
  const mask = rights.masks.get(column.sensitivity ?? '') ?? 'deny';
  const computes = mask === 'hash' || mask === 'partial' || mask === 'year';
  if (place === 'computed') return computes ? null : `computed with under the mask ${mask}`;
  if (masked === 'all') return 'masked in every row, and stands in the clear';
  return place === 'arm' ? null : 'masked in some rows, and stands in the clear in all';
}

/**
 * What a grant of figures reads: its metrics' columns, and the key that its groups are counted by. That they go into
 * aggregates only is what `verify` and the oracle of groups look at.
 */
function isAggregated(physical: string, { relation, rights }: Known): boolean {
  const rules = rights.grants.flatMap((g) => (g.groups === undefined ? [] : [g.groups]));
  const name = relation.columns.find((c) => c.physical === physical)?.name ?? '';
  const isKey = rules.length > 0 && relation.primaryKey.includes(name);
  return isKey || rules.some((r) => [...(r.metrics?.values() ?? [])].some((of) => of.has(name)));
}

function isGranted(name: string, rights: RelationAccess): boolean {
  return !rights.denied.has(name) && rights.grants.some((g) => g.columns.has(name));
}

/** Worked out anew: in which rows the caller sees a cell as it is. */
function maskedFor(name: string, label: string | null, { grants }: RelationAccess): 'none' | 'some' | 'all' {
  const clearing = grants.filter((g) => g.columns.has(name) && (label === null || g.unmask.has(label)));
  if (clearing.length === 0) return 'all';
  const filters = new Set(clearing.map(textOf));
  const everyRow = filters.has('null') || grants.every((g) => filters.has(textOf(g)));
  return everyRow ? 'none' : 'some';
}

function textOf({ filter }: RelationGrant): string {
  return JSON.stringify(filter);
}

function filterColumns({ grants }: RelationAccess): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { filter } of grants) {
    if (filter === null) continue;
    walk.visitExpr(filter, (e) => {
      if (e.kind === 'base') names.add(e.column);
    });
  }
  return names;
}
