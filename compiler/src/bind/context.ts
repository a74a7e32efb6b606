import type { A_Const } from '@pgsql/types';
import type { Access } from '../access/access.js';
import type { Catalog, Joins, MetricFormat, OwnLabel, Relation } from '../catalog/catalog.js';
import { FEATURES, type Feature, type Features } from '../catalog/features.js';
import {
  type ErrorName,
  type ErrorParameters,
  type Position,
  type QueryError,
  queryError,
} from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import type { Expr, LiteralValue, Parameter, Query, Select, Slot, SourceId } from '../plan/plan.js';
import type { PlainList } from '../text/lexical.js';
import { locationOfWord } from '../text/parse.js';
import { positionAt, type SourceText } from '../text/text.js';
import type { DeclaredType } from '../types/declared-types.js';
import type { TypeName } from '../types/types.js';
import type { Location } from './ast.js';
import { type CarriedLiterals, ClientParameters, LiteralSlots, WrittenLiteral } from './literals.js';
import type { RuntimeDraft } from './runtime/runtime-draft.js';
import { sqlSizeOf } from './size-limits.js';

/**
 * Kind of objects that names in a statement refer to: entities or tables. Policy applies to the same entities in both
 * cases.
 */
export type World = 'semantic' | 'physical';

interface NamedFromItem {
  readonly source: number;
  readonly alias: string;
  readonly location?: Location;
  readonly columns: ReadonlyMap<string, { readonly sealed: boolean; readonly denied: boolean }>;
}

/** The state kept while binding one statement: slots, ids, limits and positions. */
export class BindContext {
  readonly catalog: Catalog;
  readonly access: Access;
  readonly features: Features;
  readonly world: World;
  /** The join rule; null in raw SQL and in queries that the compiler generates. */
  readonly joins: Joins | null;
  /** False if no model is available for decoder operators. */
  readonly hasDecoder: boolean;
  readonly clients: ClientParameters;
  collates = false;
  readonly enumColumns = new EnumColumns();
  readonly wholeRows = new WholeRows();
  readonly #source: SourceText;
  readonly #slots: Slot[] = [];
  readonly #literals = new LiteralSlots(this.#slots);
  readonly #locations = new Map<Expr, number>();
  readonly #used = new Map<number, Set<string>>();
  readonly #sourcePlaces = new Map<number, number>();
  readonly #items = new Map<number, NamedFromItem>();
  readonly #firstUse = new Map<number, number>();
  readonly #drafts: RuntimeDraft[] = [];
  readonly #metrics = new Set<string>();
  readonly #labels = new Map<string, OwnLabel>();
  /** Expanded computed columns, keyed by source and column name, separated by a space. */
  readonly #computed = new Map<string, Expr>();
  readonly #formats = new Map<Expr, MetricFormat>();
  readonly #lists: ReadonlyMap<number, PlainList>;
  readonly #ownOrders = new WeakSet<Select['orderBy']>();
  #sources = 0;
  #tables = 0;
  /** Number of FROM items counted again because the emitted SQL repeats the expression that contains them. */
  #itemsAgain = 0;
  #depth = 0;
  #nodes = 0;
  #parameters = 0;
  #contentRead = 0;
  #placed = true;
  #author: 'manifest' | 'caller' = 'caller';

  constructor(
    source: SourceText,
    catalog: Catalog,
    access: Access,
    features: Features,
    declared: readonly (DeclaredType | null)[],
    world: World = 'semantic',
    lists: ReadonlyMap<number, PlainList> = new Map(),
    hasDecoder = true,
    joins: Joins | null = null,
  ) {
    this.joins = joins;
    this.hasDecoder = hasDecoder;
    this.#source = source;
    this.#lists = lists;
    this.catalog = catalog;
    this.access = access;
    this.features = features;
    this.world = world;
    this.clients = new ClientParameters(declared, this.#slots, (name, parameters, at) =>
      this.error(name, parameters, at),
    );
  }

  /** @throws QueryError E0511 if the tenant has disabled the feature, or if the text is from the manifest or policy */
  requireFeature(name: Feature, location: Location): void {
    if (this.features[name]) return;
    const { construct, hint } = FEATURES[name];
    throw this.catalog.features?.[name] === false
      ? this.error('switchedOff', { construct, feature: name, hint }, location)
      : this.error('unsupported', { construct: `${construct} here`, hint: null }, location);
  }

  nextSource(): number {
    this.#countItem();
    return ++this.#sources;
  }

  nextTable(): number {
    this.#countItem();
    return ++this.#tables;
  }

  #countItem(): void {
    if (this.#sources + this.#tables + this.#itemsAgain >= LIMITS.fromItems)
      throw queryError('tooComplex', {
        what: 'the number of its tables, derived and common ones with them,',
        limit: LIMITS.fromItems,
      });
  }

  /** Counts bound values, including generated expressions, against the limit. */
  countValues(location?: Location, count = 1): void {
    this.requireRoom(count, location);
    this.#nodes += count;
  }

  /** Refuses a list of `count` or more values that would exceed the limit, before any of them is bound. */
  requireRoom(count: number, location?: Location): void {
    if (this.#nodes + count > LIMITS.nodes)
      throw this.error('tooComplex', { what: 'the number of its values', limit: LIMITS.nodes }, location);
  }

  /** Counts `expr` again because the emitted SQL repeats it. */
  countAgain(expr: Expr, location?: Location): void {
    const { values, items } = sqlSizeOf(expr);
    this.countValues(location, values);
    this.#itemsAgain += items;
    if (items > 0) this.#countItem();
  }

  /** Counts a parameter. Once the parameter limit is reached, further ones count as values. */
  countParameter(location?: Location): void {
    if (++this.#parameters > LIMITS.parameters) this.countValues(location);
  }

  /** @throws QueryError E0511, 54011, if there are more columns than Postgres allows */
  requireColumns(count: number, what: string, location: Location): void {
    if (count > LIMITS.columns) throw this.error('tooManyColumns', { what, limit: LIMITS.columns }, location);
  }

  listAt(location: Location): PlainList | null {
    return location === undefined || !this.#placed ? null : (this.#lists.get(location) ?? null);
  }

  /** Runs `f` one nesting level deeper. @throws QueryError E0511 before the call stack overflows */
  nested<T>(f: () => T): T {
    if (++this.#depth > LIMITS.depth) throw queryError('tooDeep', {});
    try {
      return f();
    } finally {
      this.#depth--;
    }
  }

  error<N extends ErrorName>(name: N, parameters: ErrorParameters<N>, at: Location): QueryError {
    return queryError(
      name,
      parameters,
      at === undefined || at < 0 || !this.#placed ? null : positionAt(this.#source, at),
    );
  }

  syntax(detail: string, at: Location): QueryError {
    return this.error('syntax', { detail }, at);
  }

  /** Returns a grouping error (E0511, SQLSTATE 42803). */
  grouping(detail: string, at: Location, hint?: string): QueryError {
    return this.error('grouping', hint === undefined ? { detail } : { detail, hint }, at);
  }

  /** Returns a window function error (E0511, SQLSTATE 42P20). */
  windowing(detail: string, at: Location, hint?: string): QueryError {
    return this.error('windowing', hint === undefined ? { detail } : { detail, hint }, at);
  }

  /** Returns error E1001 for a request that cannot be resolved. */
  unresolvable(detail: string, at: Location, hint: string | null = null): QueryError {
    return this.error('unresolvable', { detail, hint }, at);
  }

  /** Returns error E0511 for SQL that OSL-SQL does not support. */
  unsupported(construct: string, at: Location, hint: string | null = null): QueryError {
    return this.error('unsupported', { construct, hint }, at);
  }

  /** Returns error E0511 for a whole row that is used for anything other than output. */
  wholeRow(at: Location): QueryError {
    const hint =
      'select it in the statement itself, as a column; elsewhere write c::text, to_jsonb(c) or its columns';
    return this.unsupported('a whole row here', at, hint);
  }

  /** Returns error E0511 for a value of the wrong type. */
  mismatch(detail: string, at: Location, hint: string | null = null): QueryError {
    return this.error('typeMismatch', { detail, hint }, at);
  }

  /**
   * Refuses a relation that policy denies entirely. Call it before reporting a name as unknown.
   *
   * @param shown the name as the caller wrote it
   * @throws QueryError E2101
   */
  refuseDenied(relation: string | undefined, shown: string, at: Location): void {
    if (relation !== undefined && this.access.denied?.has(relation) === true)
      throw this.error('denied', { object: shown }, at);
  }

  /** Finds the location of keyword `word` for constructs whose location the grammar does not report. */
  wordNear(word: string, side: 'before' | 'after', near: Location): Location {
    return this.#placed ? locationOfWord(this.#source, word, side, near) : undefined;
  }

  positionOf(expr: Expr): Position | null {
    const at = this.#locations.get(expr);
    return at === undefined ? null : positionAt(this.#source, at);
  }

  recordPosition(source: number, location: Location): void {
    if (location !== undefined) this.#sourcePlaces.set(source, location);
  }

  recordItems(items: readonly NamedFromItem[]): void {
    for (const item of items) {
      this.#items.set(item.source, item);
      if (!this.#sourcePlaces.has(item.source)) this.recordPosition(item.source, item.location);
    }
  }

  itemOf(source: number): NamedFromItem | undefined {
    return this.#items.get(source);
  }

  positionOfSource(source: number): Position | null {
    const at = this.#sourcePlaces.get(source);
    return at === undefined ? null : positionAt(this.#source, at);
  }

  /**
   * Runs `f` on text to which error positions must not refer: the manifest, or a condition of a metrics request.
   * Literals of such a condition still count as the caller's.
   */
  withoutPositions<T>(f: () => T, author: 'manifest' | 'caller' = 'manifest'): T {
    const before = { placed: this.#placed, author: this.#author };
    this.#placed = false;
    this.#author = author;
    try {
      return f();
    } finally {
      this.#placed = before.placed;
      this.#author = before.author;
    }
  }

  /** Records that column `name` of a FROM item is used, so that its scan includes it. */
  use(source: number, name: string, location?: Location): void {
    if (location !== undefined && !this.#firstUse.has(source)) this.#firstUse.set(source, location);
    const names = this.#used.get(source);
    if (names === undefined) this.#used.set(source, new Set([name]));
    else names.add(name);
  }

  firstUseOf(source: number): Location {
    return this.#firstUse.get(source);
  }

  usedOf(source: number): readonly string[] {
    return [...(this.#used.get(source) ?? [])].sort();
  }

  /** Records an ORDER BY that the compiler, not the caller, derived from a runtime relation. */
  recordRuntimeOrder(keys: Select['orderBy']): void {
    this.#ownOrders.add(keys);
  }

  hasRuntimeOrder({ orderBy }: Select): boolean {
    return this.#ownOrders.has(orderBy);
  }

  recordLabel(own: OwnLabel): void {
    this.#labels.set(JSON.stringify([own.relation, own.label]), Object.freeze(own));
  }

  cacheComputed(source: number, name: string, value: Expr): void {
    this.#computed.set(`${source} ${name}`, value);
  }

  cachedComputed(source: number, name: string): Expr | null {
    const value = this.#computed.get(`${source} ${name}`);
    if (value === undefined) return null;
    this.countAgain(value);
    return Object.freeze({ ...value }); // copied because positions are recorded per expression object
  }

  get ownLabels(): readonly OwnLabel[] {
    return [...this.#labels.values()];
  }

  /** Records that the statement uses a metric, for the audit log. */
  recordMetric(metric: string): void {
    this.#metrics.add(metric);
  }

  withFormat(expr: Expr, format: MetricFormat | undefined): Expr {
    if (format !== undefined) this.#formats.set(expr, format);
    return expr;
  }

  formatOf(expr: Expr): MetricFormat | undefined {
    return this.#formats.get(expr);
  }

  /**
   * Adds a relation whose rows are computed before the statement runs, and returns the slot that will carry these rows.
   */
  addRuntime(draft: RuntimeDraft, location: Location): number {
    const isSeveral = draft.kind === 'retrieval' || draft.kind === 'operated';
    const others = this.#drafts.some((d) => d.kind !== draft.kind || !isSeveral);
    if (draft.kind === 'retrieval' && this.#drafts.length > 0)
      this.requireFeature('several_searches', location);
    if (draft.kind === 'operated') this.requireFeature('operators_over_rows', location);
    if (others) {
      const construct = 'TRAVERSE, `evidence` or operators over rows beside RETRIEVE or each other';
      const hint =
        'a query belongs to exactly one of the five forms; RETRIEVE and operators over rows may stand several times';
      throw this.error('unsupported', { construct, hint }, location);
    }
    if (this.#drafts.length >= LIMITS.retrievals)
      throw this.error(
        'tooComplex',
        { what: 'the number of its RETRIEVEs, or of its SELECTs with operators,', limit: LIMITS.retrievals },
        location,
      );
    this.#drafts.push(draft);
    this.countContentRead();
    return (
      this.#slots.push(Object.freeze({ kind: 'runtime', type: 'jsonb', index: this.#drafts.length - 1 })) - 1
    );
  }

  /** Number of FROM items bound so far, at any depth, that read passages, traversals or evidence. */
  get contentRead(): number {
    return this.#contentRead;
  }

  countContentRead(): void {
    this.#contentRead++;
  }

  get drafts(): readonly RuntimeDraft[] {
    return this.#drafts;
  }

  at<E extends Expr>(expr: E, location: Location): E {
    if (location !== undefined && location >= 0 && this.#placed) this.#locations.set(expr, location);
    return expr;
  }

  locationOf(expr: Expr): Location {
    return this.#locations.get(expr);
  }

  /** Creates the literal for constant `node`. Literals of the manifest are not linked to their nodes. */
  written(text: string, node: A_Const): WrittenLiteral {
    if (this.#placed) return this.#literals.written(text, node);
    return new WrittenLiteral(text, this.#author === 'caller' ? node : null);
  }

  /** Returns the parameter for a literal. Equal literals of the same type share a slot. */
  literal(value: CarriedLiterals, type: TypeName): Parameter {
    return Object.freeze({ kind: 'parameter', slot: this.#literals.slotOf(value, type), type });
  }

  /** Returns the parameter for a constant that the compiler adds. */
  constant(text: string, type: TypeName): Parameter {
    return this.literal(new WrittenLiteral(text, null), type);
  }

  literalIn(expr: Expr): WrittenLiteral | null {
    return expr.kind === 'parameter' ? this.#literals.literalIn(expr.slot) : null;
  }

  /**
   * Returns the value of `expr` if it is a literal, otherwise null. Marks the literal as read, since the plan then
   * depends on its value.
   */
  literalValue(expr: Expr): LiteralValue | null {
    return expr.kind === 'parameter' ? this.#literals.valueOf(expr.slot) : null;
  }

  finish(): {
    slots: readonly Slot[];
    literals: LiteralSlots;
    clientOids: readonly number[];
    metrics: readonly string[];
  } {
    return {
      slots: Object.freeze(this.#slots),
      literals: this.#literals,
      clientOids: this.clients.oids(),
      metrics: Object.freeze([...this.#metrics]),
    };
  }
}

/**
 * Enum columns, which are read as text. Their casts to text stay in the plan until `govern/enum-values.ts` has applied
 * the enum's order, because such a cast makes Postgres sort them as text.
 */
class EnumColumns {
  readonly #columns = new Map<SourceId, ReadonlySet<string>>();

  /** Records the enum columns of a relation, except keys, because joins use keys unchanged. */
  ofRelation(source: SourceId, { columns, sealedKeys }: Relation): void {
    const labelled = columns.filter((c) => c.labels !== undefined && !sealedKeys.includes(c.name));
    this.#note(
      source,
      labelled.map((c) => c.name),
    );
  }

  ofQuery(source: SourceId, query: Query): void {
    if (this.#columns.size > 0) this.#note(source, this.#outputsOf(query));
  }

  has(expr: Expr): boolean {
    return expr.kind === 'column' && this.#columns.get(expr.source)?.has(expr.name) === true;
  }

  #outputsOf(query: Query): readonly string[] {
    if (query.kind === 'set_operation') return this.#outputsOf(query.left);
    if (query.kind === 'values') return [];
    return query.outputs.flatMap(({ expr }, i) => (this.has(expr) ? [`c${i + 1}`] : []));
  }

  #note(source: SourceId, names: readonly string[]): void {
    if (names.length > 0) this.#columns.set(source, new Set(names));
  }
}

/**
 * Whole rows such as `c` in `SELECT c FROM customer c`. They are text here but rows in Postgres, which compares rows
 * differently, so they are allowed as output columns only.
 */
class WholeRows {
  readonly #places = new Map<Expr, Location>();

  note(row: Expr, at: Location): Expr {
    this.#places.set(row, at);
    return row;
  }

  has(expr: Expr): boolean {
    return this.#places.has(expr);
  }

  /** Returns the location of a whole row that is not an output of the statement; undefined if all are outputs. */
  misplaced(whole: Query): { readonly at: Location } | undefined {
    if (this.#places.size === 0) return undefined;
    const shown = new Set(whole.kind === 'select' ? whole.outputs.map((o) => o.expr) : []);
    const found = [...this.#places].find(([row]) => !shown.has(row));
    return found === undefined ? undefined : { at: found[1] };
  }
}
