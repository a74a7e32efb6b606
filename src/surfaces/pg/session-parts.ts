import { queryError } from 'osl-compiler';
import type { Awaitable, SessionControl } from '../../../wire/index.js';
import type { QuestionRouter, SubscriptionParts } from '../../ask/index.js';
import type { CatalogProvider, CatalogSession, SessionSignal } from '../catalog/index.js';
import type { Channels } from './channels.js';
import type { Cursors } from './cursor.js';
import type { SessionCaller, SessionRecords, SuspendedRowRights } from './session-requests.js';
import type { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** State and services of one session, passed to each of its statements. */
export interface SessionParts {
  readonly service: SubscriptionParts;
  readonly channels: Channels;
  readonly caller: SessionCaller;
  readonly rights: SuspendedRowRights;
  readonly records: SessionRecords;
  readonly settings: SessionSettings;
  readonly state: SessionState;
  readonly cursors: Cursors;
  /** Prepared statements by name. Parse and SQL's PREPARE share one namespace. */
  readonly statements: Pick<SessionControl, 'statement' | 'statements' | 'keep'>;
  readonly running: RunningStatement;
  readonly activity: ActivityRecorder;
  /** Open sessions of the same caller, including this one. */
  readonly own: {
    all(): Awaitable<readonly CatalogSession[]>;
    signal(signal: SessionSignal): Awaitable<boolean>;
  };
  /** Answers catalog queries; if null, they are treated as data queries and therefore refused. */
  readonly catalogs: CatalogProvider | null;
  readonly questions: QuestionRouter;
  /** Process id sent in BackendKeyData; 0 until it has been sent. */
  readonly processId: () => number;
}

/** Postgres' default for `track_activity_query_size`. */
const MOST_CHARACTERS = 1_024;

export class ActivityRecorder {
  readonly #begunAt = Date.now();
  #query: string | null = null;
  #queryAt: number | null = null;
  #transactionAt: number | null = null;
  #changedAt = this.#begunAt;

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

  /** `fast`: true if a fast-lane query is running, which is not tracked here. */
  snapshot(block: 'I' | 'T' | 'E', fast: boolean): Omit<CatalogSession, 'pid' | 'application_name'> {
    const active = this.#query !== null || fast;
    return {
      backend_start: this.#begunAt,
      xact_start: active ? (this.#transactionAt ?? this.#queryAt) : this.#transactionAt,
      query_start: this.#queryAt,
      state_change: this.#changedAt,
      state: active ? 'active' : IDLE_STATES[block],
      query: (this.#query ?? '').slice(0, MOST_CHARACTERS),
    };
  }
}

const IDLE_STATES: Readonly<Record<'I' | 'T' | 'E', string>> = {
  I: 'idle',
  T: 'idle in transaction',
  E: 'idle in transaction (aborted)',
};

/** The statement running in a session; aborted by a cancel request or `statement_timeout`. */
export class RunningStatement {
  readonly #timeoutMs: () => number;
  #current: AbortController | null = null;
  /** Reused until aborted, to save an allocation per statement. */
  #spare: AbortController | null = null;

  /** `timeoutMs` is read at the start of each statement; 0 means no limit other than the server's. */
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

  /** Like `cancellable`, but with the caller's controller, which may outlive `work`. */
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
