import type { FuncCall } from '@pgsql/types';
import type { RelationAccess } from '../../access/access.js';
import {
  type FacetReranker,
  type FacetStore,
  type Relation,
  unqualifiedName,
} from '../../catalog/catalog.js';
import { castTo, columnRef } from '../../plan/nodes.js';
import type { ColumnRef, Expr } from '../../plan/plan.js';
import {
  isOfPassage,
  type Legs,
  MAX_SKIP,
  OPTIONAL_COLUMNS,
  type OptionalColumn,
  ORDINAL,
  PASSAGE_COLUMNS,
  type PassagePage,
} from '../../plan/runtime.js';
import { nearest, nearestInLiteral } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { constantText } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindExpression } from '../expressions/expression.js';
import { coerce } from '../expressions/operands.js';
import {
  type BindEnvironment,
  type BoundItem,
  innerScope,
  plainEnvironment,
  type ScopeColumn,
  visibleColumn,
} from '../scope.js';
import {
  flagArgument,
  integerBetween,
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';
import { draftScan, type RetrievalDraft } from './runtime-draft.js';

/** Binds `RETRIEVE(facet => '…', query => '…', top_k => n)` in FROM. */
export function bindRetrieve(call: FuncCall, alias: string | undefined, ctx: BindContext): BoundItem {
  const args = namedArguments('RETRIEVE', call, ['facet', 'query', 'top_k'], ctx, [
    ...PAGE_ARGUMENTS,
    ...LEG_ARGUMENTS,
    ...COLUMN_ARGUMENTS,
    RERANK,
  ]);
  const name = unqualifiedName('facets', nameArgument(args, 'facet', ctx));
  const facet = ctx.catalog.facets.get(name);
  const relation = ctx.catalog.relations.get(name);
  if (facet === undefined || relation === undefined) {
    const visible = [...ctx.catalog.facets.keys()].filter((f) => ctx.access.relations.has(f));
    const at = locationOf(requiredArgument(args, 'facet', ctx), args);
    throw ctx.error('unknownFacet', { facet: name, near: nearestInLiteral(name, visible) }, at);
  }
  ctx.refuseDenied(name, name, locationOf(requiredArgument(args, 'facet', ctx), args));
  const rights = ctx.access.relations.get(name);
  const asked = requestedColumns(args, ctx);
  // Standard columns take precedence over metadata of the same name. A caller without a grant may name any declared
  // field, since no passages are returned.
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
  const item = draftScan(draft, ctx.addRuntime(draft, call.location));
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

/** The RETRIEVE arguments that choose among the search legs (lexical, dense or both) and combine them. */
const LEG_ARGUMENTS = Object.freeze(['mode', 'fuse', 'weights']);

const MODES = ['hybrid', 'lexical', 'dense'] as const;

/** @throws QueryError E0511 if the facet lacks the requested search leg, or if an argument needs both legs */
function legArguments(args: NamedArguments, facet: FacetStore, ctx: BindContext): Legs {
  const own = facet.lexicalLeg === undefined ? facet.lane : 'hybrid';
  const mode = wordArgument(args, 'mode', MODES, own, ctx);
  const at = (name: string) => {
    const node = args.byName.get(name);
    return node === undefined ? args.location : locationOf(node, args);
  };
  if (facet.lexicalLeg === undefined && mode !== own) {
    const detail = `facet \`${facet.name}\` has one leg, which is ${own}`;
    throw ctx.mismatch(detail, at('mode'), 'leave `mode` out');
  }
  if (mode === 'hybrid') {
    const fuse = wordArgument(args, 'fuse', ['rank', 'score'], 'rank', ctx);
    const has = args.byName.has('weights');
    return Object.freeze({
      mode,
      fuse,
      weights: has ? constantArgument(args, 'weights', 'float8[]', ctx) : null,
    });
  }
  const name = ['fuse', 'weights'].find((n) => args.byName.has(n));
  const hint =
    facet.lexicalLeg === undefined ? `leave \`${name}\` out: the facet has one leg` : "mode => 'hybrid'";
  if (name !== undefined) throw ctx.mismatch(`\`${name}\` is for two legs`, at(name), hint);
  return Object.freeze({ mode });
}

const COLUMN_ARGUMENTS = Object.freeze(Object.keys(OPTIONAL_COLUMNS));

function requestedColumns(args: NamedArguments, ctx: BindContext): readonly OptionalColumn[] {
  return Object.freeze(
    Object.entries(OPTIONAL_COLUMNS).flatMap(([argument, column]) =>
      flagArgument(args, argument, ctx) ? [column] : [],
    ),
  );
}

/** The RETRIEVE arguments, besides `top_k`, that select among the permitted passages. */
const PAGE_ARGUMENTS = Object.freeze(['min_score', 'skip', 'per', 'diversity']);

function pageArguments(args: NamedArguments, ctx: BindContext): PassagePage {
  const has = (name: string): boolean => args.byName.has(name);
  return Object.freeze({
    per: wordArgument(args, 'per', ['passage', 'document'], 'passage', ctx),
    skip: has('skip') ? requiredCount(args, 'skip', 0, MAX_SKIP, ctx) : null,
    minScore: has('min_score') ? constantArgument(args, 'min_score', 'float8', ctx) : null,
    diversity: has('diversity') ? constantArgument(args, 'diversity', 'float8', ctx) : null,
  });
}

const RERANK = 'rerank';

/**
 * Resolves `rerank => true` to the facet's first reranker and `rerank => 'name'` to the reranker of that name; null if
 * the argument is absent or false.
 *
 * @throws QueryError E0511 for an unknown reranker, or in combination with `diversity`
 */
function rerankArgument(args: NamedArguments, facet: FacetStore, ctx: BindContext): FacetReranker | null {
  if (!args.byName.has(RERANK)) return null;
  const named = rerankerName(args, ctx);
  if (named === false) return null;
  const { rerankers = [] } = facet;
  const found = named === true ? rerankers[0] : rerankers.find((r) => r.name === named);
  const at = locationOf(requiredArgument(args, RERANK, ctx), args);
  if (found === undefined) {
    const what = named === true ? 'reranker' : `reranker \`${named}\``;
    const known = rerankers.map((r) => r.name);
    const near = named === true ? null : nearest(named, known);
    const hint = known.length === 0 ? 'leave `rerank` out' : `it has \`${near ?? known.join('`, `')}\``;
    throw ctx.mismatch(`facet \`${facet.name}\` has no ${what}`, at, hint);
  }
  if (args.byName.has('diversity')) {
    const hint = 'ask for one of the two; `min_score`, `skip` and `per` go with either';
    throw ctx.mismatch('`rerank` and `diversity` each say the order of the passages', at, hint);
  }
  return found;
}

/** Returns the name of a reranker, true for the default reranker, or false for none. */
function rerankerName(args: NamedArguments, ctx: BindContext): string | boolean {
  const node = requiredArgument(args, RERANK, ctx);
  const name = constantText(node);
  if (name !== null) return name;
  if ('A_Const' in node && node.A_Const.boolval !== undefined) return node.A_Const.boolval.boolval ?? false;
  throw ctx.mismatch(
    '`rerank` is true, or the name of a reranker in quotes',
    locationOf(node, args),
    'rerank => true',
  );
}

function constantEnvironment(ctx: BindContext): BindEnvironment {
  return plainEnvironment(ctx, innerScope(null, [], new Map()), 'an argument');
}

/** Reads a literal or `$n` of type `type`. */
function constantArgument(args: NamedArguments, name: string, type: TypeName, ctx: BindContext): Expr {
  const node = requiredArgument(args, name, ctx);
  const at = locationOf(node, args);
  const value = coerce(bindExpression(node, constantEnvironment(ctx)), type, ctx, at);
  refuseComputed(value, name, at, ctx);
  return value;
}

/** Reads an integer literal from `least` to `most`, or `$n`, whose value is checked at execution. */
function requiredCount(
  args: NamedArguments,
  name: string,
  least: number,
  most: number,
  ctx: BindContext,
): Expr {
  const node = requiredArgument(args, name, ctx);
  if ('ParamRef' in node) return countParameter(args, name, ctx);
  return ctx.constant(String(integerBetween(least, most, node, name, args, ctx)), 'int4');
}

/** Reads `$n` as int4, with a cast if the driver declared another integer type. */
function countParameter(args: NamedArguments, name: string, ctx: BindContext): Expr {
  const bound = bindExpression(requiredArgument(args, name, ctx), constantEnvironment(ctx));
  if (bound.kind === 'untyped' || (bound.type !== 'int2' && bound.type !== 'int8'))
    return constantArgument(args, name, 'int4', ctx);
  return castTo(bound, 'int4');
}

function wordArgument<W extends string>(
  args: NamedArguments,
  name: string,
  words: readonly W[],
  fallback: W,
  ctx: BindContext,
): W {
  const node = args.byName.get(name);
  if (node === undefined) return fallback;
  const text = constantText(node);
  const word = words.find((w) => w === text);
  if (word !== undefined) return word;
  const listed = words.map((w) => `'${w}'`).join(', ');
  throw ctx.mismatch(`\`${name}\` is one of ${listed}`, locationOf(node, args));
}
