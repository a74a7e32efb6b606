import { assertNever, InternalError } from '../../errors/errors.js';
import {
  type ColumnRef,
  type Expr,
  type FromLeaf,
  type GovernedScan,
  type Query,
  type Select,
  SHOWN,
  type Slot,
  type SourceId,
} from '../../plan/plan.js';
import {
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  partsOf,
  queriesIn,
  queryOf,
  sortExprs,
} from '../../plan/walk.js';
import {
  isBounded,
  isFixed,
  isSized,
  isTotalNode,
  needsSize,
  type ProofDependency,
  ProofLiterals,
  sizedNumbers,
} from './proofs.js';

/**
 * The final check of the barrier, independent of the code that builds it: traces every condition of the statement to
 * the rows that the planner may run it on, and rejects conditions that could fail on a row not known to be shown.
 *
 * @returns the literals that the proof relies on
 * @throws InternalError, which no caller's query can cause
 */
export function verifyBarrier(root: Query, slots: readonly Slot[]): readonly ProofDependency[] {
  return new BarrierCheck(root, slots).checked();
}

/** The rows of a scan as passed on by a FROM item: `<id of the FROM item> <id of the scan>`. */
type ScanRow = `${SourceId} ${SourceId}`;
type ScanRows = ReadonlySet<ScanRow>;

function idsOf(row: ScanRow): readonly [SourceId, SourceId] {
  return row.split(' ').map(Number) as [number, number]; // always two numbers
}

type FromItemSource =
  | { readonly kind: 'scan'; readonly scan: GovernedScan }
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'given' };

/** Rows known to be shown because a CASE has tested them; equal rows have equal `key`s. */
interface CheckedRows {
  readonly rows: ScanRows;
  readonly key: string;
}

const NOTHING_TESTED: CheckedRows = { rows: new Set(), key: '' };

interface ValueContext {
  readonly tested: CheckedRows;
  /** True for a condition, or part of one, whose selectivity the planner estimates. */
  readonly estimated: boolean;
  /** True if aggregates are evaluated together with the expression; false if they are evaluated before it. */
  readonly inside: boolean;
}

const IN_CONDITION: ValueContext = { tested: NOTHING_TESTED, estimated: true, inside: false };
const IN_QUERY: ValueContext = { tested: NOTHING_TESTED, estimated: false, inside: true };

/** An expression that can raise an error, and the rows tested by a CASE around it. */
interface FailingValue {
  readonly kind: Expr['kind'];
  readonly tested: CheckedRows;
  /** True if the planner may evaluate the expression on values from column statistics. */
  readonly tried: boolean;
}

/** The numbers of a query and all queries in it: from `first` to just before `next`. */
interface QueryRange {
  readonly first: number;
  readonly next: number;
}

/** INVARIANT: results found by following FROM items to their queries are cached by query, and by column or scan. */
class BarrierCheck {
  readonly #root: Query;
  readonly #literals: ProofLiterals;
  readonly #behind = new Map<SourceId, FromItemSource>();
  /** The query of each common table, by its id; null for a recursive one, whose rows count as computed beforehand. */
  readonly #tables = new Map<number, Query | null>();
  readonly #spans = new Map<Query, QueryRange>();
  /** The number of the query whose FROM contains an item. */
  readonly #homes = new Map<SourceId, number>();
  readonly #items = new Map<Query, readonly FromLeaf[]>();
  readonly #outer = new Memo<Query, readonly ColumnRef[]>();
  readonly #hidden = new Memo<string, ScanRows>();
  readonly #sound = new Memo<string, boolean>();
  readonly #limited = new Memo<string, boolean>();
  readonly #soundQueries = new Memo<Query, boolean>();
  readonly #failures = new Memo<Query, readonly FailingValue[]>();
  readonly #cut = new QueryMemo<boolean>();
  readonly #reads = new QueryMemo<boolean>();
  readonly #shown = new QueryMemo<ReadonlySet<SourceId> | null>();
  readonly #inside = new Map<Query, readonly Query[]>();
  /** Numbers of the outer queries that are grouped before the current query runs, so that only shown rows reach it. */
  readonly #settled = new Set<number>();
  /** True if some scan hides rows; `#open`: true if such a scan is unfenced, so that conditions may move into it. */
  #hides = false;
  #open = false;
  #queries = 0;

  constructor(root: Query, slots: readonly Slot[]) {
    this.#root = root;
    this.#literals = new ProofLiterals(slots);
    this.#index(root);
  }

  checked(): readonly ProofDependency[] {
    if (this.#hides) {
      this.#besideFilters();
      this.#level(this.#root);
    }
    if (this.#open && draws(this.#root)) throw new InternalError('a row that is hidden may draw a number');
    return this.#literals.relied;
  }

  /** Predicates next to a row filter also run on hidden rows, in any order, so none of them may fail. */
  #besideFilters(): void {
    for (const behind of this.#behind.values())
      if (behind.kind === 'scan' && hides(behind.scan))
        for (const e of behind.scan.pushed)
          if (!this.#isSound(e, false))
            throw new InternalError(`a ${e.kind} beside a row filter can fail on rows that are hidden`);
  }

  // -------------------------------------------------------------- index of the statement

  #index(query: Query): void {
    const first = this.#queries++;
    const items = query.kind === 'select' ? leavesOf(query.from) : NOTHING;
    this.#items.set(query, items);
    for (const { id } of items) this.#homes.set(id, first);
    // Common tables are registered before nested queries are visited, since those may read them.
    if (query.kind !== 'values')
      for (const t of query.with) this.#tables.set(t.id, t.recursive === true ? null : t.query);
    for (const q of partsOf(query)) this.#index(q);
    for (const leaf of items) this.#indexItem(leaf);
    const inside = query.kind === 'values' ? NOTHING : queriesIn(exprsOf(query));
    if (inside.length > 0) this.#inside.set(query, inside);
    for (const inner of inside) this.#index(inner);
    this.#spans.set(query, { first, next: this.#queries });
  }

  #indexItem(leaf: FromLeaf): void {
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
      // The rows of these items were computed earlier, or from rows that are known to be shown.
      case 'rows':
      case 'recursion':
      case 'spine':
      case 'runtime':
        this.#behind.set(leaf.id, { kind: 'given' });
        break;
      case 'entity':
        throw new InternalError('a scan is not governed');
      default:
        assertNever(leaf);
    }
  }

  #itemsOf(query: Query): readonly FromLeaf[] {
    return this.#items.get(query) ?? NOTHING;
  }

  /** True if a FROM item is in a query, at any depth. */
  #isWithin(query: Query, source: SourceId): boolean {
    const [span, home] = [this.#spans.get(query), this.#homes.get(source)];
    return span !== undefined && home !== undefined && home >= span.first && home < span.next;
  }

  /** True if a FROM item is in the FROM of a query itself. */
  #isOwn(query: Query, source: SourceId): boolean {
    return this.#homes.get(source) === this.#spans.get(query)?.first;
  }

  /** Returns the query that a FROM item reads; null for a scan, and for rows computed earlier. */
  #queryBehind(leaf: FromLeaf): Query | null {
    const behind = this.#behind.get(leaf.id);
    return behind?.kind === 'query' ? behind.query : null;
  }

  // -------------------------------------------------------------- levels

  #level(query: Query): void {
    for (const q of partsOf(query)) this.#level(q);
    const inside = this.#inside.get(query);
    if (inside !== undefined) {
      for (const e of exprsOf(query)) this.#outputsOfIn(e);
      const above = new Set(query.kind === 'select' && query.grouped ? queriesIn(aboveGroups(query)) : []);
      const own = this.#spans.get(query)?.first ?? -1;
      for (const inner of inside) {
        const settles = above.has(inner) && !this.#settled.has(own);
        if (settles) this.#settled.add(own);
        this.#level(inner);
        if (settles) this.#settled.delete(own);
      }
    }
    if (query.kind !== 'select') return;
    for (const c of query.where) if (!this.#isJoin(c, query)) this.#condition(c);
    for (const c of query.having) for (const part of withoutAggregates(c)) this.#condition(part);
    for (const c of conditionsOf(query.from)) this.#condition(c);
  }

  /** Rejects IN if its query's output can fail: the comparison may run on that query's hidden rows. */
  #outputsOfIn(e: Expr): void {
    if (e.kind === 'in_query') {
      const cut = e.query.kind !== 'values' && (e.query.limit !== null || e.query.offset !== null);
      const failing = definitionsAt(e.query, 0).some((d) => !this.#isSound(d, false));
      if (!cut && failing && this.#open)
        throw new InternalError('what IN compares with can fail on rows that are hidden');
    }
    for (const child of childrenOf(e)) this.#outputsOfIn(child);
  }

  #condition(condition: Expr): void {
    // The planner may substitute either side of an equality for the other, in any scan.
    const equates =
      condition.kind === 'operation' && condition.definition.name === '=' && condition.left !== null;
    if (equates && this.#open && !this.#isSound(condition, false)) {
      if (this.#refs(condition.left).length > 0 && this.#refs(condition.right).length > 0)
        throw new InternalError('an equality that can fail is not fenced');
    }
    const exposed = this.#exposedTo(condition);
    if (exposed.length === 0) return;
    const failures = new Failures();
    this.#value(condition, IN_CONDITION, failures);
    for (const failure of failures.all()) this.#judge(failure, exposed);
  }

  /** Returns the rows that may reach a condition before they are known to be shown. */
  #exposedTo(condition: Expr): readonly ScanRow[] {
    const rows = new Set<ScanRow>();
    for (const ref of this.#refs(condition)) {
      for (const row of this.#hiddenBehind(ref)) rows.add(row);
    }
    return [...rows].filter((row) => !this.#settled.has(this.#homes.get(idsOf(row)[0]) ?? -1));
  }

  #judge({ kind, tested, tried }: FailingValue, exposed: readonly ScanRow[]): void {
    const open = exposed.filter((r) => !tested.rows.has(r));
    if (open.some((r) => !this.#isFenced(r)))
      throw new InternalError(`a ${kind} can fail on rows that are hidden`);
    if (open.length > 0 && tried)
      throw new InternalError('the planner may try a pattern on values of rows that are hidden');
  }

  // -------------------------------------------------------------- values

  /** Adds the parts of an expression that can fail to `found`. */
  #value(e: Expr, place: ValueContext, found: Failures): void {
    if (e.kind === 'aggregate' || e.kind === 'window') {
      if (!place.inside) return;
    }
    const tested = this.#testedBy(e);
    if (tested !== null && e.kind === 'case') {
      const [arm] = e.arms;
      if (arm !== undefined)
        this.#value(arm.result, { ...place, tested: both(place.tested, tested), estimated: false }, found);
      this.#value(e.otherwise, place, found);
      return;
    }
    if (e.kind === 'column') {
      if (!this.#isSoundColumn(e)) found.add(e, place);
      return;
    }
    if (isFixed(e, this.#literals)) return;
    if (!this.#isTotal(e)) found.add(e, place);
    const estimated =
      place.estimated && (e.kind === 'and' || e.kind === 'or' || e.kind === 'not' || e.kind === 'truth_test');
    const inner = estimated === place.estimated ? place : { ...place, estimated };
    for (const child of childrenOf(e)) this.#value(child, inner, found);
    for (const q of ownQueries(e)) found.addAll(this.#failuresIn(q), place.tested);
  }

  /** Returns the expressions that can fail in a subquery that a condition evaluates for each row. */
  #failuresIn(query: Query): readonly FailingValue[] {
    return this.#failures.of(query, () => {
      const found = new Failures();
      if (picks(query, this.#literals)) found.add(TRUE, IN_QUERY);
      for (const e of exprsOf(query)) this.#value(e, IN_QUERY, found);
      for (const part of partsOf(query)) found.addAll(this.#failuresIn(part), NOTHING_TESTED);
      if (this.#mayMakeRows(query)) found.add(TRUE, IN_QUERY);
      return found.all();
    });
  }

  /** True if an expression cannot fail on any row; `inside`: aggregates in it are evaluated with it. */
  #isSound(e: Expr, inside: boolean): boolean {
    if ((e.kind === 'aggregate' || e.kind === 'window') && !inside) return true;
    if (e.kind === 'column') return this.#isSoundColumn(e);
    if (isFixed(e, this.#literals)) return true;
    return (
      this.#isTotal(e) &&
      ownQueries(e).every((q) => this.#isSoundQuery(q)) &&
      childrenOf(e).every((c) => this.#isSound(c, inside))
    );
  }

  /** True if the node itself always yields a value; a query in it must return at most one row. */
  #isTotal(e: Expr): boolean {
    if (e.kind === 'call' && isCaseChange(e)) return this.#isLimited(e.args[0]);
    if (e.kind !== 'scalar_query') return isTotalNode(e, this.#literals);
    const { query } = e;
    const aggregates = query.kind === 'select' && query.outputs.some((o) => hasAggregate(o.expr));
    if (aggregates && query.groupBy.length === 0 && query.groupingSets === null) return true;
    return query.kind !== 'values' && !query.withTies && this.#literals.has(query.limit, 'at most one');
  }

  /** True if `text` is read from a column whose type limits the number of characters. */
  #isLimited(text: Expr | undefined): boolean {
    if (text?.kind === 'base') return (text.characters ?? Number.POSITIVE_INFINITY) <= MOST_CHARACTERS;
    if (text?.kind !== 'column') return false;
    return this.#limited.of(`${text.source} ${text.name}`, () => {
      const behind = this.#behind.get(text.source);
      if (behind?.kind === 'scan') return this.#isLimited(columnOf(behind.scan, text.name));
      const values = behind?.kind === 'query' ? definitionsAt(behind.query, placeOf(text)) : NOTHING;
      return values.length > 0 && values.every((value) => this.#isLimited(value));
    });
  }

  #isSoundQuery(query: Query): boolean {
    return this.#soundQueries.of(
      query,
      () =>
        !picks(query, this.#literals) &&
        !this.#mayMakeRows(query) &&
        exprsOf(query).every((e) => this.#isSound(e, true)) &&
        partsOf(query).every((q) => this.#isSoundQuery(q)),
    );
  }

  #isSoundColumn(ref: ColumnRef): boolean {
    return this.#sound.of(`${ref.source} ${ref.name}`, () => {
      const behind = this.#behind.get(ref.source);
      if (behind?.kind === 'scan') return this.#isSound(columnOf(behind.scan, ref.name), true);
      if (behind?.kind !== 'query' || this.#countsOnly(behind.query)) return true;
      return definitionsAt(behind.query, placeOf(ref)).every((d) => this.#isSound(d, false));
    });
  }

  #mayMakeRows(query: Query): boolean {
    if (query.kind === 'values') return false;
    return query.with.some((t) => t.recursive === true) || this.#itemsOf(query).some(makesRows);
  }

  /** True for a fenced query that groups, by grouping sets or with a minimum size: it returns groups, not rows. */
  #countsOnly(query: Query): boolean {
    return (
      query.kind === 'select' &&
      query.offset !== null &&
      (query.groupingSets !== null ||
        this.#itemsOf(query).some((l) => l.kind === 'governed' && l.minimum !== null))
    );
  }

  // -------------------------------------------------------------- rows

  /** Returns the columns that an expression reads outside of aggregates, including outer columns of queries in it. */
  #refs(e: Expr | null): readonly ColumnRef[] {
    return e === null ? NOTHING : this.#readIn([e], (x) => x.kind === 'aggregate' || x.kind === 'window');
  }

  /** Returns the columns that a query reads from outer queries, each once. */
  #outerOf(query: Query): readonly ColumnRef[] {
    return this.#outer.of(query, () => {
      const found = new Map<string, ColumnRef>();
      for (const r of [...this.#readIn(exprsOf(query)), ...partsOf(query).flatMap((q) => this.#outerOf(q))])
        if (!this.#isWithin(query, r.source)) found.set(`${r.source} ${r.name}`, r);
      return [...found.values()];
    });
  }

  /** Returns the columns that expressions read and, as outer columns, their queries read; `skips`: parts left out. */
  #readIn(values: readonly Expr[], skips = (_: Expr): boolean => false): readonly ColumnRef[] {
    const found: ColumnRef[] = [];
    const look = (e: Expr): void => {
      if (skips(e)) return;
      if (e.kind === 'column') found.push(e);
      for (const q of ownQueries(e)) found.push(...this.#outerOf(q));
      for (const child of childrenOf(e)) look(child);
    };
    for (const e of values) look(e);
    return found;
  }

  /** Returns the hidden rows that reach a column, through its FROM item or one that its LATERAL query refers to. */
  #hiddenBehind(ref: ColumnRef): ScanRows {
    return this.#hidden.of(`${ref.source} ${ref.name}`, () => {
      const behind = this.#behind.get(ref.source);
      if (behind?.kind === 'scan')
        return new Set<ScanRow>(hides(behind.scan) ? [`${ref.source} ${behind.scan.id}`] : []);
      if (behind?.kind !== 'query' || this.#countsOnly(behind.query)) return new Set();
      const inner = definitionsAt(behind.query, placeOf(ref)).flatMap((d) => this.#refs(d));
      const rows = inner.flatMap((r) => [...this.#hiddenBehind(r)]);
      return new Set(
        rows.map((row): ScanRow => {
          const [source, scan] = idsOf(row);
          return this.#isWithin(behind.query, source) ? `${ref.source} ${scan}` : row;
        }),
      );
    });
  }

  /** True if no condition can be evaluated on rows of a scan, read through a FROM item, before the row filter. */
  #isFenced(row: ScanRow): boolean {
    const [source, scan] = idsOf(row);
    const behind = this.#behind.get(scan);
    if (behind?.kind === 'scan' && behind.scan.fenced) return true;
    const through = this.#behind.get(source);
    return through?.kind === 'query' && this.#isCut(through.query, scan);
  }

  /** True if no condition on a query can be moved down to rows of a scan, or if the scan is not in it. */
  #isCut(query: Query, scan: SourceId): boolean {
    if (query.kind === 'values' || query.limit !== null || query.offset !== null) return true;
    return this.#cut.of(query, scan, () =>
      query.kind === 'set_operation'
        ? this.#isCut(query.left, scan) && this.#isCut(query.right, scan)
        : this.#itemsOf(query).every((l) => {
            const inner = this.#queryBehind(l);
            return inner === null ? l.id !== scan : this.#isCut(inner, scan);
          }),
    );
  }

  // -------------------------------------------------------------- visibility tests

  /** Returns the rows that a CASE with one arm tests, if its condition contains only that test; otherwise null. */
  #testedBy(e: Expr): CheckedRows | null {
    if (e.kind !== 'case' || e.arms.length !== 1) return null;
    const [arm] = e.arms;
    if (arm === undefined) return null;
    const tested = new Set<ScanRow>();
    for (const test of arm.when.kind === 'and' ? arm.when.args : [arm.when]) {
      const ref = testedColumn(test);
      const shown = ref === null ? null : this.#shownBy(ref);
      if (ref === null || shown === null) return null;
      for (const scan of shown) tested.add(`${ref.source} ${scan}`);
    }
    return testedRows(tested);
  }

  /** Returns the scans whose rows are visible if column `ref` is true; null if the column is not a visibility flag. */
  #shownBy(ref: ColumnRef): ReadonlySet<SourceId> | null {
    const behind = this.#behind.get(ref.source);
    if (behind?.kind === 'scan')
      return ref.name === SHOWN && statesShown(behind.scan) ? new Set([behind.scan.id]) : null;
    if (behind?.kind !== 'query') return null;
    return this.#shownAt(behind.query, placeOf(ref));
  }

  #shownAt(query: Query, place: number): ReadonlySet<SourceId> | null {
    switch (query.kind) {
      case 'values':
        return query.rows.every((r) => isTrue(r[place])) ? new Set() : null;
      case 'set_operation':
        return this.#shown.of(query, place, () => {
          const [left, right] = [this.#shownAt(query.left, place), this.#shownAt(query.right, place)];
          if (left === null || right === null) return null;
          return new Set([
            ...[...left].filter((s) => right.has(s) || !this.#readsRows(query.right, s)),
            ...[...right].filter((s) => !this.#readsRows(query.left, s)),
          ]);
        });
      case 'select':
        return this.#shown.of(query, place, () => this.#shownInLevel(query, query.outputs[place]?.expr));
      default:
        return assertNever(query);
    }
  }

  /** Returns the scans whose rows are visible if `stated` is true; null if it contains more than visibility flags. */
  #shownInLevel(query: Select, stated: Expr | undefined): ReadonlySet<SourceId> | null {
    if (stated === undefined) return null;
    const says = new Map<SourceId, Set<SourceId>>();
    for (const part of stated.kind === 'and' ? stated.args : [stated]) {
      if (isTrue(part)) continue;
      const ref = testedColumn(part);
      const shown = ref === null ? null : this.#shownBy(ref);
      if (ref === null || shown === null) return null;
      const all = says.get(ref.source) ?? new Set();
      for (const s of shown) all.add(s);
      says.set(ref.source, all);
    }
    const candidates = new Set([...says.values()].flatMap((s) => [...s]));
    return new Set(
      [...candidates].filter((s) =>
        this.#itemsOf(query).every((l) => says.get(l.id)?.has(s) === true || !this.#readsRowsBy(l, s)),
      ),
    );
  }

  /** True if a query passes on rows of a scan individually, not as one aggregate. */
  #readsRows(query: Query, scan: SourceId): boolean {
    if (query.kind === 'values' || this.#countsOnly(query)) return false;
    if (query.kind === 'select' && query.grouped && query.groupBy.length === 0 && query.groupingSets === null)
      return false;
    return this.#reads.of(query, scan, () =>
      query.kind === 'set_operation'
        ? this.#readsRows(query.left, scan) || this.#readsRows(query.right, scan)
        : this.#itemsOf(query).some((l) => this.#readsRowsBy(l, scan)),
    );
  }

  #readsRowsBy(leaf: FromLeaf, scan: SourceId): boolean {
    if (leaf.kind === 'governed') return leaf.id === scan;
    const query = this.#queryBehind(leaf);
    return query !== null && this.#readsRows(query, scan);
  }

  // -------------------------------------------------------------- semi-joins

  /** True if Postgres joins the query of a conjunct to the block, so that it never runs for hidden rows. */
  #isJoin(condition: Expr, block: Select): boolean {
    const e = condition.kind === 'not' ? condition.arg : condition;
    if (condition.kind !== 'in_query' && e.kind !== 'exists') return false;
    if (condition.kind === 'in_query') {
      const refs = this.#refs(condition.arg);
      const alone = this.#outerOf(condition.query).length === 0;
      const plain = !condition.negated && queriesIn([condition.arg]).length === 0;
      if (!plain || !alone || refs.length === 0 || refs.some((r) => !this.#isOwn(block, r.source)))
        return false;
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
    const isOuter = (r: ColumnRef): boolean => !this.#isWithin(query, r.source);
    const outer = this.#readIn(query.where).filter(isOuter);
    const elsewhere = [
      ...this.#readIn([...conditionsOf(query.from), ...query.groupBy]),
      ...partsOf(query).flatMap((q) => this.#outerOf(q)),
    ].filter(isOuter);
    return (
      simple && outer.length > 0 && outer.every((r) => this.#isOwn(block, r.source)) && elsewhere.length === 0
    );
  }
}

/** Results cached by key. */
class Memo<K, T> {
  readonly #found = new Map<K, T>();

  of(key: K, find: () => T): T {
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const found = find();
    this.#found.set(key, found);
    return found;
  }
}

/** Results cached by query and a number: the position of a column, or the id of a scan. */
class QueryMemo<T> {
  readonly #byQuery = new Memo<Query, Memo<number, T>>();

  of(query: Query, key: number, find: () => T): T {
    return this.#byQuery.of(query, () => new Memo()).of(key, find);
  }
}

/** Expressions that can fail, one for each set of tested rows and each value of `tried`. */
class Failures {
  readonly #found = new Map<string, FailingValue>();

  add(e: Expr, { tested, estimated }: ValueContext): void {
    this.#note({ kind: e.kind, tested, tried: estimated && isTried(e) });
  }

  /** Adds the failures of a query inside an expression. A CASE around it tests the rows `tested`. */
  addAll(failures: readonly FailingValue[], tested: CheckedRows): void {
    for (const f of failures) this.#note(tested.key === '' ? f : { ...f, tested: both(tested, f.tested) });
  }

  all(): readonly FailingValue[] {
    return [...this.#found.values()];
  }

  #note(failure: FailingValue): void {
    const key = failure.tried ? `${failure.tested.key}!` : failure.tested.key;
    if (!this.#found.has(key)) this.#found.set(key, failure);
  }
}

function testedRows(rows: ScanRows): CheckedRows {
  return { rows, key: [...rows].sort().join() };
}

function both(one: CheckedRows, other: CheckedRows): CheckedRows {
  if (one.key === '' || one.key === other.key) return other;
  return other.key === '' ? one : testedRows(new Set([...one.rows, ...other.rows]));
}

// ---------------------------------------------------------------- groups under a minimum

/**
 * Verifies that nothing can fail on a row that may only be aggregated: the error would reveal the row, even in a large
 * group.
 *
 * @throws InternalError
 */
export function verifyCounted(block: Select, slots: readonly Slot[]): void {
  const literals = new ProofLiterals(slots);
  const rows = [...block.where, ...block.groupBy, ...conditionsOf(block.from)];
  const sums: Extract<Expr, { kind: 'aggregate' }>[] = [];
  const find = (e: Expr): void => {
    if (e.kind === 'aggregate') sums.push(e);
    childrenOf(e).forEach(find);
  };
  for (const e of [...block.outputs.map((o) => o.expr), ...block.having, ...sortExprs(block.orderBy)])
    find(e);
  for (const { args, filter } of sums) rows.push(...args, ...(filter === null ? [] : [filter]));
  for (const e of rows) {
    if (!isTotal(e, literals))
      throw new InternalError('a value can fail on rows that may only be aggregated');
  }
  for (const { definition, args } of sums) {
    const sized = (a: Expr): boolean => a.kind === 'parameter' || isSized(a) || !needsSize(a.type);
    if (
      !/^(?:count|min|max)$/.test(definition.name) &&
      !args.every((a) => sized(a) && !/^(?:interval|money)/.test(a.type))
    )
      throw new InternalError('a sum can be too large on rows that may only be aggregated');
  }
}

function isTotal(e: Expr, literals: ProofLiterals): boolean {
  if (isFixed(e, literals) || isBounded(e)) return true;
  if (e.kind === 'operation') {
    const numbers = sizedNumbers(e);
    if (numbers !== null) return numbers <= (e.type === 'numeric' ? 32 : 2);
  }
  if (!isTotalNode(e, literals)) return false;
  return (
    childrenOf(e).every((c) => isTotal(c, literals)) && ownQueries(e).every((q) => isTotalQuery(q, literals))
  );
}

function isTotalQuery(query: Query, literals: ProofLiterals): boolean {
  if (picks(query, literals)) return false;
  return (
    exprsOf(query).every((e) => isTotal(e, literals)) &&
    partsOf(query).every((q) => isTotalQuery(q, literals))
  );
}

/** Maximum length of a `varchar` in characters. Results of `lower` and `upper` on it stay far below 1 GB. */
const MOST_CHARACTERS = 10_485_760;

function isCaseChange({ definition, args }: Extract<Expr, { kind: 'call' }>): boolean {
  return /^(?:lower|upper)$/.test(definition.name) && args.length === 1 && args[0]?.type === 'text';
}

// ---------------------------------------------------------------- forms of nodes

const TRUE: Expr = { kind: 'boolean', value: true, type: 'bool' };

/** True if the item generates rows from values; this may fail or generate too many rows. */
function makesRows(leaf: FromLeaf): boolean {
  return leaf.kind === 'spine' || leaf.kind === 'rows';
}

function hides(scan: GovernedScan): boolean {
  return scan.filter !== null || scan.relation.kind === 'facet';
}

/** True if a query's LIMIT or OFFSET may fail: it is not a literal from 0 to 999,999,999. */
function picks(query: Query, literals: ProofLiterals): boolean {
  if (query.kind === 'values') return false;
  return [query.limit, query.offset].some((e) => e !== null && !literals.has(e, 'count'));
}

/** True if the scan's column `SHOWN` is exactly its row filter, with NULL treated as false. */
function statesShown(scan: GovernedScan): boolean {
  const stated = columnOf(scan, SHOWN);
  return (
    stated.kind === 'truth_test' && stated.test === 'true' && !stated.negated && stated.arg === scan.filter
  );
}

function columnOf(scan: GovernedScan, name: string): Expr {
  const found = scan.columns.find((c) => c.name === name);
  if (found === undefined) throw new InternalError(`scan of ${scan.relation.name} has no column ${name}`);
  return found.expr;
}

/** Returns the column of a visibility test, `c` or `c IS NOT FALSE` (true for NULL rows of outer joins), else null. */
function testedColumn(e: Expr): ColumnRef | null {
  if (e.kind === 'column') return e;
  const isTest = e.kind === 'truth_test' && e.test === 'false' && e.negated;
  return isTest && e.arg.kind === 'column' ? e.arg : null;
}

function isTrue(e: Expr | undefined): boolean {
  return e?.kind === 'boolean' && e.value;
}

/**
 * True for an operator, other than a comparison, whose selectivity Postgres estimates by trying it on a column's
 * statistics.
 */
function isTried(e: Expr): boolean {
  return (
    (e.kind === 'operation' || e.kind === 'quantified') &&
    e.type === 'bool' &&
    !/^(?:=|<>|[<>]=?)$/.test(e.definition.name)
  );
}

function placeOf(ref: ColumnRef): number {
  return Number(ref.name.slice(1)) - 1;
}

function definitionsAt(query: Query, place: number, into: Expr[] = []): readonly Expr[] {
  if (query.kind === 'set_operation') {
    definitionsAt(query.left, place, into);
    definitionsAt(query.right, place, into);
    return into;
  }
  const found = query.kind === 'values' ? query.rows.map((r) => r[place]) : [query.outputs[place]?.expr];
  for (const expr of found) if (expr !== undefined) into.push(expr);
  return into;
}

const NOTHING: readonly never[] = Object.freeze([]);

/** Returns the expressions evaluated after grouping, and the query's keys, which are evaluated on filtered rows. */
function aboveGroups(level: Select): readonly Expr[] {
  const keys = [...level.groupBy, ...level.distinctOn, ...sortExprs(level.orderBy)];
  return [...level.having, ...level.outputs.map((o) => o.expr), ...keys];
}

/** True if a query draws random values for each row. */
function draws(query: Query): boolean {
  const drawn = (e: Expr): boolean =>
    (e.kind === 'call' && e.definition.volatility === 'volatile') ||
    childrenOf(e).some(drawn) ||
    ownQueries(e).some(draws);
  return exprsOf(query).some(drawn) || partsOf(query).some(draws);
}

function ownQueries(e: Expr): readonly Query[] {
  const query = queryOf(e);
  return query === null ? NOTHING : [query];
}

/** Cached results of `hasAggregate`, which is called at each level of a condition. */
const AGGREGATED = new WeakMap<Expr, boolean>();

function hasAggregate(e: Expr): boolean {
  const has =
    AGGREGATED.get(e) ??
    (e.kind === 'aggregate' || e.kind === 'grouping' || childrenOf(e).some(hasAggregate));
  AGGREGATED.set(e, has);
  return has;
}

/** Returns the operands of AND, OR and NOT without aggregates: the planner may evaluate them before grouping. */
function withoutAggregates(e: Expr): readonly Expr[] {
  if (!hasAggregate(e)) return [e];
  return e.kind === 'and' || e.kind === 'or' || e.kind === 'not'
    ? childrenOf(e).flatMap(withoutAggregates)
    : [];
}

function hasWindow(e: Expr): boolean {
  return e.kind === 'window' || childrenOf(e).some(hasWindow);
}
