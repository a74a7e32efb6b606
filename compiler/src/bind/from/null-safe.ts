import { columnOf } from '../../catalog/catalog.js';
import { isKeyEquality } from '../../plan/key-equality.js';
import type { ColumnRef, Expr, FromItem, Logic, SourceId } from '../../plan/plan.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/infix.js';

/**
 * A condition of a join, in the form that says most: `a = b or (a is null and b is null)`, as Power BI writes it, is
 * `a is not distinct from b`; and that is `a = b`, which an index and a hash serve, where one of them is never NULL.
 *
 * @param sides both sides of the join
 */
export function asEquality(
  condition: Expr,
  sides: readonly FromItem[],
  at: Location,
  ctx: BindContext,
): Expr {
  const found = condition.kind === 'or' ? nullsOrEqual(condition) : condition;
  if (found?.kind !== 'distinct_test' || !found.negated) return condition;
  const { left, right } = found;
  if (left.kind !== 'column' || right.kind !== 'column') return found;
  const present = [left, right].some((ref) => sides.some((side) => isNeverNull(ref, side)));
  return present ? infix('=', left, right, at, ctx) : found;
}

function nullsOrEqual({ args }: Logic): Expr | null {
  const [equality, nulls, ...more] = args;
  if (equality === undefined || nulls?.kind !== 'and' || more.length > 0) return null;
  if (!isKeyEquality(equality) || nulls.args.length !== 2) return null;
  const { left, right, definition } = equality;
  const isMissing = (ref: ColumnRef): boolean =>
    nulls.args.some((e) => e.kind === 'null_test' && !e.negated && isSame(e.arg, ref));
  if (!isMissing(left) || !isMissing(right)) return null;
  return Object.freeze({
    kind: 'distinct_test',
    equality: definition,
    left,
    right,
    negated: true,
    type: 'bool',
  });
}

function isSame(expr: Expr, ref: ColumnRef): boolean {
  return expr.kind === 'column' && expr.source === ref.source && expr.name === ref.name;
}

/** Whether a column of `item` is one that the manifest says is never NULL, handed on by derived tables as it is. */
function isNeverNull(ref: ColumnRef, item: FromItem): boolean {
  const leaf = leafOf(ref.source, item);
  if (leaf?.kind === 'entity') {
    const { relation } = leaf;
    return relation.primaryKey.includes(ref.name) || columnOf(relation, ref.name)?.nullable === false;
  }
  if (leaf?.kind !== 'derived' || leaf.query.kind !== 'select' || leaf.query.grouped) return false;
  const { outputs, from } = leaf.query;
  const expr = outputs[Number(ref.name.slice(1)) - 1]?.expr;
  return expr?.kind === 'column' && from !== null && isNeverNull(expr, from);
}

/** The leaf `source` of `item`, unless a join may put NULLs in the place of its rows. */
function leafOf(source: SourceId, item: FromItem): FromItem | null {
  if (item.kind !== 'join') return item.id === source ? item : null;
  if (item.type === 'full') return null;
  const left = leafOf(source, item.left);
  return left ?? (item.type === 'inner' ? leafOf(source, item.right) : null);
}
