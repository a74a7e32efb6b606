import type { Access, OverlapRule, RelationAccess } from '../access/access.js';
import type { BoundPlan } from '../bind/index.js';
import { type Catalog, columnOf, type Relation } from '../catalog/catalog.js';
import { InternalError, queryError } from '../errors/errors.js';
import { requireFunction, requireOperator } from '../functions/resolve.js';
import { fingerprint } from '../plan/fingerprint.js';
import { allOf, callNode, columnRef, isNotNull, operationNode } from '../plan/nodes.js';
import type { Aggregate, EntityScan, Expr, FromItem, Select, SourceId } from '../plan/plan.js';
import { fanOutOf } from '../plan/properties.js';
import { ascending, groupingOf } from '../plan/select-nodes.js';
import { allLeaves, allQueries, exprsOf, leavesOf, nodesIn, someExpr } from '../plan/walk.js';
import { boundedExpr } from './bounds.js';
import { governWith } from './govern.js';
import { type GovernedPlan, stepsOfWalk } from './governed-plan.js';
import { scanAccesses } from './groups.js';
import { governScan } from './scan.js';
import type { ScanAccesses } from './scan-access.js';
import { GovernedSlots } from './slots.js';

/** Number of hexadecimal digits in the hash of a row or of its privacy unit. */
export const MEMBER_DIGITS = 13;

/** Name of the text slot for the secret that is hashed together with each key. */
export const MEMBER_KEY = 'member key';

/**
 * The rows behind the aggregates of one block of a query, under grants that require answers to be compared (`overlap`).
 * The plan applies the caller's row filters and masks. Only the gateway reads its result.
 */
export interface Population {
  /** The table of the rows, as `connector.schema.table`. */
  readonly table: string;
  readonly minimum: number;
  readonly rules: readonly OverlapRule[];
  /**
   * Returns one or more rows per group: the group's number, then for each set in `sets` the concatenated hashes of its
   * rows. Each hash is followed by that of the row's privacy unit if `hasUnit`. Needs the slot `MEMBER_KEY`.
   */
  readonly plan: GovernedPlan;
  readonly hasUnit: boolean;
  /**
   * For each set of rows, the figures that are computed from it: `count`, or `sum` or `mean` with a column, such as
   * `sum salary`. Two answers can be subtracted if they have a figure in common.
   */
  readonly sets: readonly (readonly string[])[];
}

const GUARDED = new WeakMap<GovernedPlan['query'], boolean>();

/** True if `plan`, which was made for `access`, counts rows that a grant with the option `overlap` covers. */
export function comparesOverlaps(plan: GovernedPlan, access: Access): boolean {
  const known = GUARDED.get(plan.query);
  if (known !== undefined) return known;
  const found = allLeaves(plan.query).some((leaf) => {
    if (leaf.kind !== 'governed' || leaf.minimum === null) return false;
    const ids = new Set(leaf.minimum.grants.map((g) => g.id));
    const grants = access.relations.get(leaf.relation.name)?.grants ?? [];
    return grants.some((g) => ids.has(g.id) && g.groups?.overlap !== undefined);
  });
  const guarded = found || stepsOf(plan).some((step) => comparesOverlaps(step, access));
  GUARDED.set(plan.query, guarded);
  return guarded;
}

function stepsOf({ runtime }: GovernedPlan): readonly GovernedPlan[] {
  return runtime.flatMap((r) =>
    r.kind === 'operated' ? [r.rows] : r.kind === 'traversal' ? stepsOfWalk(r) : [],
  );
}

/**
 * Returns the populations of a query for which `comparesOverlaps` is true.
 *
 * @throws QueryError E0537 for a query whose rows cannot be compared with those of others
 */
export function populationsOf(bound: BoundPlan, access: Access, catalog: Catalog): readonly Population[] {
  if (bound.runtime.length > 0) throw incomparable('steps that run before it');
  const accesses = scanAccesses(bound.query, access, bound);
  const found = allQueries(bound.query).flatMap((block) => {
    if (block.kind !== 'select') return [];
    const counted = countedIn(block, accesses);
    const guarded = counted.find((scan) => rulesOf(accesses.of(scan).access).length > 0);
    if (guarded === undefined) return [];
    if (counted.length > 1) throw incomparable('two relations whose rows are only counted');
    requireComparable(block, guarded, accesses);
    return [populationOf(block, guarded, accesses, { bound, access, catalog })];
  });
  if (found.length === 0) throw new InternalError('no block of the query has rows to compare');
  return found;
}

function incomparable(what: string) {
  return queryError('overlapShape', { what });
}

function countedIn(block: Select, accesses: ScanAccesses): readonly EntityScan[] {
  return leavesOf(block.from).filter(
    (leaf): leaf is EntityScan => leaf.kind === 'entity' && accesses.of(leaf).minimum !== null,
  );
}

function rulesOf({ grants }: RelationAccess): readonly OverlapRule[] {
  return grants.flatMap(({ groups }) => groups?.overlap ?? []);
}

/**
 * Requires that the rows of the scan can be compared: their keys are not denied, no other grant shows rows, no join or
 * subquery counts a row twice, and the block does not depend on an outer query.
 */
function requireComparable(block: Select, scan: EntityScan, accesses: ScanAccesses): void {
  const { access, minimum } = accesses.of(scan);
  const needed = [...scan.relation.primaryKey, ...(minimum?.unit == null ? [] : [minimum.unit])];
  if (needed.some((name) => access.denied.has(name))) throw incomparable('a key that is denied');
  if (minimum?.plain !== null) throw incomparable('rows that other grants show');
  if (block.from !== null && fanOutOf(block.from, scan.id) !== null)
    throw incomparable('a join that repeats the counted rows');
  const within = allQueries(block);
  const nested = within.filter((q): q is Select => q !== block && q.kind === 'select');
  if (nested.some((q) => countedIn(q, accesses).length > 0))
    throw incomparable('a subquery whose rows are only counted');
  const own = new Set(within.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])));
  const tables = new Set(within.flatMap((q) => (q.kind === 'values' ? [] : q.with.map((t) => t.id))));
  const isOuter = (e: Expr): boolean => e.kind === 'column' && !own.has(e.source);
  const isApart =
    allLeaves(block).every((l) => l.kind !== 'cte' || tables.has(l.table)) &&
    !within.flatMap(exprsOf).some((e) => someExpr(e, isOuter));
  if (!isApart) throw incomparable('a subquery that depends on the query around it');
}

interface PopulationContext {
  readonly bound: BoundPlan;
  readonly access: Access;
  readonly catalog: Catalog;
}

function populationOf(
  block: Select,
  scan: EntityScan,
  accesses: ScanAccesses,
  { bound, access, catalog }: PopulationContext,
): Population {
  const { access: applied, minimum } = accesses.of(scan);
  if (minimum === null) throw new InternalError('rows are compared that are shown');
  const { relation } = scan;
  const { unit } = minimum;
  const needed = [...relation.primaryKey, ...(unit === null ? [] : [unit])];
  const slots = new GovernedSlots(bound.slots);
  const member = memberHash(scan, relation.primaryKey, slots);
  const members = unit === null ? member : concatenated(member, memberHash(scan, [unit], slots));
  const sets = setsOf(block, scan);
  const query = membersByGroup(block, scan.id, needed, member, members, sets, unit, slots);
  const columns = query.outputs.map(({ name, expr }) => ({ name, type: expr.type }));
  const shown = withRowsShown(access, relation, applied, needed);
  const plan = governWith({ ...bound, query, columns }, slots, governScan, shown, catalog, () => {
    throw new InternalError('a population walks nowhere');
  });
  return Object.freeze({
    table: [relation.connector, relation.schema, relation.table].map((n) => JSON.stringify(n)).join('.'),
    minimum: minimum.size,
    rules: rulesOf(applied),
    plan,
    hasUnit: unit !== null,
    sets: sets.map((s) => [...s.figures]),
  });
}

/** Returns `access` with grants that show the counted rows and their key columns `needed`. */
function withRowsShown(
  access: Access,
  { name }: Relation,
  applied: RelationAccess,
  needed: readonly string[],
): Access {
  const grants = applied.grants.map(({ groups: _, ...grant }) =>
    Object.freeze({ ...grant, columns: new Set([...grant.columns, ...needed]) }),
  );
  const relations = new Map(access.relations).set(name, Object.freeze({ ...applied, grants }));
  return Object.freeze({ ...access, signature: `${access.signature} population`, relations });
}

// ---------------------------------------------------------------- the statement

/** Rows that an aggregate covers, with the figures computed from them. */
interface CoveredRows {
  readonly filter: readonly Expr[];
  readonly figures: Set<string>;
}

/** Returns the distinct sets of rows that the aggregates of a block cover. */
function setsOf(block: Select, scan: EntityScan): readonly CoveredRows[] {
  const sets = new Map<string, CoveredRows>();
  for (const call of nodesIn(exprsOf(block), 'aggregate')) {
    const given = call.args.filter((a) => a.kind !== 'parameter' && !isNeverNull(a, scan));
    const filter = [...(call.filter === null ? [] : [call.filter]), ...given.map(isNotNull)];
    const key = filter.map(fingerprint).sort().join(' ');
    const set = sets.get(key) ?? { filter, figures: new Set<string>() };
    for (const figure of figuresOf(call)) set.figures.add(figure);
    sets.set(key, set);
  }
  return [...sets.values()];
}

function isNeverNull(arg: Expr, { id, relation }: EntityScan): boolean {
  const column = arg.kind === 'column' && arg.source === id ? columnOf(relation, arg.name) : null;
  return column !== null && !column.nullable && column.sensitivity === null;
}

function figuresOf({ definition, args }: Aggregate): readonly string[] {
  if (definition.name === 'count') return ['count'];
  const columns = [...new Set(nodesIn(args, 'column').map((c) => c.name))];
  return columns.map((column) => `${definition.name === 'sum' ? 'sum' : 'mean'} ${column}`);
}

function membersByGroup(
  block: Select,
  source: SourceId,
  needed: readonly string[],
  member: Expr,
  members: Expr,
  sets: readonly CoveredRows[],
  unit: string | null,
  slots: GovernedSlots,
): Select {
  const bounded = (e: Expr): Expr => boundedExpr(e, slots);
  const { definition } = requireFunction('string_agg', ['text', 'text']);
  const collected = ({ filter }: CoveredRows): Aggregate =>
    Object.freeze({
      kind: 'aggregate',
      definition,
      args: Object.freeze([members, slots.literal('', 'text')]),
      distinct: false,
      filter: filter.length === 0 ? null : bounded(allOf(filter)),
      orderBy: Object.freeze([]),
      metric: null,
      type: 'text',
    });
  // Each group is split into parts, since the size of a result row is limited.
  const part = leftOf(member, 1, slots);
  const keys = block.groupBy.map(bounded);
  const ordered = block.groupingSets === null ? keys : [...keys, ...groupingOf(keys)];
  const outputs = [
    { name: 'group', expr: groupNumber(ordered) },
    ...sets.map((set, i) => ({ name: `set${i}`, expr: collected(set) })),
  ];
  const unitColumn = needed.at(-1);
  const hasUnit =
    unit === null || unitColumn === undefined ? [] : [isNotNull(referTo(block.from, source, unitColumn))];
  const sorted = block.groupingSets?.map((set) => Object.freeze([...set, keys.length])) ?? null;
  return Object.freeze({
    ...block,
    from: block.from === null ? null : withColumns(block.from, source, needed),
    where: Object.freeze([...block.where.map(bounded), ...hasUnit]),
    grouped: true,
    groupBy: Object.freeze([...keys, part]),
    groupingSets: sorted === null ? null : Object.freeze(sorted),
    having: Object.freeze([]),
    outputs: Object.freeze(outputs.map((o) => Object.freeze(o))),
    distinct: false,
    distinctOn: Object.freeze([]),
    orderBy: Object.freeze([]),
    limit: null,
    offset: null,
    withTies: false,
  } satisfies Select);
}

function groupNumber(keys: readonly Expr[]): Expr {
  return Object.freeze({
    kind: 'window',
    definition: requireFunction('dense_rank', []).definition,
    args: Object.freeze([]),
    filter: null,
    partitionBy: Object.freeze([]),
    orderBy: Object.freeze(keys.map(ascending)),
    frame: null,
    type: 'int8',
  });
}

function withColumns(item: FromItem, source: SourceId, names: readonly string[]): FromItem {
  if (item.kind === 'join')
    return Object.freeze({
      ...item,
      left: withColumns(item.left, source, names),
      right: withColumns(item.right, source, names),
    });
  if (item.kind !== 'entity' || item.id !== source) return item;
  return Object.freeze({ ...item, columns: Object.freeze([...new Set([...item.columns, ...names])]) });
}

function referTo(from: FromItem | null, source: SourceId, name: string): Expr {
  const scan = leavesOf(from).find((l) => l.id === source);
  const column = scan?.kind === 'entity' ? columnOf(scan.relation, name) : null;
  if (column === null) throw new InternalError(`no column ${name} to compare rows by`);
  return columnRef(source, name, column.type);
}

/** Returns the hash of the secret in slot `MEMBER_KEY` followed by the values of `columns`. */
function memberHash(scan: EntityScan, columns: readonly string[], slots: GovernedSlots): Expr {
  const items = Object.freeze(columns.map((name) => referTo(scan, scan.id, name)));
  const keyed = concatenated(
    slots.given(MEMBER_KEY, 'text'),
    Object.freeze({ kind: 'row_text', items, type: 'text' }),
  );
  const md5 = requireFunction('md5', ['text']);
  return leftOf(callNode(md5.definition, [keyed], 'text'), MEMBER_DIGITS, slots);
}

function leftOf(text: Expr, length: number, slots: GovernedSlots): Expr {
  const { definition } = requireFunction('left', ['text', 'int4']);
  return callNode(definition, [text, slots.literal(String(length), 'int4')], 'text');
}

function concatenated(left: Expr, right: Expr): Expr {
  return operationNode(requireOperator('||', 'text', 'text'), left, right, 'text');
}
