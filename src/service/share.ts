/** The number of a process, starting at 1, among `count` processes. */
export interface Share {
  readonly number: number;
  readonly count: number;
}

/** The share of a process that serves alone: everything. */
export const FULL_SHARE: Share = Object.freeze({ number: 1, count: 1 });

/** This process' part of `total`; the parts of all processes add up to `total`. */
export function partOf(total: number, { number, count }: Share): number {
  return Math.floor(total / count) + (number <= total % count ? 1 : 0);
}

/** Maximum number of concurrent requests of a process to an AI model; at least one. */
export function modelSlots(total: number, share: Share): number {
  return Math.max(1, partOf(total, share));
}
