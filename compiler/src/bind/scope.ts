import type { Node } from '@pgsql/types';
import type { RelationAccess } from '../access/access.js';
import { type ComputedColumn, columnOf, type MetricFormat, type Relation } from '../catalog/catalog.js';
import { columnRef } from '../plan/nodes.js';
import type { ColumnRef, CommonTable, EntityScan, FromItem, Operation } from '../plan/plan.js';
import { nearestIdentifier } from '../text/text.js';
import type { TypeName } from '../types/types.js';
import type { Location } from './ast.js';
import type { BindContext, World } from './context.js';
import type { OwnGrain } from './metrics/own-grain.js';
import type { RowOperators } from './runtime/row-operators.js';
import type { HydrationDraft, RetrievalDraft } from './runtime/runtime-draft.js';

/** One column that a FROM item offers, under the name that queries use for it. */
export interface ScopeColumn {
  /** The item's own name of it: the declared name, or `c<position>` of a derived table. */
  readonly name: string;
  readonly type: TypeName;
  /** True if joins may use it: a sealed key, or one passed through unchanged. */
  readonly sealed: boolean;
  /** Policy lets the caller know of it, not use it. */
  readonly denied: boolean;
  /** True if `*` includes it. */
  readonly starred: boolean;
  /** Set where another FROM item than its own holds the value. */
  readonly source?: number;
  /** Set where it is no column of the scan, but written out to an expression over them. */
  readonly computed?: ComputedColumn;
  /** Set where a FULL JOIN by names has merged two columns: it is the first of them that is not NULL. */
  readonly merged?: readonly [ColumnRef, ColumnRef];
}

/** A row that a row of an item refers to, joined where computed columns read it. */
export interface ParentItem {
  readonly edge: string;
  readonly item: ScopeItem;
  readonly scan: EntityScan;
  readonly on: readonly Operation[];
}

/** A FROM item as names see it. */
export interface ScopeItem {
  readonly source: number;
  readonly alias: string;
  /** Position in the text. */
  readonly location?: Location;
  /** Set for a relation that is named without an alias: the schema that may qualify it. */
  readonly schema?: string;
  /** Columns that USING joined to another item's: only a qualified name means them. */
  readonly joined?: ReadonlySet<string>;
  readonly columns: ReadonlyMap<string, ScopeColumn>;
  /** Columns by their declared names, if an alias renames them: names in the manifest refer to these. */
  readonly declared?: ReadonlyMap<string, ScopeColumn>;
  /** Set for a function of one column, which the item's own name means as well. */
  readonly scalar?: true;
  /** The relation behind it, where it is one. */
  readonly relation: Relation | null;
  /** Set for a RETRIEVE: operators and filters go there. */
  readonly retrieval?: RetrievalDraft;
  /** Set for an entity with content: using its `evidence` makes the query a Joint one. */
  readonly hydration?: HydrationDraft;
  /** Parents joined so far for its computed columns; absent if nothing can be joined to it. */
  readonly parents?: ParentItem[];
  /** The order of the rows where the query states none. */
  readonly order?: readonly ColumnRef[];
}

/** A column as a query writes it. */
export interface ColumnReference {
  /** The FROM item; null where only the column is named. */
  readonly alias: string | null;
  readonly name: string;
  /** Name before the dot, or null: with a schema the item must be a relation of it that has no alias. */
  readonly schema: string | null;
}

/**
 * `column`, `item.column`, `entities.relation.column` or `osl.entities.relation.column`; null for anything else. In raw
 * SQL the schema is that of a table.
 */
export function referenceOf(parts: readonly string[], world: World): ColumnReference | null {
  const [name = '', alias = null, schema = null] = [parts.at(-1), parts.at(-2), parts.at(-3)];
  const here = world === 'physical' || (schema ?? 'entities') === 'entities';
  const known = here && (parts.at(-4) ?? 'osl') === 'osl';
  return known && parts.length <= 4 ? { alias, name, schema } : null;
}

/** The names that an expression can use. Inner scopes see outer ones (correlation). */
export interface Scope {
  readonly parent: Scope | null;
  readonly items: readonly ScopeItem[];
  readonly tables: ReadonlyMap<string, CommonTableEntry>;
  /** Set if its items are to the left of a LATERAL query, which may name their columns. */
  readonly lateral?: true;
  /** The join tree of the items; absent if not needed. */
  readonly from?: FromItem;
  /** Columns that USING joined; `*` lists them first. */
  readonly using?: readonly UsingColumn[];
  /** Collects metrics whose rows the joins repeat; absent if no metric is allowed. */
  readonly ownGrain?: OwnGrain;
  /** Collects operators over its rows; absent if none is allowed. */
  readonly operators?: RowOperators;
}

/** The column that USING makes of both sides. */
interface UsingColumn {
  readonly source: number;
  readonly name: string;
}

/** A column of a bound query, as the query around it sees it. */
export interface BoundColumn {
  readonly name: string;
  readonly type: TypeName;
  /** A sealed key passed through unchanged. */
  readonly sealed: boolean;
  /** Display format, if it is a metric that declares one. */
  readonly format?: MetricFormat;
}

export interface CommonTableEntry {
  readonly table: CommonTable;
  /** Within the step of a recursive table: that table, whose name means the rows of the step before. */
  readonly stepOf?: number;
  readonly columns: readonly BoundColumn[];
  /** True if it reads passages, a walk or evidence. */
  readonly content: boolean;
}

const SEALED = new WeakMap<ScopeItem['columns'], ReadonlySet<string>>();

/** True if column `name` of `item`, by the item's own name of it, is sealed. */
export function isSealedIn({ columns }: ScopeItem, name: string): boolean {
  let names = SEALED.get(columns);
  if (names === undefined) {
    names = new Set([...columns.values()].filter((c) => c.sealed).map((c) => c.name));
    SEALED.set(columns, names);
  }
  return names.has(name);
}

/** `item` with its columns by their declared names. */
export function asDeclared(item: ScopeItem): ScopeItem {
  return item.declared === undefined ? item : { ...item, columns: item.declared };
}

/** The scope of one SELECT level below `parent` with `items` in its FROM. */
export function innerScope(
  parent: Scope | null,
  items: readonly ScopeItem[],
  tables: Scope['tables'],
): Scope {
  return { parent, items, tables };
}

const visibleColumns = new WeakMap<
  RelationAccess,
  { relation: Relation; columns: ReadonlyMap<string, ScopeColumn> }
>();

/** The columns of `relation` that this access knows of. The rest does not exist for the binder. */
export function columnsFor(relation: Relation, access: RelationAccess): ReadonlyMap<string, ScopeColumn> {
  const known = visibleColumns.get(access);
  if (known?.relation === relation) return known.columns;
  const columns = new Map<string, ScopeColumn>();
  for (const { name } of relation.columns) {
    const column = visibleColumn(relation, name, access);
    if (column !== null) columns.set(name, column);
  }
  visibleColumns.set(access, { relation, columns });
  return columns;
}

/** A column as this access knows it; null where it does not. */
export function visibleColumn(relation: Relation, name: string, access: RelationAccess): ScopeColumn | null {
  const column = columnOf(relation, name);
  if (column === null || !access.grants.some((g) => g.columns.has(name))) return null;
  const denied = isDenied(relation, name, access);
  return {
    name,
    type: column.type,
    sealed: relation.sealedKeys.includes(name),
    denied,
    starred: !denied,
  };
}

function isDenied(relation: Relation, name: string, access: RelationAccess): boolean {
  if (access.denied.has(name)) return true;
  const label = relation.columns.find((c) => c.name === name)?.sensitivity ?? null;
  if (label === null) return false;
  const mask = access.masks.get(label) ?? 'deny';
  return mask === 'deny' && !access.grants.some((g) => g.columns.has(name) && g.unmask.has(label));
}

/**
 * Resolves a column outward from `scope`; the nearest level that has it wins. What a computed one is written out to is
 * `columnValue`'s to say: its `ref` stands for no column of a scan.
 */
export function resolveColumn(
  scope: Scope,
  parts: readonly string[],
  ctx: BindContext,
  location: Location,
): { ref: ColumnRef; column: ScopeColumn; item: ScopeItem; level: number } {
  const found = findColumn(scope, parts, ctx, location);
  if (found !== null) return found;
  const reference = referenceOf(parts, ctx.world);
  const alias = reference === null ? parts.slice(0, -1).join('.') : reference.alias;
  throw unknownColumn(scope, alias, parts.at(-1) ?? '', ctx, location);
}

/** Like `resolveColumn`, but null where nothing has that name. */
export function findColumn(
  scope: Scope,
  parts: readonly string[],
  ctx: BindContext,
  location: Location,
): ReturnType<typeof resolveColumn> | null {
  const reference = referenceOf(parts, ctx.world);
  const found = reference === null ? null : lookUp(scope, reference, ctx, location);
  if (found === null) return null;
  const name = parts.at(-1) ?? '';
  const { item, column, level } = found;
  if (column.denied) throw ctx.error('denied', { object: qualifiedName(item, name, ctx) }, location);
  const source = column.source ?? item.source;
  if (column.computed === undefined && column.merged === undefined) ctx.use(source, column.name, location);
  const ref: ColumnRef = columnRef(source, column.name, column.type);
  return { ref: ctx.at(ref, location), column, item, level };
}

/** Sources whose columns the items of this level offer, by item. */
export function localSources(scope: Scope): ReadonlyMap<number, ScopeItem> {
  const sources = new Map<number, ScopeItem>();
  for (const item of withParents(scope.items)) {
    sources.set(item.source, item);
    for (const column of item.columns.values())
      if (column.source !== undefined) sources.set(column.source, item);
  }
  return sources;
}

/** The items, and what their computed columns have had joined. */
export function withParents(items: readonly ScopeItem[]): readonly ScopeItem[] {
  return items.flatMap((i) => [i, ...withParents((i.parents ?? []).map((p) => p.item))]);
}

/** True if an item of this level offers columns of `source`. */
export function isLocal(scope: Scope, source: number): boolean {
  return (
    scope.items.some((i) => i.source === source) ||
    localSources(scope).has(source) ||
    scope.operators?.isResult(source) === true
  );
}

/** Like `resolveColumn`, but null where nothing has that name. */
export function lookUp(scope: Scope, reference: ColumnReference, ctx: BindContext, location: Location) {
  const { alias, name } = reference;
  let level = 0;
  for (let at: Scope | null = scope; at !== null; at = at.parent, level++) {
    const meant = at.items.filter((i) => isMeant(i, reference));
    let found: { readonly item: ScopeItem; readonly column: ScopeColumn; readonly level: number } | null =
      null;
    for (const item of meant) {
      const column = item.columns.get(name);
      if (column === undefined) continue;
      if (found !== null) throw ctx.error('ambiguous', { what: 'column', name }, location);
      found = { item, column, level };
    }
    if (found !== null) return found;
    if (meant.some((i) => isShownTwice(i, name))) {
      throw ctx.error('ambiguous', { what: 'column', name }, location);
    }
    if (alias !== null && meant.length > 0) return null;
  }
  return alias === null ? scalarNamed(scope, name) : null;
}

/** The one column of a function in FROM that is referred to by the function's alias `name`; no column has that name. */
function scalarNamed(scope: Scope, name: string) {
  let level = 0;
  for (let at: Scope | null = scope; at !== null; at = at.parent, level++) {
    const item = at.items.find((i) => i.alias === name && i.scalar === true);
    const [column] = item === undefined ? [] : item.columns.values();
    if (item !== undefined && column !== undefined) return { item, column, level };
  }
  return null;
}

/** True if `reference` could mean a column of `item`. */
export function isMeant(item: ScopeItem, { alias, name, schema }: ColumnReference): boolean {
  if (alias === null) return item.joined?.has(name) !== true;
  return item.alias === alias && (schema === null || item.schema === schema);
}

/** Separator between a name that a derived table has twice and its position; no query can write it. */
export const TWICE = '\u0000';

/** True if a query can refer to the column that is shown as `shown`. */
export function isNameable(shown: string): boolean {
  return !shown.includes(TWICE);
}

function isShownTwice(item: ScopeItem, name: string): boolean {
  return namesShownTwice(item).has(name);
}

const SHOWN_TWICE = new WeakMap<ScopeItem['columns'], ReadonlySet<string>>();

function namesShownTwice({ columns }: ScopeItem): ReadonlySet<string> {
  const known = SHOWN_TWICE.get(columns);
  if (known !== undefined) return known;
  const names = new Set([...columns.keys()].filter((k) => !isNameable(k)).map((k) => k.split(TWICE)[0] ?? k));
  SHOWN_TWICE.set(columns, names);
  return names;
}

function unknownColumn(
  scope: Scope,
  alias: string | null,
  name: string,
  ctx: BindContext,
  location: Location,
) {
  const items: ScopeItem[] = [];
  for (let at: Scope | null = scope; at !== null; at = at.parent) items.push(...at.items);
  if (alias !== null && !items.some((i) => i.alias === alias)) {
    return ctx.error(
      'unknownAlias',
      {
        alias,
        near: nearestIdentifier(alias, items.map((i) => i.alias).filter(isNameable)),
      },
      location,
    );
  }
  const candidates = items
    .filter((i) => alias === null || i.alias === alias)
    .flatMap((i) => [...i.columns].filter(([shown, c]) => isNameable(shown) && !c.denied))
    .map(([shown]) => shown);
  const column = alias === null ? name : `${alias}.${name}`;
  return ctx.error('unknownColumn', { column, near: nearestIdentifier(name, candidates) }, location);
}

function qualifiedName({ relation }: ScopeItem, name: string, ctx: BindContext): string {
  if (relation === null) return name;
  const table = ctx.world === 'physical' ? `${relation.schema}.${relation.table}` : relation.name;
  return `${table}.${name}`;
}

/** A FROM clause: its tree, and its items as names see them, left to right. */
export interface BoundItem {
  readonly item: FromItem;
  readonly items: readonly ScopeItem[];
  /** True if it has an entity or bridge by name, not only queries over them. */
  readonly named: boolean;
  /** True if it reads passages, a walk or evidence, at any depth. */
  readonly content: boolean;
  /** Columns that USING joined. */
  readonly using?: readonly UsingColumn[];
}

/** A whole FROM clause. */
export interface BoundFrom extends BoundItem {
  readonly using: readonly UsingColumn[];
  /** The conjuncts of WHERE that join what commas separate; they filter no more. */
  readonly keys: ReadonlySet<Node>;
}
