export const GRAINS = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type TimeGrain = (typeof GRAINS)[number];

export const COMPARISONS = ['none', 'previous_period', 'previous_year'] as const;
export type Comparison = (typeof COMPARISONS)[number];

export const OPERATORS = ['is', 'is_not', 'empty', 'not_empty'] as const;
export type Operator = (typeof OPERATORS)[number];

/** Something to group by: `customer__region`, or a time at a grain. */
export interface Group {
  readonly name: string;
  readonly grain: TimeGrain | null;
}

/** A value as answers give it. */
export type FilterValue = string | number | boolean;

/** A condition that was picked. `empty` and `not_empty` take no values. */
export interface Filter {
  readonly name: string;
  readonly operator: Operator;
  readonly values: readonly FilterValue[];
}

/** Days, both included; null where that end is open. */
export interface DayRange {
  readonly start: string | null;
  readonly end: string | null;
}

export interface Order {
  /** A metric or a group, as `order_by` names it. */
  readonly name: string;
  readonly descending: boolean;
}

/** What was picked on the screen: all of a question, and the period that it is compared with. */
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

/** The name of a group's column in the answer, but for the case of its letters. */
export function keyOf({ name, grain }: Group): string {
  return grain === null ? name : `${name}__${grain}`;
}

/** Without what can no longer be ordered by. */
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
