/** Difference beyond which the clock of the day has jumped and was not merely trimmed, ms. */
const JUMP_MS = 1_000;
const LOOK_MS = 1_000;

/** A jump of the clock of the day, against the one that only goes forward. */
export interface ClockJump {
  /** Expected time had the clock not jumped, RFC 3339; null if unknown because the process was not running. */
  readonly expected: string | null;
  /** Time that the clock showed. */
  readonly found: string;
  /** Of the last record before it, where the log began with a clock that is behind. */
  readonly last: string | null;
}

/**
 * Watches the clock of the day beside the monotonic one. Records are ordered by seq, and say the time that the clock
 * said; where it jumped the log says so, within a second of it.
 */
export class ClockWatch {
  readonly #jumped: (jump: ClockJump) => void;
  readonly #timer: NodeJS.Timeout;
  #offset = Date.now() - performance.now();
  #steady = true;

  constructor(jumped: (jump: ClockJump) => void) {
    this.#jumped = jumped;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** True if the clock has not jumped since the log was opened: what is old by a clock that has may be young. */
  get steady(): boolean {
    return this.#steady;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = Date.now();
    const expected = this.#offset + performance.now();
    this.#offset = now - performance.now();
    if (Math.abs(now - expected) < JUMP_MS) return;
    this.#steady = false;
    const found = new Date(now).toISOString();
    this.#jumped({ expected: new Date(expected).toISOString(), found, last: null });
  }
}

/** Clock jump to report when a log is opened while the clock is behind its last record. */
export function jumpSince(last: string): ClockJump | null {
  const now = Date.now();
  if (!(Date.parse(last) > now + JUMP_MS)) return null;
  return { expected: null, found: new Date(now).toISOString(), last };
}
