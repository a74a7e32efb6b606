import {
  type Access,
  type RelationAccess,
  type RelationGrant,
  rowAccess,
  showsRows,
} from '../../access/access.js';
import {
  type Catalog,
  type Column,
  columnOf,
  type FacetStore,
  type Relation,
} from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import {
  type CountedGrant,
  type Expr,
  type GovernedColumn,
  type GovernedScan,
  GROUP_KEY,
  type GroupMinimum,
  isGroupColumn,
  type Query,
  type Select,
  SHOWN,
  type Slot,
} from '../../plan/plan.js';
import { allQueries, childrenOf, leavesOf, mapChildren } from '../../plan/walk.js';
import { keyColumnName, visibleColumnName } from '../column-names.js';
import { servedAccess, servedVersion } from '../facet-version.js';
import { clearColumn, columnRule, keyColumn, maskedColumn, rowFilter, visibleColumn } from '../mask.js';
import { groupColumns, groupMinimum, hasKey, minimumOf } from '../scan-access.js';
import { GovernedSlots } from '../slots.js';

/**
 * Proves that each scan of a finished plan shows what policy grants, and nothing else: the relation is in the catalog,
 * the row filter and every masked column follow from `access`, and predicates next to the filter read only what the
 * scan shows. Computes the expected filters and columns anew from `access`, with the functions that also made the plan
 * (`mask.ts`, `scan-access.ts`).
 *
 * @throws InternalError
 */
export function verifyScans(root: Query, slots: readonly Slot[], catalog: Catalog, access: Access): void {
  for (const block of allQueries(root)) {
    if (block.kind !== 'select') continue;
    for (const leaf of leavesOf(block.from))
      if (leaf.kind === 'governed') new ScanCheck(leaf, block, slots, catalog, access).run();
  }
}

class ScanCheck {
  readonly #scan: GovernedScan;
  readonly #block: Select;
  readonly #slots: readonly Slot[];
  readonly #catalog: Catalog;
  readonly #access: Access;

  constructor(scan: GovernedScan, block: Select, slots: readonly Slot[], catalog: Catalog, access: Access) {
    this.#scan = scan;
    this.#block = block;
    this.#slots = slots;
    this.#catalog = catalog;
    this.#access = access;
  }

  run(): void {
    const { relation, minimum } = this.#scan;
    const declared = this.#catalog.relations.get(relation.name);
    if (declared === undefined) this.#fail('its relation is not declared');
    else if (relation.kind === 'facet') this.#store(declared);
    else if (relation.rollup !== undefined) this.#rows(this.#ofRollup(declared));
    else if (relation !== declared) this.#fail('its relation is another one');
    else if (minimum === null) this.#rows(this.#shown(relation));
    else this.#counted(relation, minimum);
  }

  #fail(why: string): never {
    throw new InternalError(`scan of ${this.#scan.relation.name}: ${why}`);
  }

  #shown({ name }: Relation): RelationAccess {
    return rowAccess(name, this.#access) ?? this.#fail('nothing of it is granted');
  }

  // -------------------------------------------------------------- rows and cells

  #rows(access: RelationAccess): void {
    this.#filter(access);
    for (const column of this.#scan.columns) this.#column(column, access);
    this.#pushed(access, () => false);
  }

  #filter(access: RelationAccess): void {
    if (this.#text(this.#scan.filter) !== filterText(access))
      this.#fail('its row filter is not the one that its caller must have');
  }

  /** Verifies that a column is a declared one as policy shows it, its join variant, a visibility flag, or `SHOWN`. */
  #column(column: GovernedColumn, access: RelationAccess): void {
    if (column.name === SHOWN) {
      const { expr } = column;
      if (
        expr.kind !== 'truth_test' ||
        expr.test !== 'true' ||
        expr.negated ||
        expr.arg !== this.#scan.filter
      )
        this.#fail(`column ${column.name} says something else than the row filter`);
      return;
    }
    const declared = this.#declared(column.name);
    if (declared === null)
      throw new InternalError(
        `scan of ${this.#scan.relation.name}: column ${column.name} is none of its own`,
      );
    if (!mayRead(declared.name, access)) this.#fail(`column ${declared.name} is not granted`);
    const text = describe(column, this.#slots);
    if (!formsOf(declared, column.name, this.#scan.relation, access).includes(text))
      this.#fail(`column ${column.name} is not masked as policy says`);
  }

  /** Returns the declared column behind column `name` of the scan. */
  #declared(name: string): Column | null {
    const { relation } = this.#scan;
    const own = columnOf(relation, name);
    if (own !== null || !name.includes('#')) return own;
    return (
      relation.columns.find((c) => keyColumnName(c.name) === name || visibleColumnName(c.name) === name) ??
      null
    );
  }

  /**
   * Verifies that predicates next to the row filter read only what the scan shows: whole columns as shown, columns that
   * are clear in every row, or what `isOwn` allows.
   */
  #pushed(access: RelationAccess, isOwn: (e: Expr) => boolean): void {
    const { pushed, columns, relation } = this.#scan;
    if (pushed.length === 0) return;
    const shown = new Set(columns.filter((c) => !isGroupColumn(c.name)).map((c) => this.#text(c.expr)));
    const isClear = (physical: string): boolean =>
      relation.columns.some(
        ({ name, physical: own }) =>
          own === physical && mayRead(name, access) && columnRule(relation, name, access).masked === 'none',
      );
    // Texts are compared last: computing one for each part of a long predicate would take quadratic time.
    const reads = (e: Expr): boolean =>
      isOwn(e) ||
      (e.kind === 'base' ? isClear(e.column) : childrenOf(e).every(reads)) ||
      shown.has(this.#text(e));
    if (!pushed.every(reads)) this.#fail('a predicate beside its filter reads what is hidden');
  }

  // -------------------------------------------------------------- rows that may only be aggregated

  /** Verifies that the scan's grants are the caller's, and its minimum the strictest of these grants. */
  #counted(relation: Relation, minimum: GroupMinimum): void {
    const { columns } = this.#scan;
    const all = this.#access.relations.get(relation.name) ?? this.#fail('nothing of it is granted');
    const grants = minimum.grants.map(
      (said) => applied(said, all.grants) ?? this.#fail('a grant that applies is not of its caller'),
    );
    const names = columns.flatMap(({ name }) => columnOf(relation, name)?.name ?? []);
    const rule = minimumOf(relation, names, all.grants.filter(showsRows), grants);
    if (rule === null) throw new InternalError(`scan of ${relation.name}: it counts rows without a rule`);
    const wanted = groupMinimum(rule, grants);
    if (JSON.stringify({ ...wanted, grants: null }) !== JSON.stringify({ ...minimum, grants: null }))
      this.#fail('its minimum is not that of the grants');
    const access = { ...all, grants };
    this.#filter(access);
    const own = new GovernedSlots([]);
    const counted = new Map(groupColumns(relation, rule, own).map((c) => [c.name, c.expr]));
    const keys = hasKey(relation, rule);
    for (const column of columns) {
      const expected = counted.get(column.name);
      if (expected === undefined) this.#column(column, access);
      else if (textOf(expected, own.finish()) !== this.#text(column.expr))
        this.#fail('its rows are counted by something else');
    }
    const has = new Set(columns.map((c) => c.name));
    if (![...counted.keys()].every((name) => has.has(name)) || !has.has(GROUP_KEY))
      this.#fail('it has no key to count by');
    const texts = new Set(this.#scan.pushed.map((e) => this.#text(e)));
    if (!keys.every((k) => texts.has(this.#text(k)))) this.#fail('rows without a key are counted');
    const keyTexts = new Set(keys.map((k) => this.#text(k)));
    this.#pushed(access, (e) => keyTexts.has(this.#text(e)));
  }

  // -------------------------------------------------------------- rollups

  /** Returns the grants on the entity, plus the rollup's own columns; `verifyRollup` proves that these may be read. */
  #ofRollup(entity: Relation): RelationAccess {
    const access = this.#shown(entity);
    const own = this.#scan.relation.columns.filter((c) => columnOf(entity, c.name) === null);
    const isForged = this.#scan.relation.columns.some(
      (c) => !entity.columns.includes(c) && (!own.includes(c) || c.physical !== c.name),
    );
    if (isForged) this.#fail('its columns are not those of its entity');
    const names = own.map((c) => c.name);
    return {
      ...access,
      grants: access.grants.map((g) => ({ ...g, columns: new Set([...g.columns, ...names]) })),
    };
  }

  // -------------------------------------------------------------- facet stores

  #store(declared: Relation): void {
    const { relation, minimum } = this.#scan;
    const due = this.#versionDue(relation);
    const access = servedAccess(this.#shown(relation), due.version);
    if (minimum !== null) this.#fail('passages are not counted in groups');
    switch (relation.table) {
      case due.version.table:
      case due.version.bits:
        this.#passages(declared, due.facet, access);
        return;
      case due.version.words:
        this.#words(due.facet, access);
        return;
      case due.version.derivedTable:
        this.#derived();
        return;
      default:
        this.#fail('its table is not of the version that is due');
    }
  }

  /** Returns the facet that the scan reads, or its store for word search, and the version that the caller must get. */
  #versionDue(relation: Relation) {
    const facet = this.#catalog.facets.get(relation.name);
    const legs = facet === undefined ? [] : [facet, facet.lexicalLeg].filter((f) => f !== undefined);
    for (const leg of legs) {
      const version = servedVersion(leg, this.#catalog, this.#access);
      if (version === null || leg.schema !== relation.schema) continue;
      const tables = [version.table, version.bits, version.words, version.derivedTable];
      if (tables.includes(relation.table)) return { facet: leg, version };
    }
    return this.#fail('its table is not of the version that is due');
  }

  /** Verifies that passages are filtered by their facet's grants, and shown only with a visible entity. */
  #passages(declared: Relation, facet: FacetStore, access: RelationAccess): void {
    const { columns, relation } = this.#scan;
    const isStored = (e: Expr): boolean =>
      e.kind === 'base' && STORED.has(e.column) && !declared.columns.some((c) => c.physical === e.column);
    this.#filter(access);
    for (const column of columns) {
      const { expr, name } = column;
      if (expr.kind === 'distance' || expr.kind === 'stored_vector' || expr.kind === 'null') continue;
      if (name.startsWith('#') && name !== SHOWN && isStored(expr)) continue;
      this.#column(column, access);
    }
    this.#pushed(access, isStored);
    if (!relation.columns.every((c) => declared.columns.includes(c) || STORED.has(c.physical)))
      this.#fail('its columns are not those of its facet');
    if (!this.#block.where.some((e) => this.#asksForEntity(e, facet)))
      this.#fail('passages are shown whatever becomes of their entity');
  }

  /** True for `key IN (SELECT key FROM entity)`; the scan of the entity is proved like any other. */
  #asksForEntity(e: Expr, facet: FacetStore): boolean {
    if (e.kind !== 'in_query' || e.negated || e.query.kind !== 'select') return false;
    const { arg, query } = e;
    const [output] = query.outputs;
    return (
      arg.kind === 'column' &&
      arg.source === this.#scan.id &&
      arg.name === facet.entityKey &&
      query.from?.kind === 'governed' &&
      query.from.relation === this.#catalog.relations.get(facet.entity) &&
      query.from.minimum === null &&
      output?.expr.kind === 'column' &&
      output.expr.source === query.from.id &&
      output.expr.name === facet.keyOfEntity
    );
  }

  /** Word counts cover all passages, so only a caller who sees all passages may read them. */
  #words({ entity }: FacetStore, access: RelationAccess): void {
    const ofEntity = rowAccess(entity, this.#access);
    const own = new GovernedSlots([]);
    if (ofEntity === undefined || rowFilter(ofEntity, own) !== null || rowFilter(access, own) !== null)
      this.#fail('words are counted in passages that are hidden');
    for (const { expr } of this.#scan.columns)
      if (expr.kind !== 'base' || !WORDS.has(expr.column)) this.#fail('another column of the words is read');
    if (this.#scan.pushed.length > 0) this.#fail('words are filtered');
  }

  /** Verifies that derived attributes are joined by id to passages, whose scan is proved like any other. */
  #derived(): void {
    const { from } = this.#block;
    const isOwn = (e: Expr): boolean =>
      e.kind === 'base' && (DERIVED.has(e.column) || STORED.has(e.column) || e.column === 'entity_key');
    const all = (e: Expr): boolean => isOwn(e) || (e.kind !== 'base' && childrenOf(e).every(all));
    if (![...this.#scan.columns.map((c) => c.expr), ...this.#scan.pushed].every(all))
      this.#fail('another column of what is derived is read');
    if (from?.kind !== 'join' || from.type !== 'inner' || !from.on.some((e) => this.#linksPassages(e)))
      this.#fail('what is derived is shown whatever becomes of its passage');
  }

  #linksPassages(e: Expr): boolean {
    if (e.kind !== 'operation' || e.definition.name !== '=') return false;
    const sides = [e.left, e.right].flatMap((s) => (s?.kind === 'column' ? [s] : []));
    const mine = sides.find((s) => s.source === this.#scan.id);
    const other = sides.find((s) => s.source !== this.#scan.id);
    if (mine?.name !== CHUNK_ID || other === undefined) return false;
    const leaf = leavesOf(this.#block.from).find((l) => l.id === other.source);
    const inner = leaf?.kind === 'derived' && leaf.query.kind === 'select' ? leaf.query : null;
    const named = inner?.outputs[Number(other.name.slice(1)) - 1]?.expr ?? other;
    const scan = inner === null ? leaf : inner.from;
    return (
      scan?.kind === 'governed' &&
      scan.relation.kind === 'facet' &&
      scan.relation.name === this.#scan.relation.name &&
      scan.relation.table !== this.#scan.relation.table &&
      named.kind === 'column' &&
      named.source === scan.id &&
      named.name === CHUNK_ID
    );
  }

  #text(e: Expr | null): string | null {
    return e === null ? null : textOf(e, this.#slots);
  }
}

/** Physical names of the columns of every store, apart from metadata: `store/columns.ts`. */
const STORED: ReadonlySet<string> = new Set([
  'chunk_id',
  'doc_id',
  'source',
  'start_char',
  'end_char',
  'text',
  'sha256',
  'redacted_fields',
  'terms',
]);
const DERIVED: ReadonlySet<string> = new Set(['attribute', 'value', 'score', 'support']);
const WORDS: ReadonlySet<string> = new Set(['term', 'passages']);
const CHUNK_ID = '#chunk_id';

/** Returns the fingerprint of an expression including its parameters' contents, comparable across plans. */
function textOf(e: Expr, slots: readonly Slot[]): string {
  return fingerprint(withSlots(e, slots));
}

/** Copies every node: `fingerprint` caches by node, and entries would live as long as the plan. */
function withSlots(e: Expr, slots: readonly Slot[]): Expr {
  if (e.kind === 'parameter') return { kind: 'literal', value: JSON.stringify(slots[e.slot]), type: e.type };
  const mapped = mapChildren(
    e,
    (child) => withSlots(child, slots),
    (query) => query,
  );
  return mapped === e ? { ...e } : mapped;
}

const FILTERS = new WeakMap<RelationAccess, string | null>();

function filterText(access: RelationAccess): string | null {
  let text = FILTERS.get(access);
  if (text === undefined) {
    const slots = new GovernedSlots([]);
    const filter = rowFilter(access, slots);
    FILTERS.set(access, (text = filter === null ? null : textOf(filter, slots.finish())));
  }
  return text;
}

const FORMS = new WeakMap<RelationAccess, Map<Column, Map<string, readonly string[]>>>();

/** Returns the descriptions (see `describe`) that column `name` of a scan may have if it shows `column`. */
function formsOf(
  column: Column,
  name: string,
  relation: Relation,
  access: RelationAccess,
): readonly string[] {
  const known = FORMS.get(access) ?? new Map<Column, Map<string, readonly string[]>>();
  FORMS.set(access, known);
  const ofColumn = known.get(column) ?? new Map<string, readonly string[]>();
  known.set(column, ofColumn);
  let forms = ofColumn.get(name);
  if (forms === undefined) {
    const rule = columnRule(relation, column.name, access);
    const makers =
      name === column.name
        ? [maskedColumn, clearColumn]
        : name === keyColumnName(column.name)
          ? [keyColumn]
          : [visibleColumn];
    forms = makers.map((make) => {
      const slots = new GovernedSlots([]);
      const made = make(rule, slots);
      return describe(made, slots.finish());
    });
    ofColumn.set(name, forms);
  }
  return forms;
}

function describe({ name, type, masked, expr }: GovernedColumn, slots: readonly Slot[]): string {
  return `${name} ${type} ${masked} ${textOf(expr, slots)}`;
}

export function mayRead(name: string, { grants, denied }: RelationAccess): boolean {
  return !denied.has(name) && grants.some((g) => g.columns.has(name));
}

/** Returns the caller's grant that the scan names, limited to the columns stated there; null if the caller has none. */
function applied(
  { id, filter, columns }: CountedGrant,
  grants: readonly RelationGrant[],
): RelationGrant | null {
  const found = grants.find((g) => {
    const read = [...(g.groups?.metrics?.values() ?? [])];
    const shows = (name: string): boolean => g.columns.has(name) || read.some((r) => r.has(name));
    return g.id === id && g.filter === filter && [...columns].every(shows);
  });
  return found === undefined ? null : { ...found, columns };
}
