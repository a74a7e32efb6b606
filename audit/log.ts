import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AppendDone, KeepOutcome } from './commit-group.js';
import { Epoch } from './epoch.js';
import { AuditDamaged, AuditUnavailable, toAuditUnavailable } from './errors.js';
import { FileStore } from './file-store.js';
import { FRAME_HEAD, FRAME_TAIL, MAX_GROUP_BYTES, MAX_RECORD_BYTES } from './format.js';
import type { LogBase } from './frontier.js';
import type { AuditGap, AuditLog, AuditLogOptions, AuditStats } from './interface.js';
import { lockDirectory } from './lock.js';
import { ClockWatch, gapEvent, logEvent, openingEvents, reopeningEvents } from './log-events.js';
import { ReadEventRecorder } from './read-events.js';
import {
  type AuditEntry,
  type CommonEntry,
  encodeRecord,
  type RecordedStandby,
  type RecordPlace,
  RecordTemplate,
} from './record.js';
import { type AcknowledgedTree, CLOSING, type RecoveredLog } from './recover.js';
import { RetentionRunner } from './retention.js';
import { loadSigner, PRIVATE_KEY_FILE, type Signer } from './signer.js';
import { directorySource } from './source.js';
import type { LogStore } from './store.js';

const REOPEN_MOST_MS = 2_000;
const REOPEN_MS = 250;

/**
 * Opens the audit log for writing: takes the lock, verifies the log, cuts off a torn tail, adds an outcome `unknown`
 * for every allowed decision that has none, and writes a checkpoint. The log's own records (`audit.open`,
 * `audit.clock`, `audit.recover`, `audit.gap`, `audit.retain`, `audit.close`) are events of the surface `system`.
 *
 * With `waits`, a log whose storage does not respond opens immediately and does all this later.
 *
 * @throws AuditLocked if another process has the directory open for writing
 * @throws AuditDamaged if the log differs from what was written, except for a torn tail
 * @throws AuditUnavailable if the first records cannot be written
 */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const release = await lockDirectory(options.dir);
  try {
    const fresh = (await directorySource(options.dir).segments()).length === 0;
    const keyFile = options.signingKeyFile ?? join(options.dir, PRIVATE_KEY_FILE);
    const signer = loadSigner(options.dir, keyFile, options.writer, fresh);
    const bytes = options.segmentBytes ?? SEGMENT_BYTES;
    const store = options.store?.(bytes) ?? new FileStore(options.dir, bytes, options);
    return await begin(options, store, signer, release);
  } catch (error) {
    release();
    throw error;
  }
}

const SEGMENT_BYTES = 32 * 1024 * 1024;

async function begin(
  options: AuditLogOptions,
  store: LogStore,
  signer: Signer,
  release: () => void,
): Promise<AuditLog> {
  const log = new ReopeningLog(options, store, signer, release);
  try {
    const recovered = await store.recover(signer);
    await log.begin(recovered, (place) => openingEvents(place, options, recovered));
    log.attend();
    return log;
  } catch (error) {
    if (options.waits !== true || options.afterFailure === 'stay' || error instanceof AuditDamaged) {
      await store.close();
      throw error;
    }
    log.awaitPlace(toAuditUnavailable(error));
    return log;
  }
}

/** Statistics of a log that is still waiting for its storage. */
const NOTHING_YET: Omit<AuditStats, 'writer' | 'gaps' | 'sync'> = Object.freeze({
  epoch: 0,
  records: 0,
  durable: 0,
  anchored: 0,
  groups: 0,
  segment: 0,
  failure: null,
});

/** The log across epochs (see `Epoch`). After a disk failure, a new epoch starts unless `afterFailure` is `stay`. */
class ReopeningLog implements AuditLog {
  readonly #options: AuditLogOptions;
  readonly #store: LogStore;
  readonly #signer: Signer;
  readonly #release: () => void;
  readonly whenOpen: Promise<void>;
  #opened: () => void = () => undefined;
  /** The current epoch; null until the first one has started. */
  #epoch: Epoch | null = null;
  #outage: LogOutage | null = null;
  /** Callbacks that reject the pending calls of `appendProven` when the log fails. */
  readonly #proving = new Set<(failure: AuditUnavailable) => void>();
  #gaps = 0;
  #timer: NodeJS.Timeout | null = null;
  /** The attempt to reopen that is in progress, or null. */
  #attempt: Promise<void> | null = null;
  #closing: Promise<void> | null = null;
  #readings: ReadEventRecorder | null = null;
  #clock: ClockWatch | null = null;
  #keeper: RetentionRunner | null = null;

  constructor(options: AuditLogOptions, store: LogStore, signer: Signer, release: () => void) {
    this.#options = options;
    this.#store = store;
    this.#signer = signer;
    this.#release = release;
    this.whenOpen = new Promise((resolve) => {
      this.#opened = resolve;
    });
  }

  async begin(recovered: RecoveredLog, first: (place: RecordPlace) => readonly AuditEntry[]): Promise<void> {
    const options = this.#options;
    // Failures while writing the first records are thrown to the caller; the log itself handles later failures.
    const begun = { yet: false };
    const failed = (failure: AuditUnavailable, waiting: number): KeepOutcome | null =>
      begun.yet ? this.#fail(failure, waiting) : null;
    const { observer } = options;
    const signed = (note: string): void => observer?.signed?.(note);
    const rotated = (): void => {
      this.#store.rotated();
      this.#keeper?.look();
    };
    const [store, signer] = [this.#store, this.#signer];
    this.#epoch = await Epoch.start({ options, store, signer, recovered, first, failed, signed, rotated });
    begun.yet = true;
    rotated();
  }

  /** Called if the storage does not respond at startup: marks the log as failed and keeps retrying. */
  awaitPlace(failure: AuditUnavailable): void {
    this.#outage = new LogOutage(failure, 0, false);
    this.#options.observer?.failed(failure);
    this.#tryAgain((outage) => this.#beginFirst(outage));
  }

  /** Starts the background tasks once the log accepts records. */
  attend(): void {
    this.#opened();
    const { tenant = '', retention } = this.#options;
    const queue = this.#store.readings;
    const append = (entry: AuditEntry): Promise<number> => this.append(entry);
    this.#readings = new ReadEventRecorder({ tenant, queue, append });
    this.#clock = new ClockWatch((jump) => {
      const { writer, epoch } = this.stats();
      const entry = logEvent({ writer, epoch, seq: 0 }, this.#options, 'audit.clock');
      this.append({ ...entry, detail: JSON.stringify(jump) }, () => undefined);
    });
    if (retention === undefined) return;
    const refused = (why: Error): void => this.#options.observer?.kept?.(why);
    const [store, signer] = [this.#store, this.#signer];
    const steady = (): boolean => this.#clock?.steady ?? true;
    this.#keeper = new RetentionRunner({ store, signer, retention, tenant, append, refused, steady });
  }

  append(entry: AuditEntry): Promise<number>;
  append(entry: AuditEntry, done: AppendDone): void;
  append(entry: AuditEntry, done?: AppendDone): Promise<number> | undefined {
    if (done) {
      this.#append(entry, done);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#append(entry, (error, seq) => (error ? reject(error) : resolve(seq)));
    });
  }

  form(common: CommonEntry): RecordTemplate {
    return new RecordTemplate(common);
  }

  appendForm(
    form: RecordTemplate,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    done: AppendDone,
    standby?: RecordedStandby,
  ): void {
    const outage = this.#outage;
    if (outage !== null) outage.take(form.entry(requestId, statementHmac, rows, durationUs, standby), done);
    else this.#current().appendForm(form, requestId, statementHmac, rows, durationUs, done, standby);
  }

  async appendProven(entry: AuditEntry): Promise<string> {
    let refuse: (failure: AuditUnavailable) => void = () => undefined;
    const failed = new Promise<never>((_, reject) => {
      refuse = reject;
    });
    failed.catch(() => undefined); // the race below handles the rejection
    this.#proving.add(refuse);
    try {
      const appended = this.append(entry);
      appended.catch(() => undefined); // a kept outcome may be settled long after the race
      if (this.#outage !== null) throw this.#outage.failure;
      const seq = await Promise.race([appended, failed]);
      const proof = await Promise.race([this.#current().proof(entry, seq), failed]);
      if (proof === null)
        throw new AuditUnavailable('overloaded', 'the record to prove is no longer in memory');
      return proof;
    } finally {
      this.#proving.delete(refuse);
    }
  }

  fingerprint(text: string): string {
    return this.#current().fingerprint(text);
  }

  fingerprintOf(bytes: Uint8Array, start: number, end: number): string {
    return this.#current().fingerprintOf(bytes, start, end);
  }

  stats(): AuditStats {
    const stats = this.#epoch?.stats() ?? {
      ...NOTHING_YET,
      writer: this.#signer.writer,
      sync: this.#options.sync ?? 'disk',
    };
    return { ...stats, gaps: this.#gaps, failure: this.#outage?.failure ?? stats.failure };
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown().finally(() => this.#options.observer?.closed?.());
    return this.#closing;
  }

  #current(): Epoch {
    if (this.#epoch === null) throw this.#outage?.failure ?? new Error('the audit log has not begun');
    return this.#epoch;
  }

  #append(entry: AuditEntry, done: AppendDone): void {
    if (this.#outage !== null) this.#outage.take(entry, done);
    else this.#current().append(entry, done);
  }

  /** Marks the log as failed: from now on, outcomes wait until it works again. */
  #fail(failure: AuditUnavailable, waiting: number): KeepOutcome {
    const lasting = this.#options.afterFailure === 'stay';
    const outage = new LogOutage(failure, waiting, lasting);
    this.#outage = outage;
    for (const refuse of this.#proving) refuse(failure);
    this.#options.observer?.failed(failure);
    if (lasting) void this.#current().leave();
    else void this.#goOn(this.#current());
    return (outcome, done) => outage.takeBack(outcome, done);
  }

  /** Waits for all pending disk operations of `epoch`, then retries until the next epoch has started. */
  async #goOn(epoch: Epoch): Promise<void> {
    const { acknowledged } = epoch;
    const base = await epoch.leave();
    this.#tryAgain((outage) => this.#beginAfter(outage, base, acknowledged));
  }

  #tryAgain(begin: (outage: LogOutage) => Promise<AuditGap>): void {
    const tryIn = (ms: number): void => {
      if (this.#closing !== null) return;
      this.#timer = setTimeout(() => {
        this.#attempt = this.#reopen(begin).then((settled) => {
          this.#attempt = null;
          if (!settled) tryIn(Math.min(2 * ms, REOPEN_MOST_MS));
        });
      }, ms).unref();
    };
    tryIn(this.#options.reopenMs ?? REOPEN_MS);
  }

  /** Returns true if retrying should end, because the log works again or its stored content is damaged. */
  async #reopen(begin: (outage: LogOutage) => Promise<AuditGap>): Promise<boolean> {
    const outage = this.#outage;
    if (outage === null) return true;
    try {
      const gap = await begin(outage);
      this.#outage = null;
      this.#gaps += 1;
      for (const { entry, done } of outage.release()) this.#append(entry, done);
      if (this.#readings === null) this.attend();
      this.#options.observer?.reopened(gap);
      return true;
    } catch (error) {
      if (!(error instanceof AuditDamaged)) return false; // the disk is still failing
      outage.giveUp();
      this.#options.observer?.lost(error);
      return true;
    }
  }

  /** Starts the first epoch. @throws AuditDamaged, or the error of the storage if it still fails */
  async #beginFirst(outage: LogOutage): Promise<AuditGap> {
    const recovered = await this.#store.recover(this.#signer);
    let gap: AuditGap = outage.gap();
    await this.begin(recovered, (place) => {
      gap = outage.gap();
      const [open, ...rest] = openingEvents(place, this.#options, recovered);
      return [...(open === undefined ? [] : [open]), gapEvent(place, this.#options, gap), ...rest];
    });
    return gap;
  }

  /** Starts an epoch after a failed one. @throws AuditDamaged, or the error of the storage if it still fails */
  async #beginAfter(outage: LogOutage, base: LogBase, acknowledged: AcknowledgedTree): Promise<AuditGap> {
    const recovered = await this.#store.recover(this.#signer, { base: { base, open: [] }, acknowledged });
    let gap: AuditGap = outage.gap();
    await this.begin(recovered, (place) => {
      gap = outage.gap();
      return reopeningEvents(place, this.#options, recovered, gap, acknowledged);
    });
    return gap;
  }

  async #shutDown(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#attempt;
    this.#clock?.close();
    await this.#keeper?.close();
    await this.#readings?.close();
    if (this.#outage !== null) {
      this.#outage.giveUp();
      // A pending write could reach the log after the next writer has opened it: keep the lock until the process ends.
      await this.#store.close();
      if (this.#epoch?.busy !== true) this.#release();
      throw this.#outage.failure;
    }
    const epoch = this.#current();
    const { writer, epoch: number } = epoch.stats();
    try {
      await epoch.close(logEvent({ writer, epoch: number, seq: 0 }, this.#options, CLOSING));
    } finally {
      await this.#store.close();
      if (!epoch.busy) this.#release();
    }
  }
}

/** Maximum number of outcomes that wait for the disk; more than the requests a gateway usually has in progress. */
const MOST_OUTCOMES = 10_000;
/** Maximum size of these outcomes, bytes: all of them are appended at once, as one group. */
const MOST_OUTCOME_BYTES = MAX_GROUP_BYTES - 8 * MAX_RECORD_BYTES;
/** The place with the longest encoding. */
const LONGEST_PLACE: RecordPlace = {
  writer: 'w'.repeat(64),
  epoch: Number.MAX_SAFE_INTEGER,
  seq: Number.MAX_SAFE_INTEGER,
};

interface PendingRecord {
  readonly entry: AuditEntry;
  readonly done: AppendDone;
}

/**
 * Handles entries between a disk failure and recovery. Decisions are refused. Outcomes wait, because their decisions
 * are already on disk and the requests have been executed.
 */
class LogOutage {
  readonly failure: AuditUnavailable;
  readonly #since = new Date().toISOString();
  readonly #waiting: PendingRecord[] = [];
  #mostOutcomes: number;
  #bytes = 0;
  #refused: number;
  #lost = 0;

  /**
   * @param refused number of records that were pending at the failure; `takeBack` subtracts the outcomes among them
   * @param lasting true if the log will not reopen, in which case outcomes are refused too
   */
  constructor(failure: AuditUnavailable, refused: number, lasting: boolean) {
    this.failure = failure;
    this.#refused = refused;
    this.#mostOutcomes = lasting ? 0 : MOST_OUTCOMES;
  }

  take(entry: AuditEntry, done: AppendDone): void {
    if (entry.kind === 'outcome') {
      this.#keep(entry, done);
      return;
    }
    this.#refused += 1;
    process.nextTick(done, this.failure, -1);
  }

  /** Queues an outcome that the constructor counted as refused. */
  takeBack(outcome: AuditEntry, done: AppendDone): void {
    this.#refused -= 1;
    this.#keep(outcome, done);
  }

  #keep(outcome: AuditEntry, done: AppendDone): void {
    const record = Buffer.byteLength(encodeRecord(outcome, LONGEST_PLACE));
    const bytes = this.#bytes + FRAME_HEAD + record + FRAME_TAIL;
    if (this.#waiting.length < this.#mostOutcomes && bytes <= MOST_OUTCOME_BYTES) {
      this.#bytes = bytes;
      this.#waiting.push({ entry: { ...outcome, ts: outcome.ts ?? new Date().toISOString() }, done });
      return;
    }
    this.#lost += 1;
    process.nextTick(done, this.failure, -1);
  }

  gap(): AuditGap {
    return Object.freeze({
      since: this.#since,
      until: new Date().toISOString(),
      reason: this.failure.reason,
      cause: causeOf(this.failure),
      refused: this.#refused,
      outcomesKept: this.#waiting.length,
      outcomesLost: this.#lost,
    });
  }

  release(): readonly PendingRecord[] {
    return this.#waiting.splice(0);
  }

  /** Refuses all waiting and later outcomes. */
  giveUp(): void {
    this.#mostOutcomes = 0;
    for (const { done } of this.release()) done(this.failure, -1);
  }
}

/** Message of the underlying system error, or of the log's own error if there is none. */
export function causeOf({ cause, message }: AuditUnavailable): string {
  return cause instanceof Error ? cause.message : message;
}
