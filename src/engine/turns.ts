/** Bytes of rows that one stream passes on before the next one may. */
export const SLICE_BYTES = 16_384;
/** Time in ms that streams may use of one turn of the event loop; the current slice ends. */
const TURN_MS = 0.5;

/** Something that has rows to pass on, more than it may at once. */
export interface Stream {
  /** Passes on about `bytes`; true while more waits that it could pass on now. */
  slice(bytes: number): boolean;
}

/** Clock of the scheduler. */
export interface SchedulerClock {
  /** ms */
  now(): number;
  /** Calls `turn` once all that is ready now has been heard. */
  next(turn: () => void): void;
}

const EVENT_LOOP: SchedulerClock = {
  now: () => performance.now(),
  next: (turn) => void setImmediate(turn),
};

/**
 * Decides which stream passes rows on next.
 *
 * All connections share one event loop, and one that always has data ready would keep it: libuv alone hands over 2 MiB
 * of a socket before it looks at the next. Streams therefore go round, a slice each, and after `TURN_MS` whatever else
 * is ready is heard first. So a short question beside any number of streams waits for a turn, not for their rows.
 */
export class FairScheduler {
  readonly #clock: SchedulerClock;
  readonly #ring = new Set<Stream>();
  #due = false;

  constructor(clock: SchedulerClock = EVENT_LOOP) {
    this.#clock = clock;
  }

  /** `stream` is asked for slices, from the next turn on, until it has no more. */
  join(stream: Stream): void {
    this.#ring.add(stream);
    this.#schedule();
  }

  leave(stream: Stream): void {
    this.#ring.delete(stream);
  }

  /** Resolves when somebody that passes rows on by itself may go on with its next slice. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      const slice = (): boolean => {
        resolve();
        return false;
      };
      this.join({ slice });
    });
  }

  #schedule(): void {
    if (this.#due || this.#ring.size === 0) return;
    this.#due = true;
    this.#clock.next(() => this.#turn());
  }

  #turn(): void {
    this.#due = false;
    const end = this.#clock.now() + TURN_MS;
    do {
      const [stream] = this.#ring;
      if (stream === undefined) break;
      this.#ring.delete(stream);
      if (stream.slice(SLICE_BYTES)) this.#ring.add(stream);
    } while (this.#clock.now() < end);
    this.#schedule();
  }
}

/** The turns of this process, which has one event loop for all connections. */
export const turns = new FairScheduler();
