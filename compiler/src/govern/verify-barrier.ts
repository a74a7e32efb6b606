import { InternalError } from '../errors.js';
import {
  type ColumnRef,
  type Expr,
  type FromItem,
  type GovernedScan,
  type Query,
  type Select,
  SHOWN,
  type Slot,
  type SortKey,
  type SourceId,
} from '../plan.js';
import {
  isBounded,
  isFixed,
  isSized,
  isTotalNode,
  needsSize,
  type Reliance,
  sizedNumbers,
  upholds,
} from './verify-proofs.js';

/**
 * The last check of the barrier, by other means than those that put it up: follows every condition of the statement
 * down to the rows that the planner may run it on, and refuses one that could fail on a row that is not known to be
 * shown.
 *
 * @returns the literals that a proof rests on
 * @throws InternalError; a caller's mistake cannot cause one
 */
export function verifyBarrier(root: Query, slots: readonly Slot[]): readonly Reliance[] {
  return new BarrierCheck(root, slots).checked();
}

/** A row of a scan as it comes through a FROM item: `source scan`. */
type Row = `${SourceId} ${SourceId}`;
type Rows = ReadonlySet<Row>;
const NO_ROWS: Rows = new Set();

function idsOf(row: Row): readonly [SourceId, SourceId] {
  return row.split(' ').map(Number) as [number, number]; // made of two numbers
}

/** What stands behind a FROM item. */
type Behind =
  | { readonly kind: 'scan'; readonly scan: GovernedScan }
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'given' };

/** Where a value stands. */
interface Place {
  /** The rows that may reach it before they are known to be shown. */
  readonly exposed: Rows;
  /** Those known to be shown, since a CASE has asked. */
  readonly asked: Rows;
  /** Whether it is a condition, or one of several that make one up, whose outcome the planner estimates. */
  readonly estimated: boolean;
  /** Whether aggregates run where it does, and not below. */
  readonly inside: boolean;
}

class BarrierCheck {
  readonly #root: Query;
  readonly #slots: readonly Slot[];
  readonly #behind = new Map<SourceId, Behind>();
  /** Null for a recursive one, whose rows are worked out before anything reads them. */
  readonly #tables = new Map<number, Query | null>();
  readonly #hidden = new Map<string, Rows>();
  readonly #sound = new Map<string, boolean>();
  readonly #scansOf = new Map<Query, ReadonlySet<SourceId>>();
  /** The queries in the values of each level that has some. */
  readonly #inside = new Map<Query, readonly Query[]>();
  readonly #reliances: Reliance[] = [];
  readonly #rely = (r: Reliance): void => {
    this.#reliances.push(r);
  };
  /** Whether some scan hides rows; and whether one of these is not fenced. */
  #hides = false;
  #open = false;

  constructor(root: Query, slots: readonly Slot[]) {
    this.#root = root;
    this.#slots = slots;
    this.#know(root);
  }

  checked(): readonly Reliance[] {
    if (this.#hides) this.#level(this.#root, new Set());
    if (this.#open && draws(this.#root)) throw new InternalError('a row that is hidden may draw a number');
    return this.#reliances;
  }

  // -------------------------------------------------------------- what there is

  #know(query: Query): void {
    // Before the queries inside, which may read them.
    if (query.kind !== 'values')
      for (const t of query.with) this.#tables.set(t.id, t.recursive === true ? null : t.query);
    for (const q of partsOf(query)) this.#know(q);
    if (query.kind === 'values') return;
    if (query.kind === 'select') for (const leaf of itemsOf(query.from)) this.#knowItem(leaf);
    const inside = queriesInAll(valuesOf(query));
    if (inside.length > 0) this.#inside.set(query, inside);
    for (const inner of inside) this.#know(inner);
  }

  #knowItem(leaf: Leaf): void {
    switch (leaf.kind) {
      case 'governed':
        this.#behind.set(leaf.id, { kind: 'scan', scan: leaf });
        if (hides(leaf)) this.#hides = true;
        if (hides(leaf) && !leaf.fenced) this.#open = true;
        break;
      case 'derived':
        this.#behind.set(leaf.id, { kind: 'query', query: leaf.query });
        break;
      case 'cte': {
        const query = this.#tables.get(leaf.table);
        if (query === undefined) throw new InternalError('a common table is not there');
        this.#behind.set(leaf.id, query === null ? { kind: 'given' } : { kind: 'query', query });
        break;
      }
      // What these yield was worked out before, or of rows that are known to be shown.
      case 'rows':
      case 'recursion':
      case 'spine':
      case 'runtime':
        this.#behind.set(leaf.id, { kind: 'given' });
        break;
      case 'entity':
        throw new InternalError('a scan is not governed');
      default: {
        const unknown: never = leaf;
        throw new InternalError(`unexpected FROM item ${String(unknown)}`);
      }
    }
  }

  // -------------------------------------------------------------- levels

  /** @param settled FROM items around whose rows were grouped before the query runs, so that all of them are shown */
  #level(query: Query, settled: ReadonlySet<SourceId>): void {
    for (const q of partsOf(query)) this.#level(q, settled);
    const inside = this.#inside.get(query);
    if (inside !== undefined) {
      for (const e of valuesOf(query)) this.#outputsOfIn(e);
      const above = new Set(query.kind === 'select' && query.grouped ? queriesInAll(aboveGroups(query)) : []);
      const grouped = query.kind === 'select' ? itemsOf(query.from).map((l) => l.id) : [];
      for (const inner of inside)
        this.#level(inner, above.has(inner) ? new Set([...settled, ...grouped]) : settled);
    }
    if (query.kind !== 'select') return;
    for (const c of query.where) if (!this.#isJoin(c, query)) this.#condition(c, settled);
    for (const c of query.having) if (!hasAggregate(c)) this.#condition(c, settled);
    for (const c of onOf(query.from)) this.#condition(c, settled);
  }

  /** IN compares with what its query yields, which may become a condition on that query's rows. */
  #outputsOfIn(e: Expr): void {
    if (e.kind === 'in_query') {
      const cut = e.query.kind !== 'values' && (e.query.limit !== null || e.query.offset !== null);
      const failing = definitionsAt(e.query, 0).some((d) => !this.#isSound(d, false));
      if (!cut && failing && this.#open)
        throw new InternalError('what IN compares with can fail on rows that are hidden');
    }
    for (const child of below(e)) this.#outputsOfIn(child);
  }

  #condition(condition: Expr, settled: ReadonlySet<SourceId>): void {
    const exposed = new Set([...this.#rows(condition)].filter((row) => !settled.has(idsOf(row)[0])));
    // Equality of two values lets the planner put either in the place of the other, in any scan.
    const equates =
      condition.kind === 'operation' && condition.definition.name === '=' && condition.left !== null;
    if (equates && this.#open && !this.#isSound(condition, false)) {
      const [left, right] = [this.#refs(condition.left), this.#refs(condition.right)];
      if (left.length > 0 && right.length > 0)
        throw new InternalError('an equality that can fail is not fenced');
    }
    this.#value(condition, { exposed, asked: NO_ROWS, estimated: true, inside: false });
  }

  // -------------------------------------------------------------- values

  #value(e: Expr, place: Place): void {
    if (e.kind === 'aggregate' || e.kind === 'window') {
      if (!place.inside) return;
    }
    const asked = this.#askedBy(e);
    if (asked !== null && e.kind === 'case') {
      const [arm] = e.arms;
      if (arm !== undefined)
        this.#value(arm.result, { ...place, asked: new Set([...place.asked, ...asked]), estimated: false });
      this.#value(e.otherwise, place);
      return;
    }
    if (e.kind === 'column') {
      if (!this.#isSoundColumn(e)) this.#fails(e, place);
      return;
    }
    if (isFixed(e, this.#slots, this.#rely)) return;
    if (!this.#isTotal(e)) this.#fails(e, place);
    const estimated =
      place.estimated && (e.kind === 'and' || e.kind === 'or' || e.kind === 'not' || e.kind === 'truth_test');
    for (const child of below(e)) this.#value(child, { ...place, estimated });
    for (const inner of ownQueries(e)) this.#within(inner, { ...place, estimated: false, inside: true });
  }

  /** A query inside a condition runs for each row that reaches the condition, and all of it with it. */
  #within(query: Query, place: Place): void {
    if (picks(query, this.#slots, this.#rely)) this.#fails(TRUE, place);
    for (const e of valuesOf(query)) this.#value(e, place);
    for (const part of partsOf(query)) this.#within(part, place);
    if (mayMakeRows(query)) this.#fails(TRUE, place);
  }

  #fails(e: Expr, { exposed, asked, estimated }: Place): void {
    const open = [...exposed].filter((r) => !asked.has(r));
    if (open.some((r) => !this.#isFenced(r)))
      throw new InternalError(`a ${e.kind} can fail on rows that are hidden`);
    if (open.length > 0 && estimated && isTried(e))
      throw new InternalError('the planner may try a pattern on values of rows that are hidden');
  }

  /** Whether a value can be worked out of any row; `inside` whether aggregates in it run with it. */
  #isSound(e: Expr, inside: boolean): boolean {
    if ((e.kind === 'aggregate' || e.kind === 'window') && !inside) return true;
    if (e.kind === 'column') return this.#isSoundColumn(e);
    if (isFixed(e, this.#slots, this.#rely)) return true;
    return (
      this.#isTotal(e) &&
      ownQueries(e).every((q) => this.#isSoundQuery(q)) &&
      below(e).every((c) => this.#isSound(c, inside))
    );
  }

  /** Whether the node itself yields a value: of a query in it, one row at most. */
  #isTotal(e: Expr): boolean {
    if (e.kind !== 'scalar_query') return isTotalNode(e, this.#slots, this.#rely);
    const { query } = e;
    const aggregates = query.kind === 'select' && query.outputs.some((o) => hasAggregate(o.expr));
    if (aggregates && query.groupBy.length === 0 && query.groupingSets === null) return true;
    return (
      query.kind !== 'values' &&
      !query.withTies &&
      isRelied(query.limit, 'at most one', this.#slots, this.#rely)
    );
  }

  #isSoundQuery(query: Query): boolean {
    if (picks(query, this.#slots, this.#rely)) return false;
    if (mayMakeRows(query)) return false;
    return (
      valuesOf(query).every((e) => this.#isSound(e, true)) &&
      partsOf(query).every((q) => this.#isSoundQuery(q))
    );
  }

  #isSoundColumn(ref: ColumnRef): boolean {
    const key = `${ref.source} ${ref.name}`;
    const known = this.#sound.get(key);
    if (known !== undefined) return known;
    const behind = this.#behind.get(ref.source);
    const found =
      behind?.kind === 'scan'
        ? this.#isSound(columnOf(behind.scan, ref.name), true)
        : behind?.kind !== 'query' ||
          countsOnly(behind.query) ||
          definitionsAt(behind.query, placeOf(ref)).every((d) => this.#isSound(d, false));
    this.#sound.set(key, found);
    return found;
  }

  // -------------------------------------------------------------- rows

  /** The rows, hidden ones too, that may reach a condition. */
  #rows(condition: Expr): Rows {
    const rows = new Set<Row>();
    for (const ref of this.#refs(condition)) {
      for (const row of this.#hiddenBehind(ref)) rows.add(row);
    }
    return rows;
  }

  /** The columns that a value reads, those that queries in it read from outside of them too. */
  #refs(e: Expr): readonly ColumnRef[] {
    if (e.kind === 'aggregate' || e.kind === 'window') return [];
    if (e.kind === 'column') return [e];
    const found: ColumnRef[] = [];
    for (const q of ownQueries(e)) {
      const own = sourcesIn(q);
      found.push(...refsIn(q).filter((r) => !own.has(r.source)));
    }
    for (const child of below(e)) found.push(...this.#refs(child));
    return found;
  }

  /** Those that reach a column: by its own FROM item, or by one that its LATERAL query looks out to. */
  #hiddenBehind(ref: ColumnRef): Rows {
    const key = `${ref.source} ${ref.name}`;
    const known = this.#hidden.get(key);
    if (known !== undefined) return known;
    const found = new Set<Row>();
    const behind = this.#behind.get(ref.source);
    if (behind?.kind === 'scan' && hides(behind.scan)) found.add(`${ref.source} ${behind.scan.id}`);
    if (behind?.kind === 'query' && !countsOnly(behind.query)) {
      const own = sourcesIn(behind.query);
      for (const d of definitionsAt(behind.query, placeOf(ref))) {
        for (const inner of this.#refs(d)) {
          for (const row of this.#hiddenBehind(inner)) {
            const [source, scan] = idsOf(row);
            found.add(own.has(source) ? `${ref.source} ${scan}` : row);
          }
        }
      }
    }
    this.#hidden.set(key, found);
    return found;
  }

  /** Whether no condition reaches rows of a scan through a FROM item before they were filtered. */
  #isFenced(row: Row): boolean {
    const [source, scan] = idsOf(row);
    const behind = this.#behind.get(scan);
    if (behind?.kind === 'scan' && behind.scan.fenced) return true;
    const through = this.#behind.get(source);
    return through?.kind === 'query' && this.#isCut(through.query, scan);
  }

  #isCut(query: Query, scan: SourceId): boolean {
    if (query.kind === 'values') return true;
    if (query.limit !== null || query.offset !== null) return true;
    const into = (q: Query): boolean => !this.#scansIn(q).has(scan) || this.#isCut(q, scan);
    if (query.kind === 'set_operation') return into(query.left) && into(query.right);
    return itemsOf(query.from).every((l) => {
      const behind = this.#behind.get(l.id);
      return behind?.kind === 'query' ? into(behind.query) : l.id !== scan;
    });
  }

  #scansIn(query: Query): ReadonlySet<SourceId> {
    const known = this.#scansOf.get(query);
    if (known !== undefined) return known;
    const found = new Set<SourceId>();
    const operands =
      query.kind === 'set_operation'
        ? [query.left, query.right]
        : query.kind === 'select'
          ? itemsOf(query.from).flatMap((l) => {
              const behind = this.#behind.get(l.id);
              if (l.kind === 'governed') found.add(l.id);
              return behind?.kind === 'query' ? [behind.query] : [];
            })
          : [];
    for (const q of operands) for (const id of this.#scansIn(q)) found.add(id);
    this.#scansOf.set(query, found);
    return found;
  }

  // -------------------------------------------------------------- what a CASE asks

  /** The rows that the only arm of a CASE is for, where its condition is nothing but the question; else null. */
  #askedBy(e: Expr): Rows | null {
    if (e.kind !== 'case' || e.arms.length !== 1) return null;
    const [arm] = e.arms;
    if (arm === undefined) return null;
    const asked = new Set<Row>();
    for (const question of arm.when.kind === 'and' ? arm.when.args : [arm.when]) {
      const ref = questioned(question);
      const shown = ref === null ? null : this.#shownBy(ref);
      if (ref === null || shown === null) return null;
      for (const scan of shown) asked.add(`${ref.source} ${scan}`);
    }
    return asked;
  }

  /** The scans whose rows a column says to be shown; null where it says something else. */
  #shownBy(ref: ColumnRef): ReadonlySet<SourceId> | null {
    const behind = this.#behind.get(ref.source);
    if (behind?.kind === 'scan')
      return ref.name === SHOWN && saysShown(behind.scan) ? new Set([behind.scan.id]) : null;
    if (behind?.kind !== 'query') return null;
    return this.#shownAt(behind.query, placeOf(ref));
  }

  #shownAt(query: Query, place: number): ReadonlySet<SourceId> | null {
    switch (query.kind) {
      case 'values':
        return query.rows.every((r) => isTrue(r[place])) ? new Set() : null;
      case 'set_operation': {
        const [left, right] = [this.#shownAt(query.left, place), this.#shownAt(query.right, place)];
        if (left === null || right === null) return null;
        const [inLeft, inRight] = [this.#rowsOf(query.left), this.#rowsOf(query.right)];
        return new Set([
          ...[...left].filter((s) => right.has(s) || !inRight.has(s)),
          ...[...right].filter((s) => !inLeft.has(s)),
        ]);
      }
      case 'select':
        return this.#shownInLevel(query, query.outputs[place]?.expr);
      default: {
        const unknown: never = query;
        throw new InternalError(`unexpected query ${String(unknown)}`);
      }
    }
  }

  /** A scan's rows are shown where every FROM item that they come through says so. */
  #shownInLevel(query: Select, said: Expr | undefined): ReadonlySet<SourceId> | null {
    if (said === undefined) return null;
    const says = new Map<SourceId, Set<SourceId>>();
    for (const part of said.kind === 'and' ? said.args : [said]) {
      if (isTrue(part)) continue;
      const ref = questioned(part);
      const shown = ref === null ? null : this.#shownBy(ref);
      if (ref === null || shown === null) return null;
      const all = says.get(ref.source) ?? new Set();
      for (const s of shown) all.add(s);
      says.set(ref.source, all);
    }
    const items = itemsOf(query.from).map((l) => ({ id: l.id, scans: this.#scansThrough(l) }));
    const candidates = new Set([...says.values()].flatMap((s) => [...s]));
    return new Set(
      [...candidates].filter((s) =>
        items.every(({ id, scans }) => !scans.has(s) || says.get(id)?.has(s) === true),
      ),
    );
  }

  #scansThrough(leaf: Leaf): ReadonlySet<SourceId> {
    if (leaf.kind === 'governed') return new Set([leaf.id]);
    const behind = this.#behind.get(leaf.id);
    return behind?.kind === 'query' ? this.#rowsOf(behind.query) : new Set();
  }

  /** The scans whose rows come through a query one by one, not as one figure. */
  #rowsOf(query: Query): ReadonlySet<SourceId> {
    if (query.kind === 'values' || countsOnly(query)) return new Set();
    if (query.kind === 'set_operation')
      return new Set([...this.#rowsOf(query.left), ...this.#rowsOf(query.right)]);
    if (query.grouped && query.groupBy.length === 0 && query.groupingSets === null) return new Set();
    return new Set(itemsOf(query.from).flatMap((l) => [...this.#scansThrough(l)]));
  }

  // -------------------------------------------------------------- what becomes a join

  /** Whether the query in a conjunct of WHERE is joined to the block, so that it never runs for a hidden row of it. */
  #isJoin(condition: Expr, block: Select): boolean {
    const e = condition.kind === 'not' ? condition.arg : condition;
    if (condition.kind !== 'in_query' && e.kind !== 'exists') return false;
    const own = new Set(itemsOf(block.from).map((l) => l.id));
    if (condition.kind === 'in_query') {
      const refs = this.#refs(condition.arg);
      const alone = refsIn(condition.query).every((r) => sourcesIn(condition.query).has(r.source));
      const plain = !condition.negated && queriesInAll([condition.arg]).length === 0;
      if (!plain || !alone || refs.length === 0 || refs.some((r) => !own.has(r.source))) return false;
      if (this.#open && !this.#isSound(condition.arg, false))
        throw new InternalError('what IN looks for can fail on rows that are hidden');
      return true;
    }
    if (e.kind !== 'exists' || e.query.kind !== 'select' || e.query.from === null) return false;
    const { query } = e;
    const simple =
      query.with.length === 0 &&
      !query.grouped &&
      query.having.length === 0 &&
      query.limit === null &&
      query.offset === null &&
      !query.outputs.some((o) => hasWindow(o.expr));
    const inner = sourcesIn(query);
    const isOuter = (r: ColumnRef): boolean => !inner.has(r.source);
    const outer = query.where.flatMap(deepRefs).filter(isOuter);
    const elsewhere = [
      ...onOf(query.from).flatMap(deepRefs),
      ...query.groupBy.flatMap(deepRefs),
      ...partsOf(query).flatMap(refsIn),
    ].filter(isOuter);
    return simple && outer.length > 0 && outer.every((r) => own.has(r.source)) && elsewhere.length === 0;
  }
}

// ---------------------------------------------------------------- groups under a minimum

/**
 * Whether nothing in a block that counts rows which may only be aggregated can fail on one of them: an error would
 * tell of a row whatever the size of its group.
 *
 * @throws InternalError
 */
export function verifyCounted(block: Select, slots: readonly Slot[]): void {
  const rows = [...block.where, ...block.groupBy, ...onOf(block.from)];
  const sums: Extract<Expr, { kind: 'aggregate' }>[] = [];
  const find = (e: Expr): void => {
    if (e.kind === 'aggregate') sums.push(e);
    below(e).forEach(find);
  };
  for (const e of [...block.outputs.map((o) => o.expr), ...block.having, ...sortedBy(block)]) find(e);
  for (const { args, filter } of sums) rows.push(...args, ...(filter === null ? [] : [filter]));
  for (const e of rows) {
    if (!isTotal(e, slots)) throw new InternalError('a value can fail on rows that may only be aggregated');
  }
  for (const { definition, args } of sums) {
    const sized = (a: Expr): boolean => a.kind === 'parameter' || isSized(a) || !needsSize(a.type);
    if (
      !/^(?:count|min|max)$/.test(definition.name) &&
      !args.every((a) => sized(a) && !/^interval/.test(a.type))
    )
      throw new InternalError('a sum can be too large on rows that may only be aggregated');
  }
}

function isTotal(e: Expr, slots: readonly Slot[]): boolean {
  const ignored = (): void => undefined;
  if (isFixed(e, slots, ignored) || isBounded(e)) return true;
  if (e.kind === 'operation') {
    const numbers = sizedNumbers(e);
    if (numbers !== null) return numbers <= (e.type === 'numeric' ? 32 : 2);
  }
  if (!isTotalNode(e, slots, ignored)) return false;
  return below(e).every((c) => isTotal(c, slots)) && ownQueries(e).every((q) => isTotalQuery(q, slots));
}

function isTotalQuery(query: Query, slots: readonly Slot[]): boolean {
  if (picks(query, slots, () => undefined)) return false;
  return (
    valuesOf(query).every((e) => isTotal(e, slots)) && partsOf(query).every((q) => isTotalQuery(q, slots))
  );
}

// ---------------------------------------------------------------- the tree, by the verifier's own eyes

type Leaf = Exclude<FromItem, { kind: 'join' }>;
const TRUE: Expr = { kind: 'boolean', value: true, type: 'bool' };

/** Whether it makes rows of values, and may fail at it or make too many. */
function makesRows(leaf: Leaf): boolean {
  return leaf.kind === 'spine' || leaf.kind === 'rows';
}

function mayMakeRows(query: Query): boolean {
  if (query.kind === 'values') return false;
  return (
    query.with.some((t) => t.recursive === true) ||
    (query.kind === 'select' && itemsOf(query.from).some(makesRows))
  );
}

function hides(scan: GovernedScan): boolean {
  return scan.filter !== null || scan.relation.kind === 'facet';
}

/** Whether a query takes some of its rows by numbers that may be negative; those of literals are looked at. */
function picks(query: Query, slots: readonly Slot[], rely: (r: Reliance) => void): boolean {
  if (query.kind === 'values') return false;
  return [query.limit, query.offset].some((e) => e !== null && !isRelied(e, 'count', slots, rely));
}

/** Whether a value is a literal that is what a proof takes it for. */
function isRelied(
  e: Expr | null,
  as: Reliance['as'],
  slots: readonly Slot[],
  rely: (r: Reliance) => void,
): boolean {
  if (e?.kind !== 'parameter' || !upholds({ slot: e.slot, as }, slots)) return false;
  rely({ slot: e.slot, as });
  return true;
}

/** Whether the scan's column `SHOWN` is nothing but its row filter, made true or false. */
function saysShown(scan: GovernedScan): boolean {
  const said = columnOf(scan, SHOWN);
  return said.kind === 'truth_test' && said.test === 'true' && !said.negated && said.arg === scan.filter;
}

function columnOf(scan: GovernedScan, name: string): Expr {
  const found = scan.columns.find((c) => c.name === name);
  if (found === undefined) throw new InternalError(`scan of ${scan.relation.name} has no column ${name}`);
  return found.expr;
}

/** The column of a question "is it shown", asked so that a row that an outer join made up counts as shown. */
function questioned(e: Expr): ColumnRef | null {
  if (e.kind === 'column') return e;
  const asks = e.kind === 'truth_test' && e.test === 'false' && e.negated;
  return asks && e.arg.kind === 'column' ? e.arg : null;
}

function isTrue(e: Expr | undefined): boolean {
  return e?.kind === 'boolean' && e.value;
}

/** Operators other than comparisons whose outcome Postgres estimates by trying them on a column's statistics. */
function isTried(e: Expr): boolean {
  return (
    (e.kind === 'operation' || e.kind === 'quantified') &&
    e.type === 'bool' &&
    !/^(?:=|<>|[<>]=?)$/.test(e.definition.name)
  );
}

/** A level of groups that may be too small, or of several sets of groups: it has a fence, and shows no row. */
function countsOnly(query: Query): boolean {
  return (
    query.kind === 'select' &&
    query.offset !== null &&
    (query.groupingSets !== null ||
      itemsOf(query.from).some((l) => l.kind === 'governed' && l.minimum !== null))
  );
}

function placeOf(ref: ColumnRef): number {
  return Number(ref.name.slice(1)) - 1;
}

function definitionsAt(query: Query, place: number): readonly Expr[] {
  if (query.kind === 'set_operation')
    return [...definitionsAt(query.left, place), ...definitionsAt(query.right, place)];
  if (query.kind === 'values') return query.rows.flatMap((r) => r[place] ?? []);
  const found = query.outputs[place];
  return found === undefined ? [] : [found.expr];
}

const NOTHING: readonly never[] = Object.freeze([]);

function itemsOf(item: FromItem | null): readonly Leaf[] {
  if (item === null) return NOTHING;
  return item.kind === 'join' ? [...itemsOf(item.left), ...itemsOf(item.right)] : [item];
}

function onOf(item: FromItem | null): readonly Expr[] {
  return item?.kind === 'join' ? [...onOf(item.left), ...onOf(item.right), ...item.on] : NOTHING;
}

function sortedBy(query: Select | Extract<Query, { kind: 'set_operation' }>): readonly Expr[] {
  return sortedIn(query.orderBy);
}

function sortedIn(keys: readonly SortKey[]): readonly Expr[] {
  const found: Expr[] = [];
  for (const { by } of keys) if (typeof by !== 'number') found.push(by);
  return found;
}

/** The queries that one reads from. */
function partsOf(query: Query): readonly Query[] {
  if (query.kind === 'values') return NOTHING;
  const parts = query.with.map((t) => t.query);
  if (query.kind === 'set_operation') return [...parts, query.left, query.right];
  for (const leaf of itemsOf(query.from)) {
    if (leaf.kind === 'derived') parts.push(leaf.query);
    if (leaf.kind === 'spine') parts.push(leaf.bounds);
  }
  return parts;
}

function valuesOf(query: Query): readonly Expr[] {
  if (query.kind === 'values') return query.rows.flat();
  const ends = [query.limit, query.offset].filter((e) => e !== null);
  if (query.kind === 'set_operation') return [...sortedBy(query), ...ends];
  return [
    ...onOf(query.from),
    ...itemsOf(query.from).flatMap((l) => (l.kind === 'rows' ? [...l.args, ...(l.fields ?? [])] : [])),
    ...query.where,
    ...query.groupBy,
    ...query.having,
    ...query.outputs.map((o) => o.expr),
    ...query.distinctOn,
    ...sortedBy(query),
    ...ends,
  ];
}

/** What of a level that groups is worked out of its groups; and their keys, of rows that are filtered. */
function aboveGroups(level: Select): readonly Expr[] {
  const keys = [...level.groupBy, ...level.distinctOn, ...sortedBy(level)];
  return [...level.having, ...level.outputs.map((o) => o.expr), ...keys];
}

function below(e: Expr): readonly Expr[] {
  switch (e.kind) {
    case 'column':
    case 'base':
    case 'parameter':
    case 'literal':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'scalar_query':
    case 'exists':
    case 'stored_vector':
      return NOTHING;
    case 'call':
    case 'and':
    case 'or':
    case 'conditional':
    case 'grouping':
      return e.args;
    case 'operation':
      return e.left === null ? [e.right] : [e.left, e.right];
    case 'cast':
    case 'bit_number':
    case 'collate':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'in_query':
    case 'attribute_match':
      return [e.arg];
    case 'distinct_test':
      return [e.left, e.right];
    case 'row_comparison':
      return e.pairs.flatMap(({ left, right }) => [left, right]);
    case 'quantified':
      return [e.arg, e.array];
    case 'membership':
      return [e.arg, ...e.items];
    case 'case':
      return [e.otherwise, ...e.arms.flatMap(({ when, result }) => [when, result])];
    case 'array':
      return e.items;
    case 'subscript':
      return [e.arg, e.index];
    case 'slice':
      return [e.arg, e.lower, e.upper].filter((x) => x !== null);
    case 'distance':
      return [e.to];
    case 'aggregate':
    case 'window': {
      const parts = e.kind === 'window' ? e.partitionBy : NOTHING;
      return [...e.args, ...(e.filter === null ? NOTHING : [e.filter]), ...sortedIn(e.orderBy), ...parts];
    }
    default: {
      const unknown: never = e;
      throw new InternalError(`unexpected value ${String(unknown)}`);
    }
  }
}

/** Whether something in a query is drawn anew for each row. */
function draws(query: Query): boolean {
  const drawn = (e: Expr): boolean =>
    (e.kind === 'call' && e.definition.volatility === 'volatile') ||
    below(e).some(drawn) ||
    ownQueries(e).some(draws);
  return valuesOf(query).some(drawn) || partsOf(query).some(draws);
}

function ownQueries(e: Expr): readonly Query[] {
  return e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query' ? [e.query] : NOTHING;
}

/** The queries at the top of values. */
function queriesInAll(values: readonly Expr[]): readonly Query[] {
  const found: Query[] = [];
  const look = (e: Expr): void => {
    found.push(...ownQueries(e));
    for (const child of below(e)) look(child);
  };
  for (const e of values) look(e);
  return found;
}

function hasAggregate(e: Expr): boolean {
  return e.kind === 'aggregate' || e.kind === 'grouping' || below(e).some(hasAggregate);
}

function hasWindow(e: Expr): boolean {
  return e.kind === 'window' || below(e).some(hasWindow);
}

const SOURCES = new WeakMap<Query, ReadonlySet<SourceId>>();
const REFS = new WeakMap<Query, readonly ColumnRef[]>();

/** The FROM items of a query, at any depth. */
function sourcesIn(query: Query): ReadonlySet<SourceId> {
  const known = SOURCES.get(query);
  if (known !== undefined) return known;
  const own = query.kind === 'select' ? itemsOf(query.from).map((l) => l.id) : [];
  const inner = [...partsOf(query), ...queriesInAll(valuesOf(query))];
  const found = new Set([...own, ...inner.flatMap((q) => [...sourcesIn(q)])]);
  SOURCES.set(query, found);
  return found;
}

/** Every column that a query reads, at any depth, each once. */
function refsIn(query: Query): readonly ColumnRef[] {
  const known = REFS.get(query);
  if (known !== undefined) return known;
  const found = new Map<string, ColumnRef>();
  for (const r of [...valuesOf(query).flatMap(deepRefs), ...partsOf(query).flatMap(refsIn)]) {
    found.set(`${r.source} ${r.name}`, r);
  }
  const refs = [...found.values()];
  REFS.set(query, refs);
  return refs;
}

function deepRefs(e: Expr): readonly ColumnRef[] {
  if (e.kind === 'column') return [e];
  return [...ownQueries(e).flatMap(refsIn), ...below(e).flatMap(deepRefs)];
}
