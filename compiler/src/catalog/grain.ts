/** The lengths of time that metrics are grouped by, finest first. Weeks begin on Monday; time is UTC. */
export const GRAINS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

export type Grain = (typeof GRAINS)[number];

/** Which rows a cumulative metric takes for a period: all before its end, or from some time on, or of another period. */
export type Span =
  | { readonly kind: 'unbounded' }
  /** The `count` units that end with the period. */
  | { readonly kind: 'window'; readonly count: number; readonly unit: Grain }
  /** From the beginning of the `grain` in which the period ends. */
  | { readonly kind: 'to_date'; readonly grain: Grain }
  /** Those of the period that begins `count` units earlier. */
  | { readonly kind: 'offset'; readonly count: number; readonly unit: Grain }
  /** Those of the period that begins where the `grain` begins in which the period does. */
  | { readonly kind: 'offset_to_grain'; readonly grain: Grain };

/** The grain that `text` spells, whatever its case, or null. */
export function grainNamed(text: string): Grain | null {
  const lower = text.toLowerCase();
  return GRAINS.find((g) => g === lower) ?? null;
}

/** `7 days`, `1 month`: a whole number from 1 to 9,999 and a grain; null for anything else. */
export function windowNamed(text: string): Extract<Span, { kind: 'window' }> | null {
  const [, digits, word] = /^ *([1-9]\d{0,3}) +([a-z]+?)s? *$/.exec(text) ?? [];
  const unit = GRAINS.find((g) => g === word);
  return unit === undefined ? null : Object.freeze({ kind: 'window', count: Number(digits), unit });
}

/** Whether a date has nothing finer than `grain`. */
export function isOfDays(grain: Grain): boolean {
  return GRAINS.indexOf(grain) >= GRAINS.indexOf('day');
}
