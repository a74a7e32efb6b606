export const GRAINS = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type TimeGrain = (typeof GRAINS)[number];

export const COMPARISONS = ['none', 'previous_period', 'previous_year'] as const;
export type Comparison = (typeof COMPARISONS)[number];

export const OPERATORS = ['is', 'is_not', 'empty', 'not_empty'] as const;
export type Operator = (typeof OPERATORS)[number];

/** A dimension to group by: `customer__region`, or a time with a grain. */
export interface Group {
  readonly name: string;
  readonly grain: TimeGrain | null;
}

/** A value in the form used by answers. */
export type FilterValue = string | number | boolean;

/** A selected condition. `empty` and `not_empty` take no values. */
export interface Filter {
  readonly name: string;
  readonly operator: Operator;
  readonly values: readonly FilterValue[];
}

/** Range of days, both inclusive; null if that end is open. */
export interface DayRange {
  readonly start: string | null;
  readonly end: string | null;
}

export interface Order {
  /** Metric or group, as named in `order_by`. */
  readonly name: string;
  readonly descending: boolean;
}

/** State of the screen: the query, and the period to compare it with. */
export interface Choice {
  readonly metrics: readonly string[];
  readonly groups: readonly Group[];
  readonly filters: readonly Filter[];
  readonly range: DayRange;
  readonly order: Order | null;
  readonly limit: number;
  readonly compare: Comparison;
}

export const LIMITS = [10, 20, 50, 100, 500, 1000] as const;

export const NOTHING: Choice = {
  metrics: [],
  groups: [],
  filters: [],
  range: { start: null, end: null },
  order: null,
  limit: 100,
  compare: 'none',
};

/** Name of a group's column in the answer, except that upper and lower case may differ. */
export function keyOf({ name, grain }: Group): string {
  return grain === null ? name : `${name}__${grain}`;
}

/** Replaces the metrics and removes an order that no longer applies. */
export function withMetrics(choice: Choice, metrics: readonly string[]): Choice {
  return kept({ ...choice, metrics });
}

export function withGroups(choice: Choice, groups: readonly Group[]): Choice {
  return kept({ ...choice, groups });
}

function kept(choice: Choice): Choice {
  const names = new Set([...choice.metrics, ...choice.groups.map(keyOf)]);
  return choice.order === null || names.has(choice.order.name) ? choice : { ...choice, order: null };
}
