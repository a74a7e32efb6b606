import type { FuncCall } from '@pgsql/types';
import type { RelationAccess } from '../access.js';
import type { FacetStore, Relation } from '../catalog.js';
import { plainName } from '../full-name.js';
import { castTo, columnRef } from '../nodes.js';
import type { ColumnRef, Expr, RuntimeScan } from '../plan.js';
import { ORDINAL, PASSAGE_COLUMNS } from '../runtime.js';
import { nearest } from '../text.js';
import type { TypeName } from '../types.js';
import { visitExpr } from '../walk.js';
import { constantText, integerOf } from './ast.js';
import { coerce } from './coerce.js';
import type { BindContext } from './context.js';
import type { Environment } from './environment.js';
import { bindExpression } from './expression.js';
import {
  locationOf,
  nameArgument,
  namedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';
import { draftScan, type RetrievalDraft } from './runtime-draft.js';
import { innerScope, type ScopeColumn, type ScopeItem, visibleColumn } from './scope.js';

/** `RETRIEVE(facet => '…', query => '…', top_k => n)` in FROM. */
export function bindRetrieve(
  call: FuncCall,
  alias: string | undefined,
  ctx: BindContext,
): { item: RuntimeScan; items: readonly ScopeItem[] } {
  const args = namedArguments('RETRIEVE', call, ['facet', 'query', 'top_k'], ctx);
  const name = plainName('facets', nameArgument(args, 'facet', ctx));
  const facet = ctx.catalog.facets.get(name);
  const relation = ctx.catalog.relations.get(name);
  if (facet === undefined || relation === undefined) {
    const visible = [...ctx.catalog.facets.keys()].filter((f) => ctx.access.relations.has(f));
    const at = locationOf(requiredArgument(args, 'facet', ctx), args);
    throw ctx.error('unknownFacet', { facet: name, near: nearest(name, visible) }, at);
  }
  ctx.refuseDenied(name, name, locationOf(requiredArgument(args, 'facet', ctx), args));
  const rights = ctx.access.relations.get(name);
  // What every passage has keeps its meaning where a facet declares metadata of the same name. Without a grant any
  // declared field may be asked for, since there are no passages to show it.
  const metadata = relation.columns
    .filter((c) => !PASSAGE_COLUMNS.has(c.name))
    .filter((c) => rights === undefined || isOffered(c.name, facet, relation, rights))
    .map((c): readonly [string, TypeName] => [c.name, c.type]);
  const draft: RetrievalDraft = {
    kind: 'retrieval',
    source: ctx.nextSource(),
    facet,
    query: queryArgument(args, ctx),
    topK: topKArgument(args, facet, ctx),
    filters: [],
    operators: [],
    offered: new Map([...PASSAGE_COLUMNS, ...metadata, [ORDINAL, 'int4']]),
  };
  ctx.use(draft.source, ORDINAL);
  const order: ColumnRef = columnRef(draft.source, ORDINAL, 'int4');
  const item = draftScan(draft, ctx.runtime(draft, call.location));
  const shown = [...draft.offered].filter(([column]) => column !== ORDINAL);
  const isListed = (column: string): boolean =>
    rights !== undefined || PASSAGE_COLUMNS.has(column) || column === facet.entityKey;
  const columns = new Map(
    shown.map(([column, type]) => [column, passageColumn(column, type, facet, isListed(column))]),
  );
  const source = draft.source;
  return {
    item,
    items: [
      { source, alias: alias ?? 'retrieve', columns, relation: null, retrieval: draft, order: [order] },
    ],
  };
}

/** Whether passages have a field for a caller: the entity key, or one that a grant covers; others do not exist for it. */
function isOffered(name: string, facet: FacetStore, relation: Relation, rights: RelationAccess): boolean {
  return name === facet.entityKey || visibleColumn(relation, name, rights) !== null;
}

/** @param starred whether `*` stands for it too */
function passageColumn(name: string, type: TypeName, facet: FacetStore, starred: boolean): ScopeColumn {
  return { name, type, sealed: facet.scalarIndexed.includes(name), denied: false, starred };
}

type Arguments = ReturnType<typeof namedArguments>;

function constantEnvironment(ctx: BindContext): Environment {
  return {
    ctx,
    scope: innerScope(null, [], new Map()),
    clause: 'an argument',
    aggregates: false,
    windows: false,
    namedWindows: new Map(),
    policy: false,
  };
}

/** A literal or `$n`, as `type`. */
export function constantArgument(args: Arguments, name: string, type: TypeName, ctx: BindContext): Expr {
  const node = requiredArgument(args, name, ctx);
  const at = locationOf(node, args);
  const value = coerce(bindExpression(node, constantEnvironment(ctx)), type, ctx, at);
  refuseComputed(value, name, at, ctx);
  return value;
}

function queryArgument(args: Arguments, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'query', ctx);
  if (constantText(node)?.trim() === '') {
    throw ctx.mismatch('`query` is empty', locationOf(node, args), 'say what to look for');
  }
  return constantArgument(args, 'query', 'text', ctx);
}

function topKArgument(args: Arguments, facet: FacetStore, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'top_k', ctx);
  if ('ParamRef' in node) return countParameter(args, ctx);
  const value = integerOf(node) ?? Number.NaN;
  if (!Number.isInteger(value) || value < 1 || value > facet.maxTopK) {
    const detail = `\`top_k\` is a whole number from 1 to ${facet.maxTopK}`;
    throw ctx.mismatch(detail, locationOf(node, args));
  }
  return ctx.constant(String(value), 'int4');
}

/** `$n` as a count; drivers that declare it as another integer are taken at their word. */
function countParameter(args: Arguments, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'top_k', ctx);
  const bound = bindExpression(node, constantEnvironment(ctx));
  if (bound.kind === 'untyped' || (bound.type !== 'int2' && bound.type !== 'int8'))
    return constantArgument(args, 'top_k', 'int4', ctx);
  return castTo(bound, 'int4');
}

/**
 * Takes the conjuncts that the store must hold before the best passages are taken: those over indexed fields alone.
 * What is left runs over the passages.
 *
 * @throws QueryError E0511 for a filter on a field that is not indexed
 */
export function takeStoreFilters(
  where: readonly Expr[],
  items: readonly ScopeItem[],
  ctx: BindContext,
): readonly Expr[] {
  const drafts = items.flatMap((i) => (i.retrieval === undefined ? [] : [i.retrieval]));
  if (drafts.length === 0) return where;
  return where.filter((conjunct) => {
    const draft = drafts.find((d) => isOverOnly(conjunct, d.source));
    if (draft === undefined) return true;
    const fields = columnsIn(conjunct);
    const plain = fields.filter((f) => !PASSAGE_COLUMNS.has(f) && draft.offered.has(f));
    if (plain.length === 0) return true;
    const unindexed = plain.find((f) => !draft.facet.scalarIndexed.includes(f));
    if (unindexed !== undefined || plain.length < fields.length) {
      const detail = `a filter on \`${unindexed ?? plain[0]}\` must stand alone, over indexed fields`;
      const hint = `indexed fields: ${draft.facet.scalarIndexed.join(', ')}`;
      throw ctx.mismatch(detail, ctx.locationOf(conjunct), hint);
    }
    draft.filters.push(conjunct);
    return false;
  });
}

function isOverOnly(expr: Expr, source: number): boolean {
  let any = false;
  let only = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') {
      any = true;
      only &&= e.source === source;
    }
    if (e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query') only = false;
  });
  return any && only;
}

function columnsIn(expr: Expr): readonly string[] {
  const names = new Set<string>();
  visitExpr(expr, (e) => {
    if (e.kind === 'column') names.add(e.name);
  });
  return [...names];
}
