import type { Query } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { bindQuery } from '../select/query.js';
import type { NamedArguments } from './named-arguments.js';
import type { KeyColumn } from './walk-keys.js';

/**
 * `keys => (SELECT …)` or `keys => ARRAY(SELECT …)`: the query whose rows are the keys that a walk starts from. It sees
 * nothing of what is around it. Null where the keys are values.
 */
export function startQuery(args: NamedArguments, key: readonly KeyColumn[], ctx: BindContext): Query | null {
  const node = args.byName.get('keys');
  const link = node !== undefined && 'SubLink' in node ? node.SubLink : null;
  const select = link?.subselect;
  const isList = link?.subLinkType === 'EXPR_SUBLINK' || link?.subLinkType === 'ARRAY_SUBLINK';
  if (link === null || !isList || select === undefined || !('SelectStmt' in select)) return null;
  ctx.requireFeature('subqueries', link.location);
  const { query, columns } = bindQuery(select.SelectStmt, ctx, null);
  const fits = columns.length === key.length && columns.every((c, i) => c.type === key[i]?.type);
  if (fits) return query;
  const wanted = key.map((c) => `${c.name} ${c.type}`).join(', ');
  throw ctx.mismatch(`the query of \`keys\` must yield the key of the anchor: ${wanted}`, link.location);
}
