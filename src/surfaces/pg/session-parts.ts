import { queryError } from 'osl-compiler';
import type { Awaitable, SessionControl } from '../../../wire/index.js';
import type { AnswerParts, QuestionRouter } from '../../ask/index.js';
import type { CatalogProvider, CatalogSession, SessionSignal } from '../catalog/index.js';
import type { Cursors } from './cursor.js';
import type { SessionCaller, SessionRecords, SuspendedRowRights } from './session-requests.js';
import type { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** State and services of one session, passed to each of its statements. */
export interface SessionParts {
  readonly service: AnswerParts;
  readonly caller: SessionCaller;
  readonly rights: SuspendedRowRights;
  readonly records: SessionRecords;
  readonly settings: SessionSettings;
  readonly state: SessionState;
  readonly cursors: Cursors;
  /** Prepared statements by name: those of Parse and of SQL's PREPARE share one namespace. */
  readonly statements: Pick<SessionControl, 'statement' | 'statements' | 'keep'>;
  readonly running: RunningStatement;
  readonly activity: ActivityRecorder;
  /** Open sessions of the same caller, including this one. */
  readonly own: {
    all(): Awaitable<readonly CatalogSession[]>;
    signal(signal: SessionSignal): Awaitable<boolean>;
  };
  /** Null: catalog queries are handled as data queries, and so refused. */
  readonly catalogs: CatalogProvider | null;
  readonly questions: QuestionRouter;
  /** Process id of BackendKeyData; 0 before it is sent. */
  readonly processId: () => number;
}

/** Activity of a session, in terms of `pg_stat_activity`. */
export interface SessionActivity {
  readonly state: 'active' | 'idle' | 'idle in transaction' | 'idle in transaction (aborted)';
  /** Running statement, truncated to `MOST_CHARACTERS`; empty if idle. */
  readonly query: string;
  /** ms since the epoch; null if none. */
  readonly queryAt: number | null;
  readonly transactionAt: number | null;
  readonly changedAt: number;
}

/** Default of Postgres' `track_activity_query_size`. */
const MOST_CHARACTERS = 1_024;

export class ActivityRecorder {
  readonly begunAt = Date.now();
  #query: string | null = null;
  #queryAt: number | null = null;
  #transactionAt: number | null = null;
  #changedAt = this.begunAt;

  beginStatement(text: string): void {
    this.#query = text;
    this.#queryAt = Date.now();
    this.#changedAt = this.#queryAt;
  }

  finishSeries(inBlock: boolean): void {
    this.#query = null;
    this.#changedAt = Date.now();
    this.#transactionAt = inBlock ? (this.#transactionAt ?? this.#queryAt ?? this.#changedAt) : null;
  }

  /** `fast`: true if a fast-lane query runs, which is not tracked here. */
  snapshot(block: 'I' | 'T' | 'E', fast: boolean): SessionActivity {
    const query = this.#query;
    if (query === null && !fast) {
      const resting = { query: '', queryAt: this.#queryAt, changedAt: this.#changedAt };
      return { ...resting, state: IDLE_STATES[block], transactionAt: this.#transactionAt };
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

const IDLE_STATES = {
  I: 'idle',
  T: 'idle in transaction',
  E: 'idle in transaction (aborted)',
} as const satisfies Record<'I' | 'T' | 'E', SessionActivity['state']>;

/** The statement that runs in a session; a cancel or `statement_timeout` aborts it. */
export class RunningStatement {
  readonly #timeoutMs: () => number;
  #current: AbortController | null = null;
  /** Reused until aborted, to save an allocation per statement. */
  #spare: AbortController | null = null;

  /** `timeoutMs` is read at the start of each statement; 0: no limit beyond the server's. */
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

  /** Like `cancellable`, with a controller of the caller, which may outlive `work`. */
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
