import { isComparable, type TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';

/**
 * Refuses to group, sort or tell apart by a value of a type without an equality.
 *
 * @throws QueryError E0511, 42883 as in Postgres
 */
export function requireComparable(type: TypeName, at: Location, ctx: BindContext): void {
  if (!isComparable(type)) throw ctx.error('unknownOperator', { signature: `${type} = ${type}` }, at);
}
