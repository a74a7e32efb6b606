import type { FuncCall } from '@pgsql/types';
import type { RelationAccess } from '../../access/access.js';
import { type FacetStore, plainName, type Relation } from '../../catalog/catalog.js';
import { columnRef } from '../../plan/nodes.js';
import type { ColumnRef, Expr } from '../../plan/plan.js';
import { isOfPassage, ORDINAL, PASSAGE_COLUMNS } from '../../plan/runtime.js';
import { visitExpr } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import { nearestInLiteral } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { constantText } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BoundItem, type ScopeColumn, type ScopeItem, visibleColumn } from '../scope.js';
import {
  ASKING_ARGUMENTS,
  askedColumns,
  constantArgument,
  LEG_ARGUMENTS,
  legArguments,
  PAGE_ARGUMENTS,
  pageArguments,
  RERANK,
  requiredCount,
  rerankArgument,
} from './legs.js';
import {
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  requiredArgument,
} from './named-arguments.js';
import { draftScan, type RetrievalDraft } from './runtime-draft.js';

/** `RETRIEVE(facet => '…', query => '…', top_k => n)` in FROM. */
export function bindRetrieve(call: FuncCall, alias: string | undefined, ctx: BindContext): BoundItem {
  const args = namedArguments('RETRIEVE', call, ['facet', 'query', 'top_k'], ctx, [
    ...PAGE_ARGUMENTS,
    ...LEG_ARGUMENTS,
    ...ASKING_ARGUMENTS,
    RERANK,
  ]);
  const name = plainName('facets', nameArgument(args, 'facet', ctx));
  const facet = ctx.catalog.facets.get(name);
  const relation = ctx.catalog.relations.get(name);
  if (facet === undefined || relation === undefined) {
    const visible = [...ctx.catalog.facets.keys()].filter((f) => ctx.access.relations.has(f));
    const at = locationOf(requiredArgument(args, 'facet', ctx), args);
    throw ctx.error('unknownFacet', { facet: name, near: nearestInLiteral(name, visible) }, at);
  }
  ctx.refuseDenied(name, name, locationOf(requiredArgument(args, 'facet', ctx), args));
  const rights = ctx.access.relations.get(name);
  const asked = askedColumns(args, ctx);
  // Standard columns take precedence over metadata of the same name. Without a grant any declared field may be named,
  // since no passages are returned.
  const metadata = relation.columns
    .filter((c) => !isOfPassage(c.name, asked))
    .filter((c) => rights === undefined || isOffered(c.name, facet, relation, rights))
    .map((c): readonly [string, TypeName] => [c.name, c.type]);
  const draft: RetrievalDraft = {
    kind: 'retrieval',
    source: ctx.nextSource(),
    facet,
    query: queryArgument(args, ctx),
    topK: requiredCount(args, 'top_k', 1, facet.maxTopK, ctx),
    page: pageArguments(args, ctx),
    legs: legArguments(args, facet, ctx),
    asked,
    rerank: rerankArgument(args, facet, ctx),
    filters: [],
    keyFilters: [],
    filteredAfter: null,
    operators: [],
    offered: new Map([
      ...PASSAGE_COLUMNS,
      ...asked.map((column) => [column, 'jsonb'] as const),
      ...metadata,
      [ORDINAL, 'int4'],
    ]),
  };
  ctx.use(draft.source, ORDINAL);
  const order: ColumnRef = columnRef(draft.source, ORDINAL, 'int4');
  const item = draftScan(draft, ctx.runtime(draft, call.location));
  const shown = [...draft.offered].filter(([column]) => column !== ORDINAL);
  const isListed = (column: string): boolean =>
    rights !== undefined || isOfPassage(column, asked) || column === facet.entityKey;
  const columns = new Map(
    shown.map(([column, type]) => [column, passageColumn(column, type, facet, isListed(column))]),
  );
  const source = draft.source;
  return {
    item,
    named: false,
    content: true,
    items: [
      {
        source,
        alias: alias ?? 'retrieve',
        columns,
        relation: null,
        retrieval: draft,
        order: [order],
      },
    ],
  };
}

/** True if the caller may use a metadata field: the entity key, or a field covered by a grant. */
function isOffered(name: string, facet: FacetStore, relation: Relation, rights: RelationAccess): boolean {
  return name === facet.entityKey || visibleColumn(relation, name, rights) !== null;
}

function passageColumn(name: string, type: TypeName, facet: FacetStore, starred: boolean): ScopeColumn {
  return { name, type, sealed: facet.scalarIndexed.includes(name), denied: false, starred };
}

function queryArgument(args: NamedArguments, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'query', ctx);
  if (constantText(node)?.trim() === '') {
    throw ctx.mismatch('`query` is empty', locationOf(node, args), 'say what to look for');
  }
  return constantArgument(args, 'query', 'text', ctx);
}

/**
 * Moves conjuncts over indexed fields to the store, which applies them before it chooses the best passages. The rest
 * filters the passages.
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
    const plain = fields.filter((f) => !isOfPassage(f, draft.asked) && draft.offered.has(f));
    if (plain.length === 0) return true;
    const unindexed = plain.find((f) => !draft.facet.scalarIndexed.includes(f));
    if (unindexed !== undefined || plain.length < fields.length) {
      const detail = `a filter on \`${unindexed ?? plain[0]}\` must stand alone, over indexed fields`;
      const hint = `indexed fields: ${draft.facet.scalarIndexed.map(identifier).join(', ')}`;
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
