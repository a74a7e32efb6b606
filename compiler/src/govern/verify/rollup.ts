import type { Access } from '../../access/access.js';
import type { Catalog, Relation, Rollup } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import type { Aggregate, Expr, GovernedScan, Query, Select, Slot } from '../../plan/plan.js';
import { allLeaves, allQueries, childrenOf, exprsOf, queryOf } from '../../plan/walk.js';

/**
 * Proves that replacing an entity by a rollup changes no result: for this caller, every row of the rollup is wholly
 * visible or wholly hidden, and its values are only combined by aggregates that allow it. Shares no code with the
 * choice of the rollup (`rollup/rollup.ts`).
 *
 * @param access the caller's access to the entity itself
 * @param usable rollups that are built and fresh enough
 * @throws InternalError if the proof fails
 */
export function verifyRollup(
  root: Query,
  slots: readonly Slot[],
  catalog: Catalog,
  access: Access,
  usable: ReadonlySet<string>,
): void {
  const levels = allQueries(root);
  const scans = allLeaves(root).filter((leaf) => leaf.kind === 'governed');
  const rolled = scans.filter((s) => s.relation.rollup !== undefined);
  const [scan] = rolled;
  if (scan === undefined) return;
  const fail = (why: string): never => {
    throw new InternalError(`rollup ${scan.relation.rollup?.name}: ${why}`);
  };
  if (scans.length !== 1) fail('something else is read beside it');
  const rollup = catalog.rollups?.find((r) => r === scan.relation.rollup) ?? fail('it is not declared');
  const entity = catalog.relations.get(rollup.entity) ?? fail('its entity is not declared');
  if (!usable.has(rollup.name)) fail('it may not be used');
  const { relation } = scan;
  if (relation.name !== entity.name || relation.schema !== rollup.schema || relation.table !== rollup.table)
    fail('its table stands for another entity');
  if (relation.connector !== entity.connector) fail('it is in another database');
  const block = levels.find((q) => q.kind === 'select' && q.from === scan);
  if (block?.kind !== 'select' || !block.grouped)
    throw new InternalError(`rollup ${rollup.name}: its rows are read singly`);
  const reading = new RollupProof(rollup, entity, scan, slots, fail);
  reading.scan();
  reading.grants(access);
  reading.block(block);
  for (const q of levels)
    if (q !== block && exprsOf(q).some((e) => reads(e, scan.id))) fail('its columns are named elsewhere');
}

function reads(e: Expr, source: number): boolean {
  if (e.kind === 'column') return e.source === source;
  return childrenOf(e).some((child) => reads(child, source));
}

/** Content of a column that exists in the rollup only. */
type RollupColumnRole = 'rows' | 'period' | 'count' | 'sum' | 'min' | 'max';

class RollupProof {
  readonly #rollup: Rollup;
  readonly #entity: Relation;
  readonly #scan: GovernedScan;
  readonly #slots: readonly Slot[];
  readonly #fail: (why: string) => never;
  /**
   * The rollup's own columns by name: their content, and the entity column that it is computed from; null for row
   * counts.
   */
  readonly #kept = new Map<string, { readonly kept: RollupColumnRole; readonly of: string | null }>();

  constructor(
    rollup: Rollup,
    entity: Relation,
    scan: GovernedScan,
    slots: readonly Slot[],
    fail: (why: string) => never,
  ) {
    this.#rollup = rollup;
    this.#entity = entity;
    this.#scan = scan;
    this.#slots = slots;
    this.#fail = fail;
    this.#kept.set('#n', { kept: 'rows', of: null });
    if (rollup.time !== null) this.#kept.set('#t', { kept: 'period', of: rollup.time.column });
    for (const { column: of, count, sum, min, max } of rollup.measures) {
      this.#kept.set(count.name, { kept: 'count', of });
      if (sum !== null) this.#kept.set(sum.name, { kept: 'sum', of });
      if (min !== null) this.#kept.set(min.name, { kept: 'min', of });
      if (max !== null) this.#kept.set(max.name, { kept: 'max', of });
    }
  }

  /** Verifies that visibility and masks of a row depend only on values that all rows of the entity behind it share. */
  scan(): void {
    const { filter, pushed, columns, minimum, sample } = this.#scan;
    if (minimum !== null) this.#fail('its groups need a minimum of entities');
    if (sample !== undefined) this.#fail('a sample of it is taken');
    const same = new Set<string>();
    for (const name of this.#rollup.dimensions)
      same.add(
        this.#entity.columns.find((c) => c.name === name)?.physical ?? this.#fail(`no column ${name}`),
      );
    const inCommon = (e: Expr): boolean =>
      e.kind === 'base' ? same.has(e.column) : queryOf(e) === null && childrenOf(e).every(inCommon);
    for (const e of [...(filter === null ? [] : [filter]), ...pushed])
      if (!inCommon(e)) this.#fail('its filter reads what rows behind one row differ in');
    for (const { name, expr, masked } of columns) {
      const bare = expr.kind === 'base' && expr.column === name && masked === 'none';
      if (this.#kept.has(name) ? !bare : !inCommon(expr)) this.#fail(`column ${name} is not one of its own`);
    }
  }

  /** Verifies that the caller sees the unmasked value of each aggregated column in every visible row. */
  grants(access: Access): void {
    const granted = access.relations.get(this.#entity.name) ?? this.#fail('nothing of the entity is granted');
    for (const { name } of this.#scan.columns) {
      const of = this.#kept.get(name)?.of;
      if (of === undefined || of === null) continue;
      const label = this.#entity.columns.find((c) => c.name === of)?.sensitivity ?? null;
      const whole = granted.grants.filter(
        (g) => g.columns.has(of) && (label === null || g.unmask.has(label)),
      );
      const isWhole = whole.length === granted.grants.length || whole.some((g) => g.filter === null);
      if (granted.denied.has(of) || !(isWhole || coversRows(whole, granted.grants)))
        this.#fail(`column ${of} is not shown in every row`);
    }
    if (granted.grants.some((g) => g.groups !== undefined)) this.#fail('some grants show no rows');
  }

  block(block: Select): void {
    if (block.with.length > 0) this.#fail('its block has tables of its own');
    for (const e of exprsOf(block)) this.#value(e);
  }

  /** Verifies that an expression outside aggregates reads only what all rows behind a rollup row share. */
  #value(e: Expr): void {
    if (queryOf(e) !== null) this.#fail('a query stands in a value over it');
    if (e.kind === 'call' && e.definition.volatility === 'volatile') this.#fail('a value over it is random');
    if (e.kind === 'aggregate') this.#aggregate(e);
    if (e.kind === 'aggregate' || this.#isWholePeriod(e) || this.#isSideOfPeriod(e)) return;
    if (e.kind === 'column' && e.source === this.#scan.id && this.#kept.has(e.name))
      this.#fail(`${e.name} is read by itself`);
    for (const child of childrenOf(e)) this.#value(child);
  }

  #aggregate(call: Aggregate): void {
    const { name, kind } = call.definition;
    if (kind !== 'aggregate' || call.orderBy.length > 0) this.#fail(`${name} is not put together from parts`);
    if (call.filter !== null) this.#value(call.filter);
    const kept = call.args.length === 1 ? this.#keptIn(call.args[0]) : null;
    if (kept !== null) {
      const adds = kept === 'rows' || kept === 'count' || kept === 'sum';
      if (call.distinct || name !== (adds ? 'sum' : kept)) this.#fail(`${name} of ${kept}`);
      return;
    }
    for (const arg of call.args) this.#value(arg);
    const once = name === 'min' || name === 'max' || name === 'every' || name.startsWith('bool_');
    const distinct = name === 'count' && call.distinct && call.args.length > 0;
    if (!once && !distinct) this.#fail(`${name} counts rows of the rollup`);
  }

  /**
   * Returns the content of the column that `e` is, or that a CASE with one arm yields; null for the period of a row and
   * for anything else.
   */
  #keptIn(e: Expr | undefined): RollupColumnRole | null {
    if (e?.kind === 'column') {
      const kept = e.source === this.#scan.id ? this.#kept.get(e.name)?.kept : undefined;
      return kept === undefined || kept === 'period' ? null : kept;
    }
    const [arm, ...more] = e?.kind === 'case' ? e.arms : [];
    if (e?.kind !== 'case' || arm === undefined || more.length > 0 || e.otherwise.kind !== 'null')
      return null;
    this.#value(arm.when);
    return this.#keptIn(arm.result);
  }

  // -------------------------------------------------------------- periods

  #isPeriod(e: Expr | null | undefined): boolean {
    return e?.kind === 'column' && e.source === this.#scan.id && this.#kept.get(e.name)?.kept === 'period';
  }

  #isWholePeriod(e: Expr): boolean {
    if (e.kind !== 'call' || e.definition.name !== 'date_trunc' || !this.#isPeriod(e.args[1])) return false;
    const [unit] = e.args;
    const grain = this.#rollup.time?.grain;
    return (
      unit?.kind === 'structural' && e.args.length === 2 && grain !== undefined && divides(grain, unit.text)
    );
  }

  #isSideOfPeriod(e: Expr): boolean {
    if (e.kind !== 'operation' || !this.#isPeriod(e.left)) return false;
    if (e.definition.name !== '>=' && e.definition.name !== '<') return false;
    const { right } = e;
    const zoned = right.kind === 'call' && right.definition.name === 'timezone';
    const [zone, moment] = zoned ? right.args : [];
    if (zoned && (zone?.kind !== 'structural' || zone.text !== 'UTC')) return false;
    const given = zoned ? moment : right;
    const slot = given?.kind === 'parameter' ? this.#slots[given.slot] : undefined;
    const text = slot?.kind === 'literal' && typeof slot.value === 'string' ? slot.value : null;
    if (text === null || slot === undefined) return false;
    const grain = this.#rollup.time?.grain;
    return grain !== undefined && beginsPeriod(grain, text, slot.type === 'timestamptz');
  }
}

type Grants = readonly { readonly filter: Expr | null }[];

/** True if every filter in `all` is also in `some`. */
function coversRows(some: Grants, all: Grants): boolean {
  const texts = new Set(some.map((g) => JSON.stringify(g.filter)));
  return all.every((g) => texts.has(JSON.stringify(g.filter)));
}

/** Lengths of periods, in seconds or in months; in each list, a shorter one divides a longer one. */
const SECONDS: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3_600, day: 86_400 };
const MONTHS: Readonly<Record<string, number>> = { month: 1, quarter: 3, year: 12 };

function divides(grain: string, unit: string): boolean {
  if (grain === unit) return true;
  const [fine, coarse] = [SECONDS[grain], SECONDS[unit]];
  if (fine !== undefined) return coarse === undefined ? unit === 'week' || unit in MONTHS : fine <= coarse;
  const [few, many] = [MONTHS[grain], MONTHS[unit]];
  return few !== undefined && many !== undefined && few <= many;
}

function beginsPeriod(grain: string, text: string, zoned: boolean): boolean {
  const [day = '', time = '00:00:00+00', ...more] = text.split(' ');
  if (
    more.length > 0 ||
    (zoned ? time !== '00:00:00+00' || !text.includes(' ') : !/^00:00:00(\+00)?$/.test(time))
  )
    return false;
  const [year = '', month = '', date = ''] = day.split('-');
  if (day.length !== 10 || [year, month, date].some((part) => !/^\d+$/.test(part))) return false;
  if (grain in SECONDS) return true;
  const every = MONTHS[grain];
  return every !== undefined && date === '01' && (Number(month) - 1) % every === 0;
}
