import type { Node, WindowDef } from '@pgsql/types';
import type { RelationAccess } from '../access/access.js';
import { type ComputedColumn, columnOf, type MetricFormat, type Relation } from '../catalog/catalog.js';
import { columnRef } from '../plan/nodes.js';
import type { ColumnRef, CommonTable, EntityScan, Expr, FromItem, Operation } from '../plan/plan.js';
import { nearestIdentifier } from '../text/text.js';
import type { TypeName } from '../types/types.js';
import type { Location } from './ast.js';
import type { BindContext, World } from './context.js';
import type { MetricRows } from './metrics/metric-rows.js';
import type { RowOperators } from './runtime/row-operators.js';
import type { HydrationDraft, RetrievalDraft } from './runtime/runtime-draft.js';

export interface ScopeColumn {
  /** The column's name within the FROM item: its declared name, or `c<position>` in a derived table. */
  readonly name: string;
  readonly type: TypeName;
  /** True if joins may use the column: a sealed key, possibly passed through derived tables unchanged. */
  readonly sealed: boolean;
  /** True if the caller may know that the column exists but may not use it. */
  readonly denied: boolean;
  /** True if `*` includes the column. */
  readonly starred: boolean;
  /** Id of the FROM item that provides the value, if it is not this item. */
  readonly source?: number;
  /** Set for a computed column, which is expanded to an expression. */
  readonly computed?: ComputedColumn;
  /** The two columns that FULL JOIN USING merged into this one. Its value is the first that is not NULL. */
  readonly merged?: readonly [ColumnRef, ColumnRef];
}

/** A parent entity joined for the sake of computed columns. */
export interface ParentItem {
  readonly edge: string;
  readonly item: ScopeItem;
  readonly scan: EntityScan;
  readonly on: readonly Operation[];
}

/** A FROM item as seen by name resolution. */
export interface ScopeItem {
  readonly source: number;
  readonly alias: string;
  readonly location?: Location;
  /** Schema that may qualify a relation without an alias. */
  readonly schema?: string;
  /** Columns that USING merged with a column of another item. Only qualified names refer to them. */
  readonly joined?: ReadonlySet<string>;
  readonly columns: ReadonlyMap<string, ScopeColumn>;
  /** Columns by declared name, if an alias renames them. Names in the manifest refer to these. */
  readonly declared?: ReadonlyMap<string, ScopeColumn>;
  /** Set for a function with a single column. The item's own name then also refers to that column. */
  readonly scalar?: true;
  readonly relation: Relation | null;
  /** Set for a RETRIEVE. Operators and filters are added to it. */
  readonly retrieval?: RetrievalDraft;
  /** Set for an entity with content. A query that uses its `evidence` has the contract's Joint form. */
  readonly hydration?: HydrationDraft;
  /** Parents joined so far for computed columns; absent if no parents can be joined. */
  readonly parents?: ParentItem[];
  /** The default order of the rows, for queries without ORDER BY. */
  readonly order?: readonly ColumnRef[];
}

export interface ColumnReference {
  /** Name or alias of the FROM item; null for an unqualified name. */
  readonly alias: string | null;
  readonly name: string;
  /** Set only for `schema.relation.column`; the relation must then have no alias. */
  readonly schema: string | null;
}

/**
 * Parses `column`, `item.column`, `entities.relation.column` or `osl.entities.relation.column`; null for anything
 * else. Raw SQL may use any schema.
 */
export function referenceOf(parts: readonly string[], world: World): ColumnReference | null {
  const [name = '', alias = null, schema = null] = [parts.at(-1), parts.at(-2), parts.at(-3)];
  const here = world === 'physical' || (schema ?? 'entities') === 'entities';
  const known = here && (parts.at(-4) ?? 'osl') === 'osl';
  return known && parts.length <= 4 ? { alias, name, schema } : null;
}

/** The names that an expression can use. A nested scope also sees those of its outer scopes (correlation). */
export interface Scope {
  readonly parent: Scope | null;
  readonly items: readonly ScopeItem[];
  readonly tables: ReadonlyMap<string, CommonTableEntry>;
  readonly from?: FromItem;
  /** The joins by column name in FROM, inner ones first. */
  readonly using?: readonly UsingJoin[];
  /** Collects metrics that require a rewrite of the SELECT. Set only for a SELECT with FROM. */
  readonly metricRows?: MetricRows;
  /** Collects operators over rows; absent if operators are not allowed. */
  readonly operators?: RowOperators;
}

/** A join by column name. `*` lists the columns that it merged before all others of its sides. */
export interface UsingJoin {
  /** The FROM items of both sides. */
  readonly sources: ReadonlySet<number>;
  /** The merged columns in order, each with the item that provides it. */
  readonly columns: readonly { readonly source: number; readonly name: string }[];
}

/** An output column of a bound query. */
export interface BoundColumn {
  readonly name: string;
  readonly type: TypeName;
  /** True for a sealed key that is passed through unchanged. */
  readonly sealed: boolean;
  /** The display format, if the column is a metric that declares one. */
  readonly format?: MetricFormat;
}

export interface CommonTableEntry {
  readonly table: CommonTable;
  /**
   * Set inside the recursive term: id of the recursive table. Its name there refers to the rows of the previous step.
   */
  readonly stepOf?: number;
  readonly columns: readonly BoundColumn[];
  /** True if the table reads passages, traversals or evidence. */
  readonly content: boolean;
}

const SEALED = new WeakMap<ScopeItem['columns'], ReadonlySet<string>>();

export function isSealedIn({ columns }: ScopeItem, name: string): boolean {
  let names = SEALED.get(columns);
  if (names === undefined) {
    names = new Set([...columns.values()].filter((c) => c.sealed).map((c) => c.name));
    SEALED.set(columns, names);
  }
  return names.has(name);
}

export function asDeclared(item: ScopeItem): ScopeItem {
  return item.declared === undefined ? item : { ...item, columns: item.declared };
}

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

/** Returns the columns of `relation` that this access includes. All others are treated as nonexistent. */
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

/** Returns column `name` as this access allows it; null if it is hidden. */
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
 * Resolves a column, preferring the innermost scope that has it. Use `columnValue` for the value: the `ref` of a
 * computed column refers to no scan.
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

/** Like `resolveColumn`, but returns null for an unknown name. */
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

export function localSources(scope: Scope): ReadonlyMap<number, ScopeItem> {
  const sources = new Map<number, ScopeItem>();
  for (const item of withParents(scope.items)) {
    sources.set(item.source, item);
    for (const column of item.columns.values())
      if (column.source !== undefined) sources.set(column.source, item);
  }
  return sources;
}

export function withParents(items: readonly ScopeItem[]): readonly ScopeItem[] {
  return items.flatMap((i) => [i, ...withParents((i.parents ?? []).map((p) => p.item))]);
}

export function isLocal(scope: Scope, source: number): boolean {
  return (
    scope.items.some((i) => i.source === source) ||
    localSources(scope).has(source) ||
    scope.operators?.isResult(source) === true
  );
}

/** Looks up a reference without recording its use; null if there is no such column. */
export function lookUp(scope: Scope, reference: ColumnReference, ctx: BindContext, location: Location) {
  const { alias, name } = reference;
  let level = 0;
  for (let at: Scope | null = scope; at !== null; at = at.parent, level++) {
    const meant = at.items.filter((i) => mayReferTo(i, reference));
    let found: { readonly item: ScopeItem; readonly column: ScopeColumn; readonly level: number } | null =
      null;
    for (const item of meant) {
      const column = item.columns.get(name);
      if (column === undefined) continue;
      if (found !== null) throw ctx.error('ambiguous', { what: 'column', name }, location);
      found = { item, column, level };
    }
    if (found !== null) return found;
    if (meant.some((i) => isDuplicate(i, name))) {
      throw ctx.error('ambiguous', { what: 'column', name }, location);
    }
    if (alias !== null && meant.length > 0) return null;
  }
  return alias === null ? scalarNamed(scope, name) : null;
}

/** Finds the column of a single-column function by the alias of the FROM item. */
function scalarNamed(scope: Scope, name: string) {
  let level = 0;
  for (let at: Scope | null = scope; at !== null; at = at.parent, level++) {
    const item = at.items.find((i) => i.alias === name && i.scalar === true);
    const [column] = item === undefined ? [] : item.columns.values();
    if (item !== undefined && column !== undefined) return { item, column, level };
  }
  return null;
}

export function mayReferTo(item: ScopeItem, { alias, name, schema }: ColumnReference): boolean {
  if (alias === null) return item.joined?.has(name) !== true;
  return item.alias === alias && (schema === null || item.schema === schema);
}

/** Separates a duplicate column name in a derived table from its position. Queries cannot contain NUL. */
export const DUPLICATE_MARK = '\u0000';

/** True if queries can refer by name to a column that is displayed as `shown`. */
export function isNameable(shown: string): boolean {
  return !shown.includes(DUPLICATE_MARK);
}

function isDuplicate(item: ScopeItem, name: string): boolean {
  return duplicateNames(item).has(name);
}

const DUPLICATES = new WeakMap<ScopeItem['columns'], ReadonlySet<string>>();

function duplicateNames({ columns }: ScopeItem): ReadonlySet<string> {
  const known = DUPLICATES.get(columns);
  if (known !== undefined) return known;
  const names = new Set(
    [...columns.keys()].filter((k) => !isNameable(k)).map((k) => k.split(DUPLICATE_MARK)[0] ?? k),
  );
  DUPLICATES.set(columns, names);
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

/** A bound FROM clause or part of one. `items` are listed from left to right. */
export interface BoundItem {
  readonly item: FromItem;
  readonly items: readonly ScopeItem[];
  /** True if the item names an entity or bridge directly, not only inside subqueries. */
  readonly named: boolean;
  /** True if the item reads passages, traversals or evidence, at any depth. */
  readonly content: boolean;
  readonly using?: readonly UsingJoin[];
}

export interface BoundFrom extends BoundItem {
  readonly using: readonly UsingJoin[];
  /** WHERE conjuncts that became join conditions of comma joins and therefore need not filter again. */
  readonly keys: ReadonlySet<Node>;
}

/** Names, calls and clauses that an expression may use. */
export interface BindEnvironment {
  readonly ctx: BindContext;
  readonly scope: Scope;
  readonly clause: string;
  readonly aggregates: boolean;
  readonly windows: boolean;
  readonly namedWindows: ReadonlyMap<string, WindowDef>;
  /** True if `attribute('name')` is allowed, which is the case in policy predicates only. */
  readonly policy: boolean;
  /** If set, resolves names that are not columns of the scope. */
  readonly nameOf?: ((parts: readonly string[], at: Location) => Expr) | undefined;
  /** True if `/` always yields a fraction, and NULL for a zero divisor, as in metrics. */
  readonly guardedDivision?: boolean | undefined;
  /** True if set-returning functions are allowed, which is the case at the top level of a select list. */
  readonly rows?: boolean;
  /** True in the text of a simple metric, where a name never refers to another metric. */
  readonly withinMetric?: boolean | undefined;
}

const NO_WINDOWS: BindEnvironment['namedWindows'] = new Map();

/** Creates an environment without aggregates, windows or policy functions. */
export function plainEnvironment(ctx: BindContext, scope: Scope, clause: string): BindEnvironment {
  return { ctx, scope, clause, aggregates: false, windows: false, namedWindows: NO_WINDOWS, policy: false };
}

/** Creates the environment for the arguments of an aggregate or window call. */
export function insideCall(env: BindEnvironment, clause: string, aggregates: boolean): BindEnvironment {
  // Written out: a spread here took a fifth of the time needed to bind a long list of aggregates.
  return {
    ctx: env.ctx,
    scope: env.scope,
    clause,
    aggregates,
    windows: false,
    namedWindows: env.namedWindows,
    policy: env.policy,
    nameOf: env.nameOf,
    guardedDivision: env.guardedDivision,
    rows: false,
    withinMetric: env.withinMetric,
  } satisfies Record<keyof BindEnvironment, unknown>;
}
