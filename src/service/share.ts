/** A process' number, from 1, among `count`. */
export interface Share {
  readonly number: number;
  readonly count: number;
}

/** Share of a single process. */
export const WHOLE: Share = Object.freeze({ number: 1, count: 1 });

/** Divides `total` among processes without remainder. */
export function sharedOut(total: number, { number, count }: Share): number {
  return Math.floor(total / count) + (number <= total % count ? 1 : 0);
}

/** Concurrent model requests of a process; at least one. */
export function placesOf(total: number, share: Share): number {
  return Math.max(1, sharedOut(total, share));
}
