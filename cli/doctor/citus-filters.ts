import type { Expr } from 'osl-compiler';

/** Advice about a row filter that leaves the distribution column open. */
export const FILTER_HINT =
  "add a comparison of the distribution column to `rows`, such as `tenant_id = attribute('tenant')`, or distribute the table by the column of the filter";

function isConstant(expression: Expr | null): boolean {
  return expression?.kind === 'literal' || (expression?.kind === 'cast' && isConstant(expression.arg));
}

/** True if every row that passes `filter` has one of listed values in `column`, so that Citus can choose its shards. */
export function selectsValues(filter: Expr, column: string): boolean {
  const isColumn = (expression: Expr | null): boolean =>
    expression?.kind === 'base' && expression.column === column;
  switch (filter.kind) {
    case 'and':
      return filter.args.some((arg) => selectsValues(arg, column));
    case 'or':
      return filter.args.every((arg) => selectsValues(arg, column));
    case 'attribute_match':
      return isColumn(filter.arg);
    case 'operation':
      if (filter.definition.name !== '=') return false;
      return (
        (isColumn(filter.left) && isConstant(filter.right)) ||
        (isConstant(filter.left) && isColumn(filter.right))
      );
    case 'quantified':
      return (
        filter.definition.name === '=' &&
        filter.quantifier === 'any' &&
        isColumn(filter.arg) &&
        isConstant(filter.array)
      );
    default:
      // Other comparisons leave the value open.
      return false;
  }
}
