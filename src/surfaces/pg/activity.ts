import { queryError } from 'osl-compiler';
/** What a session is doing, in the words of `pg_stat_activity`. */
export interface SessionActivity {
  readonly state: 'active' | 'idle' | 'idle in transaction' | 'idle in transaction (aborted)';
  /** The text that runs, its first `MOST_CHARACTERS`; empty for a session that rests. */
  readonly query: string;
  /** Milliseconds since the epoch; null where there is none. */
  readonly queryAt: number | null;
  readonly transactionAt: number | null;
  readonly changedAt: number;
}

/** As `track_activity_query_size` has it unless told. */
const MOST_CHARACTERS = 1_024;

/** Notes what one session does, for itself to be seen by its own caller. */
export class ActivityRecorder {
  readonly begunAt = Date.now();
  #query: string | null = null;
  #queryAt: number | null = null;
  #transactionAt: number | null = null;
  #changedAt = this.begunAt;

  /** A statement of this text begins to be prepared or to run. */
  asks(text: string): void {
    this.#query = text;
    this.#queryAt = Date.now();
    this.#changedAt = this.#queryAt;
  }

  /** A series of messages is over. */
  rests(inBlock: boolean): void {
    this.#query = null;
    this.#changedAt = Date.now();
    this.#transactionAt = inBlock ? (this.#transactionAt ?? this.#queryAt ?? this.#changedAt) : null;
  }

  /** `fast`: whether a question runs that went the fast way, of which nothing is noted. */
  seen(block: 'I' | 'T' | 'E', fast: boolean): SessionActivity {
    const query = this.#query;
    if (query === null && !fast) {
      const resting = { query: '', queryAt: this.#queryAt, changedAt: this.#changedAt };
      return { ...resting, state: RESTING[block], transactionAt: this.#transactionAt };
    }
    return {
      state: 'active',
      query: (query ?? '').slice(0, MOST_CHARACTERS),
      queryAt: this.#queryAt,
      transactionAt: this.#transactionAt ?? this.#queryAt,
      changedAt: this.#changedAt,
    };
  }
}

const RESTING = {
  I: 'idle',
  T: 'idle in transaction',
  E: 'idle in transaction (aborted)',
} as const satisfies Record<'I' | 'T' | 'E', SessionActivity['state']>;

/** What a session runs just now, which a cancel of its client, or its `statement_timeout`, stops. */
export class RunningStatement {
  readonly #timeoutMs: () => number;
  #current: AbortController | null = null;
  /** A controller that nothing has aborted serves statement after statement. */
  #spare: AbortController | null = null;

  /** `timeoutMs` is asked when a statement begins; 0 is no limit beyond those of the server. */
  constructor(timeoutMs: () => number) {
    this.#timeoutMs = timeoutMs;
  }

  cancel(): void {
    this.#current?.abort(queryError('cancelled', {}));
  }

  async cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = this.#spare ?? new AbortController();
    this.#spare = null;
    try {
      return await this.while(controller, () => work(controller.signal));
    } finally {
      if (!controller.signal.aborted) this.#spare = controller;
    }
  }

  /** Runs `work` as `cancellable` does, with a `stop` of its own, which may outlive it. */
  async while<T>(stop: AbortController, work: () => Promise<T>): Promise<T> {
    const ms = this.#timeoutMs();
    const clock =
      ms === 0 ? null : setTimeout(() => stop.abort(queryError('timedOut', { seconds: null })), ms);
    this.#current = stop;
    try {
      return await work();
    } finally {
      if (clock !== null) clearTimeout(clock);
      this.#current = null;
    }
  }
}
