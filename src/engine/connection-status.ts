export type ConnectionChange =
  | { readonly kind: 'refused'; readonly cause: unknown }
  | { readonly kind: 'mended'; readonly seconds: number };

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** Time in ms during which the same failure is not reported again. */
const QUIET_MS = 30_000;
/** The SQLSTATE too_many_connections. */
const FULL = '53300';

/**
 * Tracks whether an upstream accepts connections. After a failure, the next attempt must wait for a pause that
 * doubles each time. Waiting requests do not see failures, since open sessions continue and the next attempt may
 * succeed.
 *
 * `onChange` is called once per state, however many attempts fail, and not for every change if the state flaps.
 */
export class ConnectionStatus {
  readonly #onChange: (change: ConnectionChange) => void;
  readonly #random: () => number;
  #failures = 0;
  #failingSince = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #retryAt = 0;
  #code = '';
  /** The last failure reported; `open` is true until its end has been reported too. */
  #reported = { code: '', at: Number.NEGATIVE_INFINITY, open: false };

  /** @param random randomizes pauses, so that many gateways do not retry at the same time */
  constructor(onChange: (change: ConnectionChange) => void, random: () => number = Math.random) {
    this.#onChange = onChange;
    this.#random = random;
  }

  /** `full`: no connection is left; `lost`: the server is unreachable or refuses the login; otherwise `open`. */
  get state(): 'open' | 'full' | 'lost' {
    if (this.#failures === 0) return 'open';
    return this.#code === FULL ? 'full' : 'lost';
  }

  /** Pause before the next attempt in ms; 0 if it may be made now. */
  get pauseMs(): number {
    return Math.max(0, this.#retryAt - performance.now());
  }

  /** Makes one attempt to connect. Rejects with the error of `connect`. */
  async attempt<T>(connect: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      const connection = await connect();
      // An attempt that began before the last failure proves nothing about the current state.
      if (startedAt > this.#failedAt) this.#noteSuccess();
      return connection;
    } catch (cause) {
      this.#noteFailure(cause);
      throw cause;
    }
  }

  #noteSuccess(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#retryAt = 0;
    if (!this.#reported.open) return;
    this.#reported.open = false;
    this.#onChange({
      kind: 'mended',
      seconds: Math.round((performance.now() - this.#failingSince) / 100) / 10,
    });
  }

  #noteFailure(cause: unknown): void {
    const now = performance.now();
    if (this.#failures === 0) this.#failingSince = now;
    this.#failures += 1;
    this.#failedAt = now;
    this.#code = codeOf(cause);
    const pause = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 16));
    this.#retryAt = now + pause * (0.5 + this.#random() / 2);
    const { code, at, open } = this.#reported;
    if (code === this.#code && (open || now - at < QUIET_MS)) return;
    this.#reported = { code: this.#code, at: now, open: true };
    this.#onChange({ kind: 'refused', cause });
  }
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  if (!(cause instanceof Error)) return String(cause);
  return 'code' in cause ? String(cause.code) : cause.message;
}
