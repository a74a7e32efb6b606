import { type Access, grantsOn, type RelationAccess, showsRows } from '../../access/access.js';
import type { BoundPlan, LiteralSlots, LiteralTest } from '../../bind/index.js';
import {
  type Catalog,
  type Column,
  columnOf,
  type Relation,
  type Rollup,
  type RollupMeasure,
} from '../../catalog/catalog.js';
import type { Grain } from '../../catalog/grain.js';
import { requireFunction, requireOperator } from '../../functions/resolve.js';
import { allOf, callNode, columnRef, inType, isNotNull, operationNode } from '../../plan/nodes.js';
import type { Aggregate, EntityScan, Expr, Operation, Query, Select, SourceId } from '../../plan/plan.js';
import { mapQuery } from '../../plan/query-tree.js';
import {
  allLeaves,
  allQueries,
  changed,
  mapChildren,
  mapped,
  mapSort,
  nestingIn,
  nodesIn,
} from '../../plan/walk.js';
import type { TypeName } from '../../types/types.js';
import { columnRule } from '../mask.js';
import type { GovernedSlots } from '../slots.js';

/** A rollup that cannot answer a query although the query reads its entity, with the reason. */
export interface UnusedRollup {
  readonly name: string;
  readonly why: RollupFault;
}

/** A query over a rollup instead of its entity. */
interface RollupQuestion {
  readonly rollup: Rollup;
  readonly query: Query;
  /** The caller's rights on the rollup: those on the entity, plus the rollup's own columns. */
  readonly access: Access;
}

/** The query over the chosen rollup (null if none can answer), and the rollups that cannot answer the query. */
export interface RollupChoice {
  readonly rolled: RollupQuestion | null;
  readonly passed: readonly UnusedRollup[];
}

const NO_CHOICE: RollupChoice = Object.freeze({ rolled: null, passed: Object.freeze([]) });

/**
 * Finds the rollup that can answer `plan` for a caller with `access`, depending on the grain and filters of the query
 * and the row filters and masks of the grants. If there are several, returns the one with the fewest dimensions.
 * `verifyRollup` checks the result, and shares no code with this.
 *
 * @param usable names of the rollups that are built and fresh enough
 */
export function chooseRollup(
  plan: BoundPlan,
  access: Access,
  catalog: Catalog,
  usable: ReadonlySet<string>,
  slots: GovernedSlots,
): RollupChoice {
  const { rollups = [] } = catalog;
  if (rollups.length === 0) return NO_CHOICE;
  const scans = allLeaves(plan.query).filter((l) => l.kind === 'entity');
  const read = new Set(scans.map((s) => s.relation.name));
  const candidates = rollups
    .filter((r) => read.has(r.entity))
    .sort((a, b) => a.dimensions.length - b.dimensions.length);
  const passed: UnusedRollup[] = [];
  let rolled: RollupQuestion | null = null;
  for (const rollup of candidates) {
    if (rolled !== null) break;
    const [scan] = scans;
    const block =
      scan === undefined || scans.length > 1 || plan.runtime.length > 0 ? null : blockOf(plan.query, scan);
    const found = usable.has(rollup.name)
      ? block === null || scan === undefined
        ? 'the question reads rows singly, or more than this entity'
        : overRollup(rollup, plan, block, scan, access, slots)
      : 'it is not built, or too old';
    if (typeof found === 'string') passed.push(Object.freeze({ name: rollup.name, why: found }));
    else rolled = found;
  }
  return Object.freeze({ rolled, passed: Object.freeze(passed) });
}

/** Returns the block that aggregates the rows of `scan` and reads nothing else; null if there is no such block. */
function blockOf(root: Query, scan: EntityScan): Select | null {
  const block = allQueries(root).find((q) => q.kind === 'select' && q.from === scan);
  const isSole = block?.kind === 'select' && block.grouped && nestingIn(block).length === 0;
  return isSole && scan.sample === undefined ? block : null;
}

function overRollup(
  rollup: Rollup,
  plan: BoundPlan,
  block: Select,
  scan: EntityScan,
  access: Access,
  slots: GovernedSlots,
): RollupQuestion | RollupFault {
  const { relation } = scan;
  const granted = grantsOn(relation, access);
  if (!granted.grants.every(showsRows)) return 'a minimum group size applies';
  const dimensions = rollup.dimensions.flatMap((name) => columnOf(relation, name) ?? []);
  if (readsBeyond(granted, new Set(dimensions.map((c) => c.physical))))
    return 'a row filter of the grants reads what is not a dimension';
  const rolled = new RolledBlock(rollup, scan.id, plan.literals, slots);
  const rewritten = rolled.rewrite(block);
  if (rolled.fault !== null) return rolled.fault;
  const isClear = (name: string): boolean => columnRule(relation, name, granted).masked === 'none';
  if (![...rolled.clear].every(isClear)) return 'a column that is aggregated is masked';
  const rolledRelation = rollupRelation(rollup, relation, dimensions);
  const from: EntityScan = Object.freeze({
    kind: 'entity',
    id: scan.id,
    relation: rolledRelation,
    columns: Object.freeze([...rolled.used]),
  });
  const over = changed(rewritten, { from });
  const query = mapQuery(plan.query, { query: (q) => (q === block ? over : q) });
  return Object.freeze({ rollup, query, access: withOwnColumns(access, relation, granted, rolledRelation) });
}

/** True if some grant's filter reads a column of the table that is not in `physical`. */
function readsBeyond({ grants }: RelationAccess, physical: ReadonlySet<string>): boolean {
  const filters = grants.flatMap(({ filter }) => filter ?? []);
  return nodesIn(filters, 'base').some((e) => !physical.has(e.column));
}

/** Returns the rollup's table as a relation: the entity's dimensions and the rollup's own columns. */
function rollupRelation(rollup: Rollup, relation: Relation, dimensions: readonly Column[]): Relation {
  const own = ownColumns(rollup).map(
    ({ name, type }): Column =>
      Object.freeze({
        name,
        physical: name,
        type,
        description: null,
        nullable: true,
        sensitivity: null,
        keyDomain: null,
      }),
  );
  return Object.freeze({
    kind: 'entity',
    name: relation.name,
    description: relation.description,
    connector: relation.connector,
    schema: rollup.schema,
    table: rollup.table,
    columns: Object.freeze([...dimensions, ...own]),
    primaryKey: Object.freeze([]),
    sealedKeys: Object.freeze([]),
    rollup,
  });
}

function ownColumns({ time, measures }: Rollup) {
  return [
    { name: ROLLUP_ROWS, type: 'int8' as const },
    ...(time === null ? [] : [{ name: ROLLUP_TIME, type: 'timestamp' as const }]),
    ...measures.flatMap((m) => [m.count, m.sum, m.min, m.max].filter((c) => c !== null)),
  ];
}

/** Grants the rollup's own columns; `overRollup` has checked that the caller sees their source columns. */
function withOwnColumns(
  access: Access,
  relation: Relation,
  granted: RelationAccess,
  rolledRelation: Relation,
): Access {
  const own = rolledRelation.columns.flatMap((c) => (columnOf(relation, c.name) === null ? [c.name] : []));
  const grants = granted.grants.map((g) => Object.freeze({ ...g, columns: new Set([...g.columns, ...own]) }));
  const relations = new Map(access.relations);
  relations.set(relation.name, Object.freeze({ ...granted, grants: Object.freeze(grants) }));
  return Object.freeze({ ...access, relations });
}

/** The rollup column with the number of entity rows behind each of its rows. */
export const ROLLUP_ROWS = '#n';
/** The rollup column with the start of a row's period, a timestamp in UTC. */
export const ROLLUP_TIME = '#t';

/** The reason why a rollup cannot answer a query; reveals nothing hidden. */
export type RollupFault =
  | 'it is not built, or too old'
  | 'the question reads rows singly, or more than this entity'
  | 'the question groups or filters by what is not a dimension'
  | 'an aggregate cannot be put together from parts'
  | 'the question computes a random value for each row'
  | 'a row filter of the grants reads what is not a dimension'
  | 'a column that is aggregated is masked'
  | 'a minimum group size applies';

/** For each grain, the units whose periods consist of whole periods of the grain. */
const WHOLE: Readonly<Record<Grain, ReadonlySet<string>>> = {
  second: new Set(['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year']),
  minute: new Set(['minute', 'hour', 'day', 'week', 'month', 'quarter', 'year']),
  hour: new Set(['hour', 'day', 'week', 'month', 'quarter', 'year']),
  day: new Set(['day', 'week', 'month', 'quarter', 'year']),
  week: new Set(['week']),
  month: new Set(['month', 'quarter', 'year']),
  quarter: new Set(['quarter', 'year']),
  year: new Set(['year']),
};

/** A pattern (MM-DD) for the days on which a period of the grain begins; null for weeks, which no pattern can match. */
const DAYS: Readonly<Record<Grain, string | null>> = {
  second: String.raw`\d\d-\d\d`,
  minute: String.raw`\d\d-\d\d`,
  hour: String.raw`\d\d-\d\d`,
  day: String.raw`\d\d-\d\d`,
  week: null,
  month: String.raw`\d\d-01`,
  quarter: '(?:01|04|07|10)-01',
  year: '01-01',
};

/**
 * Literal tests, cached by pattern. A test is true for midnight UTC on a matching day; a timestamptz must include its
 * zone.
 */
const TESTS = new Map<string, LiteralTest>();

function beginsAt(days: string, type: TypeName): LiteralTest {
  const zone = type === 'timestamptz' ? String.raw` 00:00:00\+00` : '(?: 00:00:00)?';
  const key = `^\\d{4}-${days}${zone}$`;
  let test = TESTS.get(key);
  if (test === undefined) {
    const pattern = new RegExp(key);
    test = (text) => pattern.test(text);
    TESTS.set(key, test);
  }
  return test;
}

const isUtcName: LiteralTest = (text) => text === 'UTC';

/** Aggregates whose result does not change if values are repeated. */
const REPEATABLE: ReadonlySet<string> = new Set(['min', 'max', 'bool_and', 'bool_or', 'every']);

/** One block that aggregates rows of an entity, rewritten over rows of a rollup. */
class RolledBlock {
  /** The reason why the rollup cannot be used; final once the whole block has been rewritten. */
  fault: RollupFault | null = null;
  /** The rollup columns that the rewritten block reads. */
  readonly used = new Set<string>();
  /** The entity columns that must be unmasked in every row, since values of the rollup derive from them. */
  readonly clear = new Set<string>();
  readonly #rollup: Rollup;
  readonly #source: SourceId;
  readonly #literals: LiteralSlots;
  readonly #slots: GovernedSlots;
  readonly #dimensions: ReadonlySet<string>;

  constructor(rollup: Rollup, source: SourceId, literals: LiteralSlots, slots: GovernedSlots) {
    this.#rollup = rollup;
    this.#source = source;
    this.#literals = literals;
    this.#slots = slots;
    this.#dimensions = new Set(rollup.dimensions);
  }

  rewrite(block: Select): Select {
    const one = (e: Expr): Expr => this.#expr(e);
    const all = (list: readonly Expr[]): readonly Expr[] => mapped(list, one);
    return Object.freeze({
      ...block,
      where: all(block.where),
      groupBy: all(block.groupBy),
      having: all(block.having),
      outputs: mapped(block.outputs, (o) => Object.freeze({ ...o, expr: one(o.expr) })),
      distinctOn: all(block.distinctOn),
      orderBy: mapSort(block.orderBy, one),
    });
  }

  #fail(fault: RollupFault, expr: Expr): Expr {
    this.fault ??= fault;
    return expr;
  }

  #expr(e: Expr): Expr {
    switch (e.kind) {
      case 'aggregate':
        return this.#aggregate(e);
      case 'column':
        return this.#column(e, e.source, e.name);
      case 'call':
        if (e.definition.volatility === 'volatile')
          return this.#fail('the question computes a random value for each row', e);
        return this.#period(e) ?? this.#below(e);
      case 'operation':
        return this.#bound(e) ?? this.#below(e);
      default:
        return this.#below(e);
    }
  }

  #below(e: Expr): Expr {
    return mapChildren(
      e,
      (child) => this.#expr(child),
      (q) => q,
    );
  }

  #column(e: Expr, source: SourceId, name: string): Expr {
    if (source !== this.#source || !this.#dimensions.has(name))
      return this.#fail('the question groups or filters by what is not a dimension', e);
    this.used.add(name);
    return e;
  }

  // -------------------------------------------------------------- time

  /**
   * Rewrites `date_trunc(unit, <time in UTC>)` to use the period of the rollup if the unit consists of whole periods.
   * Otherwise returns null.
   */
  #period(e: Extract<Expr, { kind: 'call' }>): Expr | null {
    const [unit, time] = e.args;
    const { time: kept } = this.#rollup;
    if (e.definition.name !== 'date_trunc' || e.args.length !== 2 || kept === null) return null;
    if (unit?.kind !== 'structural' || time === undefined || !WHOLE[kept.grain].has(unit.text)) return null;
    if (!this.#isTimeInUtc(time)) return null;
    return Object.freeze({ ...e, args: Object.freeze([unit, this.#time()]) });
  }

  #isTimeInUtc(e: Expr): boolean {
    if (e.kind === 'column') return this.#isTime(e) && e.type === 'timestamp';
    if (e.kind !== 'call' || e.definition.name !== 'timezone') return false;
    const [zone, moment] = e.args;
    const isUtc =
      zone?.kind === 'parameter'
        ? this.#literals.literalIn(zone.slot)?.holds(isUtcName) === true
        : zone?.kind === 'structural' && isUtcName(zone.text);
    return isUtc && moment !== undefined && this.#isTime(moment);
  }

  #isTime(e: Expr): boolean {
    return e.kind === 'column' && e.source === this.#source && e.name === this.#rollup.time?.column;
  }

  #time(): Expr {
    this.used.add(ROLLUP_TIME);
    if (this.#rollup.time !== null) this.clear.add(this.#rollup.time.column);
    return columnRef(this.#source, ROLLUP_TIME, 'timestamp');
  }

  /** Rewrites `<time> >= x` and `<time> < x` if `x` begins a period, so that no period is split; else null. */
  #bound(e: Operation): Expr | null {
    const { left, right, definition } = e;
    if (left === null || !this.#isTime(left) || (definition.name !== '>=' && definition.name !== '<'))
      return null;
    if (right.kind !== 'parameter' || right.type !== left.type || !this.#isBeginning(right.slot, right.type))
      return null;
    const begin = right.type === 'timestamptz' ? utc(right) : right;
    return operationNode(requireOperator(definition.name, 'timestamp', 'timestamp'), this.#time(), begin);
  }

  /** True if the literal in `slot` begins a period; the plan depends only on the result of this test. */
  #isBeginning(slot: number, type: TypeName): boolean {
    const { time } = this.#rollup;
    const days = time === null ? null : DAYS[time.grain];
    const literal = this.#literals.literalIn(slot);
    return days !== null && literal?.holds(beginsAt(days, type)) === true;
  }

  // -------------------------------------------------------------- aggregates

  #aggregate(call: Aggregate): Expr {
    const { name, kind } = call.definition;
    if (kind !== 'aggregate' || call.orderBy.length > 0)
      return this.#fail('an aggregate cannot be put together from parts', call);
    const filter = call.filter === null ? null : this.#expr(call.filter);
    const measure = this.#measureIn(call);
    if (measure === null) return this.#overDimensions(call, name, filter);
    if (call.distinct) return this.#fail('an aggregate cannot be put together from parts', call);
    return this.#overMeasure(call, name, measure, filter);
  }

  #measureIn({ args: [arg, ...more] }: Aggregate): RollupMeasure | null {
    if (arg?.kind !== 'column' || more.length > 0 || arg.source !== this.#source) return null;
    if (this.#dimensions.has(arg.name)) return null;
    return this.#rollup.measures.find((m) => m.column === arg.name) ?? null;
  }

  /** Rewrites counts of rows, and aggregates for which it does not matter how often a value occurs. */
  #overDimensions(call: Aggregate, name: string, filter: Expr | null): Expr {
    if (name === 'count' && call.args.length === 0) return this.#counted(call, ROLLUP_ROWS, filter);
    const args = mapped(call.args, (a) => this.#expr(a));
    if (REPEATABLE.has(name) || (name === 'count' && call.distinct))
      return Object.freeze({ ...call, args, filter });
    const [arg] = args;
    if (name !== 'count' || args.length !== 1 || arg === undefined)
      return this.#fail('an aggregate cannot be put together from parts', call);
    const there = isNotNull(arg);
    return this.#counted(call, ROLLUP_ROWS, filter === null ? there : allOf([filter, there]));
  }

  #overMeasure(call: Aggregate, name: string, measure: RollupMeasure, filter: Expr | null): Expr {
    this.clear.add(measure.column);
    const { sum, min, max, count } = measure;
    if (name === 'count') return this.#counted(call, count.name, filter);
    if (name === 'sum' && sum !== null) return inType(this.#together(call, 'sum', sum, filter), call.type);
    if (name === 'min' && min !== null) return inType(this.#together(call, 'min', min, filter), call.type);
    if (name === 'max' && max !== null) return inType(this.#together(call, 'max', max, filter), call.type);
    if (name !== 'avg' || sum === null)
      return this.#fail('an aggregate cannot be put together from parts', call);
    const total = inType(this.#together(call, 'sum', sum, filter), 'numeric');
    const rows = inType(this.#together(call, 'sum', count, filter), 'numeric');
    const none = this.#slots.literal('0', 'numeric');
    const some: Expr = Object.freeze({
      kind: 'conditional',
      form: 'nullif',
      args: Object.freeze([rows, none]),
      type: 'numeric',
    });
    return operationNode(requireOperator('/', 'numeric', 'numeric'), total, some, 'numeric');
  }

  /** Sums the counts in `column`. Over no rows, returns 0 like COUNT, not NULL like SUM. */
  #counted(call: Aggregate, column: string, filter: Expr | null): Expr {
    const total = inType(this.#together(call, 'sum', { name: column, type: 'int8' }, filter), 'int8');
    const args = Object.freeze([total, this.#slots.literal('0', 'int8')]);
    return Object.freeze({ kind: 'conditional', form: 'coalesce', args, type: 'int8' });
  }

  #together(
    call: Aggregate,
    name: string,
    column: { readonly name: string; readonly type: Expr['type'] },
    filter: Expr | null,
  ): Aggregate {
    this.used.add(column.name);
    const { definition, result } = requireFunction(name, [column.type]);
    const args = Object.freeze([columnRef(this.#source, column.name, column.type)]);
    return Object.freeze({ ...call, definition, args, distinct: false, filter, type: result });
  }
}

function utc(moment: Expr): Expr {
  const zone: Expr = Object.freeze({ kind: 'structural', text: 'UTC', type: 'text' });
  const { definition, result } = requireFunction('timezone', ['text', moment.type]);
  return callNode(definition, [zone, moment], result);
}
