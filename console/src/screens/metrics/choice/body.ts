import { type Choice, type DayRange, type Filter, type FilterValue, keyOf } from './choice.js';

/** Body of a metrics query for `POST /osl/query`. */
export interface MetricsQuestion {
  readonly metrics: readonly string[];
  readonly group_by?: readonly (string | { readonly name: string; readonly grain: string })[];
  readonly where?: readonly string[];
  readonly order_by?: readonly (
    | string
    | { readonly name: string; readonly grain: string; readonly descending: boolean }
  )[];
  readonly limit?: number;
  readonly time_constraint?: { readonly start?: string; readonly end?: string };
  readonly explain?: true;
}

/** Returns the request body for a choice. */
export function bodyOf(choice: Choice): MetricsQuestion {
  const { metrics, groups, filters, range, limit } = choice;
  return {
    metrics,
    ...(groups.length === 0 ? {} : { group_by: groups.map(groupOf) }),
    ...(filters.length === 0 ? {} : { where: filters.map(conditionOf) }),
    ...orderOf(choice),
    ...(groups.length === 0 ? {} : { limit }),
    ...constraintOf(range),
  };
}

function groupOf({ name, grain }: Choice['groups'][number]): string | { name: string; grain: string } {
  return grain === null ? name : { name, grain };
}

/** Returns the selected order. Default: first time group ascending, else (if grouped) the first metric descending. */
function orderOf({ order, groups, metrics }: Choice): Pick<MetricsQuestion, 'order_by'> {
  const time = groups.find((g) => g.grain !== null);
  if (order !== null) {
    const group = groups.find((g) => keyOf(g) === order.name);
    if (group?.grain != null)
      return { order_by: [{ name: group.name, grain: group.grain, descending: order.descending }] };
    return { order_by: [`${order.descending ? '-' : ''}${order.name}`] };
  }
  if (time?.grain != null) return { order_by: [{ name: time.name, grain: time.grain, descending: false }] };
  const [first] = metrics;
  return groups.length === 0 || first === undefined ? {} : { order_by: [`-${first}`] };
}

function constraintOf({ start, end }: DayRange): Pick<MetricsQuestion, 'time_constraint'> {
  if (start === null && end === null) return {};
  return { time_constraint: { ...(start === null ? {} : { start }), ...(end === null ? {} : { end }) } };
}

/** Formats a selected condition as a predicate in the grammar of docs/metrics.md; values are written as literals. */
export function conditionOf({ name, operator, values }: Filter): string {
  const dimension = `{{ Dimension('${name}') }}`;
  switch (operator) {
    case 'empty':
      return `${dimension} is null`;
    case 'not_empty':
      return `${dimension} is not null`;
    case 'is':
      return oneOf(dimension, values);
    case 'is_not':
      // Rows without a value do not have any of the selected values either.
      return `(${dimension} is null or not (${oneOf(dimension, values)}))`;
  }
}

function oneOf(dimension: string, values: readonly FilterValue[]): string {
  const [first, ...more] = values.map(literalOf);
  if (first === undefined) return `${dimension} is null`;
  return more.length === 0 ? `${dimension} = ${first}` : `${dimension} in (${[first, ...more].join(', ')})`;
}

/** Formats an SQL literal. Braces `{{` would start a reference, so they are split into concatenated literals. */
export function literalOf(value: FilterValue): string {
  if (typeof value !== 'string') return String(value);
  const parts = value.split(/(?<=\{)(?=\{)/).map((part) => `'${part.replaceAll("'", "''")}'`);
  return parts.length === 1 ? parts.join('') : `(${parts.join(' || ')})`;
}
