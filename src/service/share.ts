/** Which of several processes of a server this is, from 1. */
export interface Share {
  readonly number: number;
  readonly count: number;
}

/** Of the only process. */
export const WHOLE: Share = Object.freeze({ number: 1, count: 1 });

/** How many of `total` a process has: the processes have all of them together, none twice, while there is one for each. */
export function sharedOut(total: number, { number, count }: Share): number {
  return Math.floor(total / count) + (number <= total % count ? 1 : 0);
}

/** How many requests to a model a process may have under way, of `total` for the server; one in any case. */
export function placesOf(total: number, share: Share): number {
  return Math.max(1, sharedOut(total, share));
}
