/** Number of bytes that a stream may deliver before the next stream is served. */
export const SLICE_BYTES = 16_384;
/** Maximum time in ms that streams may use within one turn of the event loop. */
const TURN_MS = 0.5;

/** A source of rows, which are delivered in slices. */
export interface Stream {
  /** Delivers about `bytes` bytes. Returns true if more is ready. */
  slice(bytes: number): boolean;
}

export interface SchedulerClock {
  /** Current time in ms. */
  now(): number;
  /** Calls `turn` after pending I/O events. */
  next(turn: () => void): void;
}

const EVENT_LOOP: SchedulerClock = {
  now: () => performance.now(),
  next: (turn) => void setImmediate(turn),
};

/**
 * Round-robin scheduler for all row streams.
 *
 * All connections share one event loop, which a connection with data always ready would monopolize: libuv alone
 * delivers 2 MiB from a socket before it serves the next. Streams therefore take turns, a slice each, and other I/O is
 * handled every `TURN_MS`. A short query waits for one turn, not for all rows of the other streams.
 */
export class FairScheduler {
  readonly #clock: SchedulerClock;
  readonly #ring = new Set<Stream>();
  #scheduled = false;

  constructor(clock: SchedulerClock = EVENT_LOOP) {
    this.#clock = clock;
  }

  /** Lets `stream` deliver slices, starting with the next turn, until it has no more data. */
  join(stream: Stream): void {
    this.#ring.add(stream);
    this.#schedule();
  }

  leave(stream: Stream): void {
    this.#ring.delete(stream);
  }

  /** Resolves when it is the caller's turn, for streams that send their slices themselves. */
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
    if (this.#scheduled || this.#ring.size === 0) return;
    this.#scheduled = true;
    this.#clock.next(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
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

/** The scheduler of this process. */
export const rowScheduler = new FairScheduler();
