import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ClockWatch, jumpSince } from './clock.js';
import { Epoch } from './epoch.js';
import { AuditDamaged, type AuditUnavailable, unavailable } from './errors.js';
import { FileStore } from './file-store.js';
import { RecordForm } from './form.js';
import type { LogBase } from './frontier.js';
import { LogOutage } from './gap.js';
import type { AppendDone, KeepOutcome } from './group.js';
import type { AuditGap, AuditLog, AuditLogOptions, AuditStats } from './interface.js';
import { RetentionRunner } from './keeper.js';
import { lockDirectory } from './lock.js';
import { ReadEventRecorder } from './readings.js';
import type { AuditEntry, AuditRecord, CommonEntry, RecordPlace } from './record.js';
import { type AcknowledgedTree, CLOSING, type RecoveredLog } from './recover.js';
import { loadSigner, PRIVATE_KEY_FILE, type Signer } from './signer.js';
import { directorySource } from './source.js';
import type { LogStore } from './store.js';

/** Longest wait between two tries to reopen, ms. */
const REOPEN_MOST_MS = 5_000;
const REOPEN_MS = 250;

/**
 * Opens the audit log for writing: takes the lock, checks the whole log, cuts a torn tail, gives every allowed
 * decision without outcome an outcome `unknown`, and signs a checkpoint. The log's own records (`audit.open`,
 * `audit.recover`, `audit.gap`, `audit.close`) are events of the surface `system`.
 *
 * A log that waits opens without all that where its place does not answer, and does it once that answers.
 *
 * @throws AuditLocked if another process writes to the directory
 * @throws AuditDamaged if the log is not what its writer left (a torn tail excepted)
 * @throws AuditUnavailable if the disk does not take the first records
 */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const release = await lockDirectory(options.dir);
  try {
    const fresh = (await directorySource(options.dir).segments()).length === 0;
    const keyFile = options.signingKeyFile ?? join(options.dir, PRIVATE_KEY_FILE);
    const signer = loadSigner(options.dir, keyFile, options.writer, fresh);
    const bytes = options.segmentBytes ?? SEGMENT_BYTES;
    const store = options.store?.(bytes) ?? new FileStore(options.dir, bytes, options.write);
    return await begun(options, store, signer, release);
  } catch (error) {
    release();
    throw error;
  }
}

const SEGMENT_BYTES = 32 * 1024 * 1024;

async function begun(
  options: AuditLogOptions,
  store: LogStore,
  signer: Signer,
  release: () => void,
): Promise<AuditLog> {
  const log = new LastingLog(options, store, signer, release);
  try {
    const recovered = await store.recover(signer);
    await log.begin(recovered, (place) => openingEntries(place, options, recovered));
    log.attend();
    return log;
  } catch (error) {
    if (options.waits !== true || options.afterFailure === 'stay' || error instanceof AuditDamaged) {
      await store.close();
      throw error;
    }
    log.awaitPlace(unavailable(error));
    return log;
  }
}

/** Of a log that waits for the place of its records. */
const NOTHING_YET: Omit<AuditStats, 'writer' | 'gaps'> = Object.freeze({
  epoch: 0,
  records: 0,
  durable: 0,
  anchored: 0,
  groups: 0,
  segment: 0,
  failure: null,
});

/** The log over its epochs: one after another, each begun after the disk had failed the one before. */
class LastingLog implements AuditLog {
  readonly #options: AuditLogOptions;
  readonly #store: LogStore;
  readonly #signer: Signer;
  readonly #release: () => void;
  readonly whenOpen: Promise<void>;
  #opened: () => void = () => undefined;
  /** Null before the first has begun only. */
  #epoch: Epoch | null = null;
  #outage: LogOutage | null = null;
  #gaps = 0;
  #timer: NodeJS.Timeout | null = null;
  /** A try to reopen that is under way. */
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
    // A failure of the first records is the caller's to hear; later ones are the log's own.
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

  /** The place of the records does not answer at the start: what follows is as after a failure. */
  awaitPlace(failure: AuditUnavailable): void {
    this.#outage = new LogOutage(failure, 0, false);
    this.#options.observer?.failed(failure);
    this.#tryAgain((outage) => this.#beginFirst(outage));
  }

  /** It takes records: from now on those of who reads the log too. */
  attend(): void {
    this.#opened();
    const { tenant = '', retention } = this.#options;
    const queue = this.#store.readings;
    const append = (entry: AuditEntry): Promise<number> => this.append(entry);
    this.#readings = new ReadEventRecorder({ tenant, queue, append });
    this.#clock = new ClockWatch((jump) => {
      const { writer, epoch } = this.stats();
      const entry = event({ writer, epoch, seq: 0 }, this.#options, 'audit.clock');
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

  form(common: CommonEntry): RecordForm {
    return new RecordForm(common);
  }

  appendForm(
    form: RecordForm,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    done: AppendDone,
  ): void {
    const outage = this.#outage;
    if (outage !== null) outage.take(form.entry(requestId, statementHmac, rows, durationUs), done);
    else this.#current().appendForm(form, requestId, statementHmac, rows, durationUs, done);
  }

  fingerprint(text: string): string {
    return this.#current().fingerprint(text);
  }

  fingerprintOf(bytes: Uint8Array, start: number, end: number): string {
    return this.#current().fingerprintOf(bytes, start, end);
  }

  stats(): AuditStats {
    const stats = this.#epoch?.stats() ?? { ...NOTHING_YET, writer: this.#signer.writer };
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

  /** From here on an outcome that is under way waits for the log to go on. */
  #fail(failure: AuditUnavailable, waiting: number): KeepOutcome {
    const lasting = this.#options.afterFailure === 'stay';
    const outage = new LogOutage(failure, waiting, lasting);
    this.#outage = outage;
    this.#options.observer?.failed(failure);
    if (lasting) void this.#current().leave();
    else void this.#goOn(this.#current());
    return (outcome, done) => outage.takeBack(outcome, done);
  }

  /** Once the disk has answered what `epoch` asked, tries to begin the next one, until it is begun. */
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

  /** True if there is nothing more to try: the log goes on, or what the disk holds is damaged. */
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
      if (!(error instanceof AuditDamaged)) return false; // the disk is not well yet
      outage.giveUp();
      this.#options.observer?.lost(error);
      return true;
    }
  }

  /** @throws AuditDamaged; anything else is the place's */
  async #beginFirst(outage: LogOutage): Promise<AuditGap> {
    const recovered = await this.#store.recover(this.#signer);
    let gap: AuditGap = outage.gap();
    await this.begin(recovered, (place) => {
      gap = outage.gap();
      const [open, ...rest] = openingEntries(place, this.#options, recovered);
      return [...(open === undefined ? [] : [open]), gapEntry(place, this.#options, gap), ...rest];
    });
    return gap;
  }

  /** @throws AuditDamaged; anything else is the disk's */
  async #beginAfter(outage: LogOutage, base: LogBase, acknowledged: AcknowledgedTree): Promise<AuditGap> {
    const recovered = await this.#store.recover(this.#signer, { base: { base, open: [] }, acknowledged });
    let gap: AuditGap = outage.gap();
    await this.begin(recovered, (place) => {
      gap = outage.gap();
      return reopeningEntries(place, this.#options, recovered, gap, acknowledged.size);
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
      // A write that is still under way could reach a successor's log: then the lock ends with the process.
      await this.#store.close();
      if (this.#epoch?.busy !== true) this.#release();
      throw this.#outage.failure;
    }
    const epoch = this.#current();
    const { writer, epoch: number } = epoch.stats();
    try {
      await epoch.close(event({ writer, epoch: number, seq: 0 }, this.#options, CLOSING));
    } finally {
      await this.#store.close();
      if (!epoch.busy) this.#release();
    }
  }
}

/**
 * After a stop out of order the records that no checkpoint covered are proved by their chain alone, which holds no key:
 * whoever could write to the disk may have cut or made them. The checkpoint that follows covers them, so it is said
 * first, for good, which they are.
 */
function openingEntries(
  place: RecordPlace,
  options: AuditLogOptions,
  { cut, orphans, unclean, seq, signed, ts }: RecoveredLog,
): readonly AuditEntry[] {
  const from = Math.max(0, signed.newest);
  const jump = ts === null ? null : jumpSince(ts);
  return [
    event(place, options, 'audit.open'),
    ...(jump === null ? [] : [{ ...event(place, options, 'audit.clock'), detail: JSON.stringify(jump) }]),
    ...(unclean || seq > from ? [recovery(place, options, cut, { from, to: seq })] : []),
    ...orphans.map((decision) => outcomeOf(decision, 'unknown', null)),
  ];
}

/**
 * First entries after a gap. Of the records that were under way when the disk failed some may have reached it: they
 * stay, and the allowed ones among them, which were refused after all, say so.
 */
function reopeningEntries(
  place: RecordPlace,
  options: AuditLogOptions,
  { cut, orphans, seq }: RecoveredLog,
  gap: AuditGap,
  durable: number,
): readonly AuditEntry[] {
  const refused = orphans.filter((decision) => decision.seq >= durable);
  return [
    gapEntry(place, options, gap),
    // The writer itself vouches for what it acknowledged.
    ...(cut !== null || seq > durable ? [recovery(place, options, cut, { from: durable, to: seq })] : []),
    ...refused.map((decision) => outcomeOf(decision, 'error', REFUSED)),
  ];
}

function gapEntry(place: RecordPlace, options: AuditLogOptions, gap: AuditGap): AuditEntry {
  return { ...event(place, options, 'audit.gap'), detail: JSON.stringify(gap) };
}

/** Says which records were found that nothing had vouched for, and what was cut off after them. */
function recovery(
  place: RecordPlace,
  options: AuditLogOptions,
  cut: string | null,
  unanchored: { readonly from: number; readonly to: number },
): AuditEntry {
  const objects = cut === null ? [] : [cut];
  return { ...event(place, options, 'audit.recover'), objects, detail: JSON.stringify(unanchored) };
}

/** The code of the catalogue for what could not be recorded. */
const REFUSED = 'E5030';

function event({ writer, epoch }: RecordPlace, { tenant = '' }: AuditLogOptions, action: string): AuditEntry {
  return { kind: 'event', request_id: `${writer}.${epoch}`, tenant, surface: 'system', action };
}

function outcomeOf(decision: AuditRecord, outcome: 'unknown' | 'error', code: string | null): AuditEntry {
  const {
    writer: _writer,
    epoch: _epoch,
    seq: _seq,
    objects_omitted: _omitted,
    ts: _ts,
    ...request
  } = decision;
  return {
    ...request,
    kind: 'outcome',
    decision: null,
    outcome,
    rows: null,
    duration_us: null,
    ...(code !== null && { code }),
  };
}
