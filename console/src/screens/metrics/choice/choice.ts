export const GRAINS = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type TimeGrain = (typeof GRAINS)[number];

export const COMPARISONS = ['none', 'previous_period', 'previous_year'] as const;
export type ComparedPeriod = (typeof COMPARISONS)[number];

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

/** Range of days such as `2026-01-31`, both inclusive; null for an open end. */
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
  readonly compare: ComparedPeriod;
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

/** Returns the name of a group's column in the answer, where upper and lower case may differ. */
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

/** Encodes a choice as the part of a link after `?`, which contains only what the user selected. */
export function linkOf(choice: Choice): string {
  const params = new URLSearchParams();
  for (const metric of choice.metrics) params.append('metric', metric);
  for (const { name, grain } of choice.groups)
    params.append('by', grain === null ? name : `${name}.${grain}`);
  for (const { name, operator, values } of choice.filters)
    params.append('where', JSON.stringify([name, operator, ...values]));
  if (choice.range.start !== null) params.set('from', choice.range.start);
  if (choice.range.end !== null) params.set('to', choice.range.end);
  if (choice.order !== null) params.set('order', `${choice.order.descending ? '-' : ''}${choice.order.name}`);
  if (choice.limit !== NOTHING.limit) params.set('limit', String(choice.limit));
  if (choice.compare !== 'none') params.set('compare', choice.compare);
  return params.toString();
}

/** Parses a link, which may come from anyone, so unknown parts are ignored. */
export function choiceOf(link: string): Choice {
  const params = new URLSearchParams(link);
  const order = params.get('order') ?? '';
  return {
    metrics: [...new Set(params.getAll('metric').filter(isName))].slice(0, 50),
    groups: params.getAll('by').flatMap(groupOf).slice(0, 20),
    filters: params.getAll('where').flatMap(filterOf).slice(0, 50),
    range: { start: dayOf(params.get('from')), end: dayOf(params.get('to')) },
    order: isName(order.replace(/^-/, ''))
      ? { name: order.replace(/^-/, ''), descending: order.startsWith('-') }
      : null,
    limit: limitOf(params.get('limit')),
    compare: oneOf(COMPARISONS, params.get('compare')) ?? 'none',
  };
}

/** True for a name of a metric or dimension: `NAMED` of src/surfaces/rest/bodies/metrics.ts without its prefix. */
export function isName(text: string): boolean {
  return /^[\p{L}_][\p{L}\p{M}\p{N}_ ]{0,199}$/u.test(text);
}

function groupOf(text: string): readonly Group[] {
  const dot = text.lastIndexOf('.');
  const name = dot < 0 ? text : text.slice(0, dot);
  const grain = dot < 0 ? null : oneOf(GRAINS, text.slice(dot + 1));
  return isName(name) && (dot < 0 || grain !== null) ? [{ name, grain }] : [];
}

function filterOf(text: string): readonly Filter[] {
  const parts = parsed(text);
  if (!Array.isArray(parts)) return [];
  const [name, operator, ...values]: readonly unknown[] = parts;
  const known = oneOf(OPERATORS, operator);
  if (typeof name !== 'string' || !isName(name) || known === null || !values.every(isValue)) return [];
  return [{ name, operator: known, values: values.slice(0, 200) }];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function isValue(value: unknown): value is FilterValue {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}

function dayOf(text: string | null): string | null {
  return text !== null && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;
}

function limitOf(text: string | null): number {
  const limit = Number(text ?? Number.NaN);
  return Number.isInteger(limit) && limit > 0 && limit <= 100_000 ? limit : NOTHING.limit;
}

/** Returns the element of `all` that equals `text`; null if no element does. */
export function oneOf<T extends string>(all: readonly T[], text: unknown): T | null {
  return all.find((one) => one === text) ?? null;
}

/** Adds an element to a selection, or removes it if it is selected. */
export function toggled<T>(picked: readonly T[], one: T): readonly T[] {
  return picked.includes(one) ? picked.filter((other) => other !== one) : [...picked, one];
}
