import type { FacetReranker, FacetStore } from '../../catalog/catalog.js';
import { nearest } from '../../text/text.js';
import { constantText } from '../ast.js';
import type { BindContext } from '../context.js';
import { locationOf, type NamedArguments, requiredArgument } from './named-arguments.js';

/** The argument of RETRIEVE that says who orders its best passages anew. */
export const RERANK = 'rerank';

/**
 * `rerank => true` for the first reranker that the facet names, `rerank => 'name'` for another; null where there is none.
 *
 * @throws QueryError E0511 for one that the facet does not name, and beside `diversity`
 */
export function rerankArgument(
  args: NamedArguments,
  facet: FacetStore,
  ctx: BindContext,
): FacetReranker | null {
  if (!args.byName.has(RERANK)) return null;
  const named = wanted(args, ctx);
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

/** What is asked for: a name, or whether there is to be one. */
function wanted(args: NamedArguments, ctx: BindContext): string | boolean {
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
