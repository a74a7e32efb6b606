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
import { placeOfWord } from '../text/parse.js';
import { positionAt, type SourceText } from '../text/text.js';
import type { DeclaredType } from '../types/declared-types.js';
import type { TypeName } from '../types/types.js';
import type { Location } from './ast.js';
import { ClientParameters } from './client-parameters.js';
import { writtenSizeOf } from './expanded.js';
import { type CarriedLiterals, LiteralSlots, WrittenLiteral } from './literals.js';
import type { RuntimeDraft } from './runtime/runtime-draft.js';

/**
 * The meaning of names in a statement: entities and their columns, or tables and theirs. Policy applies to the same
 * entities either way.
 */
export type World = 'semantic' | 'physical';

/** A FROM item as its reader names it and its columns. */
interface NamedFromItem {
  readonly source: number;
  readonly alias: string;
  readonly location?: Location;
  readonly columns: ReadonlyMap<string, { readonly sealed: boolean; readonly denied: boolean }>;
}

/** The state of binding one statement: the slots and ids it hands out, and positions in the text. */
export class BindContext {
  readonly catalog: Catalog;
  readonly access: Access;
  readonly features: Features;
  readonly world: World;
  /** The join rule; null where it does not apply: in raw SQL, and in queries of the compiler itself. */
  readonly joins: Joins | null;
  /** True if decoder operators have a model to ask. */
  readonly hasDecoder: boolean;
  /** The client's `$1 … $n`. */
  readonly clients: ClientParameters;
  /** True if the statement has a COLLATE. */
  collates = false;
  readonly labelled = new LabelledColumns();
  readonly shownRows = new ShownRows();
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
  /** By FROM item and name. */
  readonly #computed = new Map<string, Expr>();
  readonly #formats = new Map<Expr, MetricFormat>();
  readonly #lists: ReadonlyMap<number, PlainList>;
  readonly #ownOrders = new WeakSet<Select['orderBy']>();
  #sources = 0;
  #tables = 0;
  /** FROM items of values that are written out in one place more. */
  #itemsAgain = 0;
  #depth = 0;
  #nodes = 0;
  #parameters = 0;
  #contentRead = 0;
  #placed = true;
  /** Author of the text that is being bound. */
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

  /** @throws QueryError E0511 if the tenant has switched `name` off, or in the text of a manifest or policy */
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

  /** Counts a value that is bound; whatever writes out more than the caller wrote counts here too. */
  spend(location?: Location, count = 1): void {
    this.#nodes += count;
    if (this.#nodes > LIMITS.nodes)
      throw this.error('tooComplex', { what: 'the number of its values', limit: LIMITS.nodes }, location);
  }

  /** Counts `expr`, which was bound and counted before, where it is written out in one place more. */
  spendAgain(expr: Expr, location?: Location): void {
    const { values, items } = writtenSizeOf(expr);
    this.spend(location, values);
    this.#itemsAgain += items;
    if (items > 0) this.#countItem();
  }

  /** Counts a parameter that is bound: a value beyond the many that drivers send. */
  spendParameter(location?: Location): void {
    if (++this.#parameters > LIMITS.parameters) this.spend(location);
  }

  /** @throws QueryError E0511, 54011, where `what` has more entries than Postgres allows */
  requireColumns(count: number, what: string, location: Location): void {
    if (count > LIMITS.columns) throw this.error('tooManyColumns', { what, limit: LIMITS.columns }, location);
  }

  /** The long list whose first item is at `location`; null if there is none. */
  listAt(location: Location): PlainList | null {
    return location === undefined || !this.#placed ? null : (this.#lists.get(location) ?? null);
  }

  /** Runs `f` one level deeper; refuses what is nested beyond reason before the stack does. */
  nested<T>(f: () => T): T {
    if (++this.#depth > LIMITS.depth) throw queryError('tooDeep', {});
    try {
      return f();
    } finally {
      this.#depth--;
    }
  }

  /** The error of the catalogue, with the place in the caller's text that `at` is. */
  error<N extends ErrorName>(name: N, parameters: ErrorParameters<N>, at: Location): QueryError {
    return queryError(
      name,
      parameters,
      at === undefined || at < 0 || !this.#placed ? null : positionAt(this.#source, at),
    );
  }

  /** The error for what SQL has and OSL-SQL has not: E0511. */
  unsupported(construct: string, at: Location, hint: string | null = null): QueryError {
    return this.error('unsupported', { construct, hint }, at);
  }

  /** The error for a whole row that is more than shown: E0511. */
  wholeRow(at: Location): QueryError {
    const hint =
      'it is shown at the top of the select list; elsewhere write c::text, to_jsonb(c) or its columns';
    return this.unsupported('a whole row here', at, hint);
  }

  /** The error for a value that is not of the type that is needed: E0511. */
  mismatch(detail: string, at: Location, hint: string | null = null): QueryError {
    return this.error('typeMismatch', { detail, hint }, at);
  }

  /**
   * Refuses the use of a relation that policy denies whole. Before it is said that nothing has that name.
   *
   * @param shown what the caller calls it
   * @throws QueryError E2101
   */
  refuseDenied(relation: string | undefined, shown: string, at: Location): void {
    if (relation !== undefined && this.access.denied?.has(relation) === true)
      throw this.error('denied', { object: shown }, at);
  }

  /** Position of keyword `word`, for constructs that the grammar gives no position. */
  wordNear(word: string, side: 'before' | 'after', near: Location): Location {
    return this.#placed ? placeOfWord(this.#source, word, side, near) : undefined;
  }

  /** The position of `expr` in the caller's text, or null where it is not of it. */
  positionOf(expr: Expr): Position | null {
    const at = this.#locations.get(expr);
    return at === undefined ? null : positionAt(this.#source, at);
  }

  /** Records the position of FROM item `source`. */
  standsAt(source: number, location: Location): void {
    if (location !== undefined) this.#sourcePlaces.set(source, location);
  }

  /** Remembers the FROM items of a query, as names see them. */
  knowItems(items: readonly NamedFromItem[]): void {
    for (const item of items) {
      this.#items.set(item.source, item);
      if (!this.#sourcePlaces.has(item.source)) this.standsAt(item.source, item.location);
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
   * Runs `f` over text that errors have no position in: that of the manifest, or a condition of a metrics question,
   * whose literals are the caller's all the same.
   */
  unplaced<T>(f: () => T, author: 'manifest' | 'caller' = 'manifest'): T {
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

  /** Records that column `name` of a FROM item is used, so that its scan reads it. */
  use(source: number, name: string, location?: Location): void {
    if (location !== undefined && !this.#firstUse.has(source)) this.#firstUse.set(source, location);
    const names = this.#used.get(source);
    if (names === undefined) this.#used.set(source, new Set([name]));
    else names.add(name);
  }

  /** Position where a column of a FROM item is used first. */
  firstUseOf(source: number): Location {
    return this.#firstUse.get(source);
  }

  usedOf(source: number): readonly string[] {
    return [...(this.#used.get(source) ?? [])].sort();
  }

  /** Records that an order is that of the step which finds the rows: the caller named none. */
  addOwnOrder(keys: Select['orderBy']): void {
    this.#ownOrders.add(keys);
  }

  isInOwnOrder({ orderBy }: Select): boolean {
    return this.#ownOrders.has(orderBy);
  }

  /** Records a label of a computed column that is written out. */
  isLabelled(own: OwnLabel): void {
    this.#labels.set(JSON.stringify([own.relation, own.label]), Object.freeze(own));
  }

  /** Remembers what a computed column of FROM item `source` is written out to. */
  isComputed(source: number, name: string, value: Expr): void {
    this.#computed.set(`${source} ${name}`, value);
  }

  /** The expansion of a computed column that was bound before, counted once more; null if there is none. */
  computedOf(source: number, name: string): Expr | null {
    const value = this.#computed.get(`${source} ${name}`);
    if (value === undefined) return null;
    this.spendAgain(value);
    return Object.freeze({ ...value }); // each use has a place of its own
  }

  /** The labels of the computed columns that were written out, each once. */
  get ownLabels(): readonly OwnLabel[] {
    return [...this.#labels.values()];
  }

  /** Records that the statement computes a metric, for the audit log. */
  measures(metric: string): void {
    this.#metrics.add(metric);
  }

  /** `expr`, which is a metric's figure and nothing else. */
  figure(expr: Expr, format: MetricFormat | undefined): Expr {
    if (format !== undefined) this.#formats.set(expr, format);
    return expr;
  }

  /** Display format of `expr`, if it is a metric's figure that declares one. */
  formatOf(expr: Expr): MetricFormat | undefined {
    return this.#formats.get(expr);
  }

  /** Takes a runtime relation of this statement; gives the slot that will bring its rows. */
  runtime(draft: RuntimeDraft, location: Location): number {
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
    this.readsContent();
    return (
      this.#slots.push(Object.freeze({ kind: 'runtime', type: 'jsonb', index: this.#drafts.length - 1 })) - 1
    );
  }

  /** Number of times that FROM has named passages, a walk or evidence: at any depth, common tables included. */
  get contentRead(): number {
    return this.#contentRead;
  }

  /** Notes that FROM names such. */
  readsContent(): void {
    this.#contentRead++;
  }

  get drafts(): readonly RuntimeDraft[] {
    return this.#drafts;
  }

  /** Records the position of `expr`, for errors that are found later. */
  at<E extends Expr>(expr: E, location: Location): E {
    if (location !== undefined && location >= 0 && this.#placed) this.#locations.set(expr, location);
    return expr;
  }

  locationOf(expr: Expr): Location {
    return this.#locations.get(expr);
  }

  /** The literal that constant `node` is. What is not in the caller's text is ours. */
  written(text: string, node: A_Const): WrittenLiteral {
    if (this.#placed) return this.#literals.written(text, node);
    return new WrittenLiteral(text, this.#author === 'caller' ? node : null);
  }

  /** A parameter that carries what was written; equal literals of one type share it. */
  literal(value: CarriedLiterals, type: TypeName): Parameter {
    return Object.freeze({ kind: 'parameter', slot: this.#literals.slotOf(value, type), type });
  }

  /** A parameter that carries a value which the plan itself needs. */
  constant(text: string, type: TypeName): Parameter {
    return this.literal(new WrittenLiteral(text, null), type);
  }

  /** The literal that `expr` is, or null where it is none. */
  literalIn(expr: Expr): WrittenLiteral | null {
    return expr.kind === 'parameter' ? this.#literals.literalIn(expr.slot) : null;
  }

  /** The value of `expr` if it is a literal; the plan depends on it from now on. */
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
 * The columns of a statement's FROM items that are read as text and are labels of an enum. A cast of one to text stays
 * in the plan until `govern/enum-order.ts` has given the others their order: Postgres orders the text as any text.
 */
class LabelledColumns {
  readonly #columns = new Map<SourceId, ReadonlySet<string>>();

  /** A key is joined on as it is, whatever it is cast to. */
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
 * Whole rows that stand in a statement by themselves, as in `SELECT c FROM customer c`. They are text here, and rows to
 * Postgres, whose equality and order are other than those of text: so they can be shown, and nothing else.
 */
class ShownRows {
  readonly #places = new Map<Expr, Location>();

  /** Records `row`, with position `at`. */
  note(row: Expr, at: Location): Expr {
    this.#places.set(row, at);
    return row;
  }

  has(expr: Expr): boolean {
    return this.#places.has(expr);
  }

  /** The place of a row that is no output of the statement itself; undefined where each is one. */
  misplaced(whole: Query): { readonly at: Location } | undefined {
    if (this.#places.size === 0) return undefined;
    const shown = new Set(whole.kind === 'select' ? whole.outputs.map((o) => o.expr) : []);
    const found = [...this.#places].find(([row]) => !shown.has(row));
    return found === undefined ? undefined : { at: found[1] };
  }
}
