import type { LogPosition } from './position.js';

/** Identifies a line of history. A server of another system or timeline has other data. */
export interface LogOrigin {
  /** `system_identifier` of the cluster. */
  readonly system: string;
  readonly timeline: number;
}

/**
 * Positions of the primary's log, each with the time at which the primary was asked for it. What was committed before
 * that time ends at or before the position, so a standby that has replayed up to the position has all of it. No clocks
 * of two machines are compared.
 */
export class PrimaryHistory {
  readonly #keptMs: number;
  readonly #samples: { readonly at: number; readonly position: LogPosition }[] = [];
  #origin: LogOrigin | null = null;

  /** @param keptMs age in ms at which a sample is dropped */
  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** @param at time before the primary was asked, in ms on the clock of `performance.now()` */
  add(at: number, position: LogPosition, origin: LogOrigin): void {
    const last = this.#samples.at(-1);
    const continues = this.isOf(origin) && (last === undefined || last.position <= position);
    if (!continues) this.#samples.length = 0;
    this.#origin = origin;
    while ((this.#samples[0]?.at ?? at) < at - this.#keptMs) this.#samples.shift();
    this.#samples.push({ at, position });
  }

  get isEmpty(): boolean {
    return this.#origin === null;
  }

  isOf(origin: LogOrigin): boolean {
    return this.isOfSystem(origin) && this.#origin?.timeline === origin.timeline;
  }

  isOfSystem({ system }: LogOrigin): boolean {
    return this.#origin?.system === system;
  }

  /** The time before which everything committed has been replayed at `replayed`; null if that is not known. */
  asOf(replayed: LogPosition): number | null {
    return this.#samples.findLast(({ position }) => position <= replayed)?.at ?? null;
  }
}
