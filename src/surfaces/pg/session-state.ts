import { queryError } from 'osl-compiler';
import {
  type Awaitable,
  error,
  type SessionControl,
  type TransactionStatus,
  type WireNotice,
} from '../../../wire/index.js';
import {
  type QuestionRouter,
  type RunningParts,
  Snapshots,
  type SubscriptionParts,
} from '../../ask/index.js';
import type { CatalogProvider, SessionActivity, SessionSignal } from '../catalog/index.js';
import type { Channels } from './channels.js';
import type { Command, CommandResult } from './command.js';
import type { Cursors } from './cursor.js';
import type { SessionCaller, SessionRecords, SuspendedRowRights } from './session-requests.js';
import type { ScopedValues, SessionSettings, SettingScopes } from './settings.js';

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
  readonly statements: Pick<SessionControl, 'statement' | 'statements' | 'storeStatement'>;
  readonly running: RunningStatement;
  readonly activity: ActivityRecorder;
  /** Open sessions of the same caller, including this one. */
  readonly sameCaller: {
    all(): Awaitable<readonly SessionActivity[]>;
    signal(signal: SessionSignal): Awaitable<boolean>;
  };
  /** Answers catalog queries; if null, they are treated as data queries and therefore refused. */
  readonly catalogs: CatalogProvider | null;
  readonly questions: QuestionRouter;
  /** Process id sent in BackendKeyData; 0 until it has been sent. */
  readonly processId: () => number;
}

/** Postgres' default for `track_activity_query_size`. */
const MAX_QUERY_LENGTH = 1_024;

export class ActivityRecorder {
  readonly #startedAt = Date.now();
  #query: string | null = null;
  #queryAt: number | null = null;
  #transactionAt: number | null = null;
  #changedAt = this.#startedAt;

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

  /** `isInFastLane`: true if a query is running in the session's fast lane, which does not call `beginStatement`. */
  snapshot(block: 'I' | 'T' | 'E', isInFastLane: boolean): Omit<SessionActivity, 'pid' | 'application_name'> {
    const active = this.#query !== null || isInFastLane;
    return {
      backend_start: this.#startedAt,
      xact_start: active ? (this.#transactionAt ?? this.#queryAt) : this.#transactionAt,
      query_start: this.#queryAt,
      state_change: this.#changedAt,
      state: active ? 'active' : IDLE_STATES[block],
      query: (this.#query ?? '').slice(0, MAX_QUERY_LENGTH),
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
  /** Controller kept for the next statement unless it was aborted, to save an allocation per statement. */
  #spareController: AbortController | null = null;

  /** `timeoutMs` is called at the start of each statement; 0 means no limit other than the server's. */
  constructor(timeoutMs: () => number) {
    this.#timeoutMs = timeoutMs;
  }

  cancel(): void {
    this.#current?.abort(queryError('cancelled', {}));
  }

  async cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = this.#spareController ?? new AbortController();
    this.#spareController = null;
    try {
      return await this.cancellableBy(controller, () => work(controller.signal));
    } finally {
      if (!controller.signal.aborted) this.#spareController = controller;
    }
  }

  /**
   * Like `cancellable`, but cancellation aborts `stop`, which the caller can continue to use after `work` has ended.
   */
  async cancellableBy<T>(stop: AbortController, work: () => Promise<T>): Promise<T> {
    const ms = this.#timeoutMs();
    const timeout =
      ms === 0 ? null : setTimeout(() => stop.abort(queryError('timedOut', { seconds: null })), ms);
    this.#current = stop;
    try {
      return await work();
    } finally {
      if (timeout !== null) clearTimeout(timeout);
      this.#current = null;
    }
  }
}

/** State changed by session commands: transaction block, settings, prepared statements and portals. */
export class SessionState {
  readonly block: TransactionBlock;
  readonly isolation: Isolation;
  /** True while running one of several statements of a simple query, which form an implicit transaction. */
  inMultiStatement = false;
  readonly #settings: SessionSettings;
  readonly #control: SessionControl;

  constructor(settings: SessionSettings, isolation: Isolation, control: SessionControl) {
    this.#settings = settings;
    this.block = new TransactionBlock(settings.scopes);
    this.isolation = isolation;
    this.#control = control;
  }

  get inBlock(): boolean {
    return this.block.status !== 'I';
  }

  shownColumns(name: string | null): readonly string[] {
    return name === null ? ['name', 'setting', 'description'] : [this.#settings.show(name).name];
  }

  /** Runs a command; `inMultiStatement` is true if it is one of several statements of a simple query. @throws WireError */
  run(command: Command, inMultiStatement: boolean): CommandResult {
    switch (command.kind) {
      case 'set':
        return this.#set(command, inMultiStatement);
      case 'reset':
        if (command.name === null) this.#settings.resetAll();
        else this.#settings.reset(command.name);
        return { tag: 'RESET' };
      case 'show':
        return { tag: 'SHOW', rows: this.#showRows(command.name) };
      case 'begin':
        return this.#begin(command);
      case 'commit':
      case 'rollback':
        return this.#endBlock(command);
      case 'savepoint':
        this.block.save(command.name);
        return { tag: 'SAVEPOINT' };
      case 'release':
        this.block.release(command.name);
        return { tag: 'RELEASE' };
      case 'rollback to':
        this.block.rollbackTo(command.name);
        return { tag: 'ROLLBACK' };
      case 'discard':
        return this.#discard(command.target, inMultiStatement);
      case 'deallocate':
        return this.#deallocate(command.name);
      case 'listen':
      case 'unlisten':
        return { tag: command.kind.toUpperCase() };
      case 'constraints': {
        const isOutsideBlock = !inMultiStatement && !this.inBlock;
        return {
          tag: CONSTRAINTS,
          ...(isOutsideBlock ? { notices: [outsideBlockWarning(CONSTRAINTS)] } : {}),
        };
      }
      case 'unlock':
        return { tag: 'SELECT 1', rows: [['']] };
      default: {
        const unknown: never = command;
        throw error('XX000', `unexpected command ${String(unknown)}`);
      }
    }
  }

  #set({ assignments, local }: Extract<Command, { kind: 'set' }>, inMultiStatement: boolean): CommandResult {
    for (const { name, value } of assignments) {
      if (value === null) this.#settings.reset(name, local !== null);
      else this.#setValue(name, value, local !== null);
    }
    const isOutsideBlock = local !== null && !inMultiStatement && !this.inBlock;
    return { tag: 'SET', ...(isOutsideBlock ? { notices: [outsideBlockWarning(local)] } : {}) };
  }

  #setValue(name: string, value: string, local: boolean): void {
    this.isolation.check(name, value, this.block.depth > 0);
    this.#settings.set(name, value, local);
  }

  #begin({ tag, level }: Extract<Command, { kind: 'begin' }>): CommandResult {
    if (this.inBlock) {
      if (level !== null)
        this.#set({ kind: 'set', assignments: [{ name: LEVEL, value: level }], local: null }, true);
      return { tag, notices: [warning('25001', 'there is already a transaction in progress')] };
    }
    this.isolation.begin(level);
    this.block.begin();
    return { tag };
  }

  /** Undoes a BEGIN that was refused. */
  abandonBlock(): void {
    this.isolation.end();
    this.block.end('rollback');
  }

  /**
   * Runs COMMIT or ROLLBACK. A failed block is rolled back in either case. `chain` starts the next block at the same
   * isolation level.
   */
  #endBlock({ kind, chain }: Extract<Command, { kind: 'commit' | 'rollback' }>): CommandResult {
    const verb = kind === 'commit' ? 'COMMIT' : 'ROLLBACK';
    if (chain && !this.inBlock)
      throw error('25P01', `${verb} AND CHAIN can only be used in transaction blocks`);
    const notices = this.inBlock ? [] : [warning('25P01', 'there is no transaction in progress')];
    const { level } = this.isolation;
    this.#control.closePortals();
    const isCommitted = this.block.end(kind);
    this.isolation.end();
    if (chain) {
      this.isolation.begin(null, level);
      this.block.begin();
    }
    return { tag: isCommitted ? 'COMMIT' : 'ROLLBACK', notices };
  }

  #showRows(name: string | null): readonly (readonly string[])[] {
    if (name === null) return this.#settings.all().map((s) => [s.name, s.value, s.description]);
    return [[this.#settings.show(name).value]];
  }

  /** Runs DISCARD. Sessions have no sequences, temporary tables or cached plans, so only ALL has an effect. */
  #discard(
    target: Extract<Command, { kind: 'discard' }>['target'],
    inMultiStatement: boolean,
  ): CommandResult {
    if (target !== 'ALL') return { tag: `DISCARD ${target}` };
    if (inMultiStatement || this.block.status !== 'I')
      throw error('25001', 'DISCARD ALL cannot run inside a transaction block');
    this.#control.deallocateAll();
    this.#settings.resetAll();
    return { tag: 'DISCARD ALL' };
  }

  #deallocate(name: string | null): CommandResult {
    if (name === null) {
      this.#control.deallocateAll();
      return { tag: 'DEALLOCATE ALL' };
    }
    if (!this.#control.deallocate(name)) throw error('26000', `prepared statement "${name}" does not exist`);
    return { tag: 'DEALLOCATE' };
  }
}

const LEVEL = 'transaction_isolation';
const CONSTRAINTS = 'SET CONSTRAINTS';

function outsideBlockWarning(command: string): WireNotice {
  return warning('25P01', `${command} can only be used in transaction blocks`);
}

function warning(sqlstate: string, message: string): WireNotice {
  return { severity: 'WARNING', sqlstate, message };
}

/**
 * Transaction status of a session, with the settings that commit, rollback and savepoints keep or restore. Data is
 * read-only, so nothing else is transactional.
 */
class TransactionBlock {
  readonly #settings: SettingScopes;
  #status: TransactionStatus = 'I';
  #savepoints: { readonly name: string; readonly settings: ScopedValues }[] = [];

  constructor(settings: SettingScopes) {
    this.#settings = settings;
  }

  get status(): TransactionStatus {
    return this.#status;
  }

  /** Number of savepoints in force. */
  get depth(): number {
    return this.#savepoints.length;
  }

  begin(): void {
    if (this.#status === 'I') this.#status = 'T';
  }

  end(outcome: 'commit' | 'rollback'): boolean {
    const isCommitted = outcome === 'commit' && this.#status !== 'E';
    this.#status = 'I';
    this.#savepoints = [];
    if (isCommitted) this.#settings.commit();
    else this.#settings.rollback();
    return isCommitted;
  }

  /** Marks the block as failed and restores the settings of the last savepoint, or of the transaction's start. */
  fail(): void {
    if (this.#status === 'T') this.#status = 'E';
    this.#settings.rollback(this.#savepoints.at(-1)?.settings);
  }

  /** @throws WireError 25P02 in a failed block */
  requireUsable(): void {
    if (this.#status === 'E') {
      throw error('25P02', 'current transaction is aborted, commands ignored until end of transaction block');
    }
  }

  save(name: string): void {
    this.#requireBlock('SAVEPOINT');
    this.requireUsable();
    this.#savepoints.push({ name, settings: this.#settings.state });
  }

  release(name: string): void {
    this.#requireBlock('RELEASE SAVEPOINT');
    this.requireUsable();
    this.#savepoints.length = this.#indexOf(name);
  }

  rollbackTo(name: string): void {
    this.#requireBlock('ROLLBACK TO SAVEPOINT');
    this.#savepoints.length = this.#indexOf(name) + 1;
    this.#status = 'T';
    this.#settings.rollback(this.#savepoints.at(-1)?.settings);
  }

  #requireBlock(command: string): void {
    if (this.#status === 'I') throw error('25P01', `${command} can only be used in transaction blocks`);
  }

  #indexOf(name: string): number {
    const index = this.#savepoints.findLastIndex((s) => s.name === name);
    if (index < 0) throw error('3B001', `savepoint "${name}" does not exist`);
    return index;
  }
}

const DEFAULT_LEVEL = 'default_transaction_isolation';
const SNAPSHOT_LEVELS = new Map([
  ['repeatable read', 'REPEATABLE READ'],
  ['serializable', 'SERIALIZABLE'],
] as const);

/** Isolation levels of one session. In a block above READ COMMITTED, all statements read the same snapshot. */
export class Isolation {
  readonly #service: Pick<RunningParts, 'engines'>;
  readonly #settings: SessionSettings;
  #snapshots: Snapshots | null = null;
  #hasRead = false;
  /** Level at the start of the current block, to which a failure returns it, as in Postgres. */
  #initial = '';

  constructor(service: Pick<RunningParts, 'engines'>, settings: SessionSettings) {
    this.#service = service;
    this.#settings = settings;
  }

  /** Starts a block at level `initial`, which BEGIN may replace by `level`. @throws WireError 0A000, 22023 */
  begin(level: string | null, initial = this.#settings.show(DEFAULT_LEVEL).value): void {
    const effective = level ?? initial;
    this.#requireSupported(effective);
    this.#settings.set(LEVEL, effective, true);
    this.#initial = initial;
  }

  /** Level of the current block, for a block that AND CHAIN starts. */
  get level(): string {
    return this.#settings.scopes.values.get(LEVEL) ?? this.#initial;
  }

  /** Checks an isolation level before it is set. @throws WireError 0A000, 25001 */
  check(name: string, value: string, inSavepoint: boolean): void {
    const key = name.toLowerCase();
    if (key !== LEVEL && key !== DEFAULT_LEVEL) return;
    this.#requireSupported(value);
    if (key === DEFAULT_LEVEL || value.toLowerCase() === this.#settings.show(LEVEL).value) return;
    if (this.#hasRead)
      throw error('25001', 'SET TRANSACTION ISOLATION LEVEL must be called before any query');
    if (inSavepoint)
      throw error('25001', 'SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction');
  }

  /** Returns the snapshots for a data statement; null if the statement reads the data committed when it starts. */
  snapshots(inBlock: boolean, subject: string): Snapshots | null {
    if (!inBlock) return null;
    this.#hasRead = true;
    const level = SNAPSHOT_LEVELS.get(this.#settings.show(LEVEL).value as 'serializable'); // undefined for levels without a snapshot
    if (level === undefined) return null;
    this.#snapshots ??= new Snapshots(level, subject, this.#settings.standbyReads());
    return this.#snapshots;
  }

  end(): void {
    this.#hasRead = false;
    this.#snapshots?.end();
    this.#snapshots = null;
  }

  /**
   * Refuses levels that need a snapshot on the embedded engine: it has a single session, which no client may hold for
   * a whole transaction.
   */
  #requireSupported(level: string): void {
    if (!SNAPSHOT_LEVELS.has(level.toLowerCase() as 'serializable')) return;
    if ([...this.#service.engines.values()].every((e) => e.kind === 'postgres')) return;
    throw error('0A000', `isolation level "${level.toLowerCase()}" is not supported on the embedded engine`, {
      hint: 'ask in READ COMMITTED, or use a native Postgres',
    });
  }
}
