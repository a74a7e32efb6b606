/** How old an answer is. */
export interface Freshness {
  /** `cache`: it was given before. `rollup`: it is of what was aggregated before. */
  readonly from: 'live' | 'cache' | 'rollup';
  /** What it tells was so then, or later; `Date.now()`. */
  readonly asOf: number;
}

/** Whole seconds since then. */
export function ageOf({ from, asOf }: Freshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** As REST and SHOW tell it. */
export function asOfText({ asOf }: Freshness): string {
  return new Date(asOf).toISOString();
}
