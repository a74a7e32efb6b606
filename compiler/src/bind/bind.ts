import type { Access } from '../access/access.js';
import type { Catalog, Joins, MetricFormat, Relation } from '../catalog/catalog.js';
import { type Features, NO_FEATURES } from '../catalog/features.js';
import { type Position, queryError } from '../errors/errors.js';
import type { ColumnRef, Expr, Form, FromItem, Query, Slot, SourceId } from '../plan/plan.js';
import type { RuntimeRelation } from '../plan/runtime.js';
import { selectOf } from '../plan/select-nodes.js';
import { allQueries, exprsOf, leavesOf, nestingIn, visitExpr } from '../plan/walk.js';
import { firstWord, type ParsedStatement, startOf } from '../text/parse.js';
import type { DeclaredType } from '../types/declared-types.js';
import type { TypeName } from '../types/types.js';
import { kindOf, TEMPORARY } from './ast.js';
import { BindContext, type World } from './context.js';
import { refuseCollationConflicts } from './expressions/cast.js';
import { columnValue } from './expressions/expression.js';
import { requireSealedJoins } from './from/join.js';
import type { LiteralSlots } from './literals.js';
import { columnsOf, joinParents } from './manifest/computed.js';
import { finishRelation, withUsedColumns } from './runtime/finish-runtime.js';
import { innerScope, resolveColumn, type ScopeItem, withParents } from './scope.js';
import { bindQuery } from './select/query.js';
import { requireExpandable } from './size-limits.js';

/** A query whose names and types are resolved but to which policy has not been applied yet. */
export interface BoundPlan {
  readonly form: Form;
  readonly query: Query;
  /** The join rule that was applied; null if there was none, as in raw SQL. */
  readonly joins: Joins | null;
  readonly runtime: readonly RuntimeRelation[];
  readonly slots: readonly Slot[];
  /** Type OIDs of `$1 … $n`, declared by the client or inferred from use. */
  readonly clientOids: readonly number[];
  readonly metrics: readonly string[];
  readonly columns: readonly {
    readonly name: string;
    readonly type: TypeName;
    readonly format?: MetricFormat;
  }[];
  readonly positionOf: (expr: Expr) => Position | null;
  readonly positionOfSource: (source: SourceId) => Position | null;
  readonly literals: LiteralSlots;
}

/**
 * Resolves names, types and query forms against the objects this caller may see. Hidden objects are treated as
 * nonexistent.
 *
 * @throws QueryError E0511, E0512, E0513, E0514, E2101
 */
export function bind(
  parsed: ParsedStatement,
  catalog: Catalog,
  access: Access,
  features: Features,
  declared: readonly (DeclaredType | null)[],
  world: World = 'semantic',
  hasDecoder = true,
  joins: Joins = catalog.joins ?? 'declared',
): BoundPlan {
  if (!('SelectStmt' in parsed.node)) throw refuseStatement(parsed);
  const { source, lists } = parsed;
  const rule = world === 'physical' ? null : joins;
  const ctx = new BindContext(source, catalog, access, features, declared, world, lists, hasDecoder, rule);
  const { query, columns } = bindQuery(parsed.node.SelectStmt, ctx, null);
  const misplaced = ctx.wholeRows.misplaced(query);
  if (misplaced !== undefined) throw ctx.wholeRow(misplaced.at);
  for (const whole of [query, ...separateQueries(ctx)]) {
    requireExpandable(whole);
    requireSealedJoins(whole, ctx);
    refuseCollationConflicts(whole, ctx);
  }
  const complete = withUsedColumns(query, ctx);
  const runtime = Object.freeze(ctx.drafts.map((d) => finishRelation(d, query, ctx)));
  return Object.freeze({
    form: world === 'physical' ? 'sql' : formOf(query, ctx),
    query: complete,
    joins: ctx.joins,
    runtime,
    columns: Object.freeze(columns),
    positionOf: (expr: Expr) => ctx.positionOf(expr),
    positionOfSource: (source: SourceId) => ctx.positionOfSource(source),
    ...ctx.finish(),
  });
}

/** Returns the queries that run before the statement: input rows of operators and start keys of traversals. */
function separateQueries({ drafts }: BindContext): readonly Query[] {
  return drafts.flatMap((d) => {
    const query = d.kind === 'operated' ? d.rows : d.kind === 'traversal' ? d.start : null;
    return query === null ? [] : [query];
  });
}

/** Statements that are refused as unsupported. All others except SELECT are refused because OSL-SQL is read-only. */
const OTHER_STATEMENTS: ReadonlySet<string> = new Set([
  'ExplainStmt',
  'CallStmt',
  'DoStmt',
  'CopyStmt',
  'VariableShowStmt',
  'VariableSetStmt',
  'TransactionStmt',
  'PrepareStmt',
  'ExecuteStmt',
  'DeallocateStmt',
  'DeclareCursorStmt',
  'FetchStmt',
  'ClosePortalStmt',
  'DiscardStmt',
]);

function refuseStatement({ node, source }: ParsedStatement) {
  const kind = Object.keys(node)[0] ?? '';
  const word = firstWord(source);
  const command =
    word === 'WITH'
      ? kindOf(node)
          .replace(/ stmt$/, '')
          .toUpperCase()
      : word;
  if (makesTemporary(node)) return queryError('temporaryTable', {}, startOf(source));
  return OTHER_STATEMENTS.has(kind)
    ? queryError('unsupported', { construct: command, hint: 'ask with SELECT' }, startOf(source))
    : queryError('readOnly', { command }, startOf(source));
}

function makesTemporary(node: ParsedStatement['node']): boolean {
  const made =
    'CreateStmt' in node
      ? node.CreateStmt.relation
      : 'CreateTableAsStmt' in node
        ? node.CreateTableAsStmt.into?.rel
        : undefined;
  return made?.relpersistence === TEMPORARY;
}

type OslForm = Exclude<Form, 'sql' | 'metrics'>;

/**
 * Returns the form of a statement: structured, RETRIEVE, TRAVERSE, joint or cross-modal. Parts of different forms may
 * be combined only by equality of sealed keys (columns that joins may use), not by set operations or uncorrelated
 * subqueries.
 *
 * Source: contract, OSL-SQL rules 3; decision 113.
 *
 * @throws QueryError E0511 if the statement combines two forms in another way
 */
function formOf(root: Query, ctx: BindContext): OslForm {
  return new FormFinder(ctx).whole(root) ?? 'structured';
}

class FormFinder {
  readonly #ctx: BindContext;
  /** Forms of the common tables; null for a table that has no form, such as a list of VALUES. */
  readonly #tables = new Map<number, OslForm | null>();
  readonly #read = new Set<number>();

  constructor(ctx: BindContext) {
    this.#ctx = ctx;
  }

  /** Finds the form of the whole statement, including unused common tables. */
  whole(root: Query): OslForm | null {
    let form = this.#of(root);
    for (const [id, other] of this.#tables) {
      if (!this.#read.has(id)) form = this.#apart(form, other, () => null);
    }
    return form;
  }

  #of(query: Query): OslForm | null {
    if (query.kind !== 'values') for (const t of query.with) this.#tables.set(t.id, this.#of(t.query));
    if (query.kind === 'set_operation') {
      const left = this.#of(query.left);
      return this.#within(
        query,
        this.#apart(left, this.#of(query.right), () => this.#placeOf(query.right)),
      );
    }
    const items = query.kind === 'select' ? leavesOf(query.from) : [];
    return this.#within(query, items.map((item) => this.#ofItem(item)).reduce(joined, null));
  }

  #ofItem(item: FromItem): OslForm | null {
    switch (item.kind) {
      case 'entity':
      case 'governed':
        return 'structured';
      case 'derived':
        return this.#of(item.query);
      case 'cte':
        this.#read.add(item.table);
        return this.#tables.get(item.table) ?? null;
      case 'runtime':
        return this.#ofRuntime(item.id);
      default:
        return null;
    }
  }

  #ofRuntime(source: SourceId): OslForm {
    switch (this.#ctx.drafts.find((d) => d.source === source)?.kind) {
      case 'retrieval':
        return 'retrieve';
      case 'traversal':
        return 'traverse';
      case 'hydration':
        return 'joint';
      default:
        return 'structured';
    }
  }

  #within(query: Query, form: OslForm | null): OslForm | null {
    let found = form;
    for (const nesting of nestingIn(query)) {
      const inner = this.#of(nesting.query);
      const meets = found !== null && inner !== null && found !== inner;
      const joins = !meets || nesting.kind === 'in_query' || isCorrelated(nesting.query);
      found = joins ? joined(found, inner) : this.#apart(found, inner, () => this.#ctx.positionOf(nesting));
    }
    return found;
  }

  #apart(a: OslForm | null, b: OslForm | null, at: () => Position | null): OslForm | null {
    if (a === null || b === null || a === b) return a ?? b;
    const construct = `a statement of two forms, ${NAMES[a]} and ${NAMES[b]},`;
    const hint = [a, b].includes('structured')
      ? 'join them on sealed keys, or send a statement for each'
      : 'send a statement for each';
    throw queryError('unsupported', { construct, hint }, at());
  }

  #placeOf(query: Query): Position | null {
    const items = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
    return items.map(({ id }) => this.#ctx.positionOfSource(id)).find((p) => p !== null) ?? null;
  }
}

const NAMES: Readonly<Record<OslForm, string>> = {
  structured: 'structured',
  retrieve: 'RETRIEVE',
  traverse: 'TRAVERSE',
  joint: 'Joint',
  cross_modal: 'a cross-modal join',
};

function joined(a: OslForm | null, b: OslForm | null): OslForm | null {
  if (a === null || b === null || a === b) return a ?? b;
  const walked = [a, b].find((form) => form === 'traverse' || form === 'joint');
  return walked ?? 'cross_modal';
}

function isCorrelated(query: Query): boolean {
  const levels = allQueries(query);
  const own = new Set(levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])));
  const isOuter = (e: Expr): boolean => e.kind === 'column' && !own.has(e.source);
  let found = false;
  for (const value of levels.flatMap(exprsOf))
    visitExpr(value, (e) => {
      if (isOuter(e)) found = true;
    });
  return found;
}

export interface SampledValue {
  readonly name: string;
  readonly stored: boolean;
  readonly expr: Expr;
  /** The stored columns that the value is computed from, including keys used to reach parents. */
  readonly reads: readonly SampledRead[];
}

interface SampledRead {
  readonly relation: Relation;
  readonly ref: ColumnRef;
  /** True if the column belongs to a parent of the sampled row. The parent may be missing. */
  readonly ofParent: boolean;
}

/** The query for sample rows of an entity, with the columns of `*` in order. Policy has not been applied yet. */
export interface BoundSample {
  /** The plan that reads the rows, without outputs, ORDER BY and LIMIT. */
  readonly plan: BoundPlan;
  readonly values: readonly SampledValue[];
}

/** Binds the columns of `*` for this caller as a query without outputs. */
export function bindSample(relation: Relation, catalog: Catalog, access: Access): BoundSample {
  const ctx = new BindContext({ original: '', quoted: [] }, catalog, access, NO_FEATURES, []);
  const rights = access.relations.get(relation.name);
  const columns = rights === undefined ? new Map() : columnsOf(relation, rights, ctx);
  const source = ctx.nextSource();
  const item: ScopeItem = { source, alias: relation.name, columns, relation, parents: [] };
  const scope = innerScope(null, [item], new Map());
  const starred = [...item.columns.values()].filter((c) => c.starred);
  const bound = starred.map(({ name, computed }) => {
    const expr = columnValue(resolveColumn(scope, [name], ctx, undefined), ctx, undefined);
    return { name, stored: computed === undefined, expr };
  });
  const reads = new StoredReads(item);
  const values = bound.map((value) => Object.freeze({ ...value, reads: reads.under(value.expr) }));
  const scan = Object.freeze({ kind: 'entity', id: source, relation, columns: [] } as const);
  const query = selectOf({ from: joinParents(scan, [item]), outputs: [] });
  const plan: BoundPlan = Object.freeze({
    form: 'structured',
    joins: null,
    query: withUsedColumns(query, ctx),
    runtime: Object.freeze([]),
    columns: Object.freeze([]),
    positionOf: () => null,
    positionOfSource: () => null,
    ...ctx.finish(),
  });
  return Object.freeze({ plan, values: Object.freeze(values) });
}

class StoredReads {
  readonly #own: ScopeItem;
  readonly #items = new Map<SourceId, ScopeItem>();
  readonly #keys = new Map<SourceId, readonly ColumnRef[]>();

  constructor(own: ScopeItem) {
    this.#own = own;
    for (const item of withParents([own])) {
      this.#items.set(item.source, item);
      for (const { item: parent, on } of item.parents ?? []) {
        const sides = on.flatMap(({ left, right }) => [left, right]);
        this.#keys.set(
          parent.source,
          sides.filter((side) => side?.kind === 'column'),
        );
      }
    }
  }

  under(expr: Expr): readonly SampledRead[] {
    const found = new Map<string, SampledRead>();
    visitExpr(expr, (e) => {
      if (e.kind === 'column') this.#add(e, found);
    });
    return Object.freeze([...found.values()]);
  }

  #add(ref: ColumnRef, found: Map<string, SampledRead>): void {
    const id = `${ref.source} ${ref.name}`;
    const item = this.#items.get(ref.source);
    if (found.has(id) || item === undefined || item.relation === null) return;
    found.set(id, Object.freeze({ relation: item.relation, ref, ofParent: item !== this.#own }));
    for (const key of this.#keys.get(ref.source) ?? []) this.#add(key, found);
  }
}
