import { Anchors } from './anchors.js';
import { AuditUnavailable, type UnavailableReason, unavailable } from './errors.js';
import type { RecordForm } from './form.js';
import type { Frontier, LogBase } from './frontier.js';
import { type AppendDone, type AppendRefusal, Chain, CommitGroup, type KeepOutcome } from './group.js';
import type { AuditLogOptions, AuditStats } from './interface.js';
import { type AuditEntry, encodeRecord, encodeShortened, type RecordPlace } from './record.js';
import type { AcknowledgedTree, RecoveredLog } from './recover.js';
import type { Signer } from './signer.js';
import type { LogStore, SegmentStore } from './store.js';

/** Input of a new epoch. */
export interface EpochStart {
  readonly options: AuditLogOptions;
  readonly store: LogStore;
  readonly signer: Signer;
  readonly recovered: RecoveredLog;
  /** Its first records; they are durable, and under a checkpoint, before it takes any other. */
  readonly first: (place: RecordPlace) => readonly AuditEntry[];
  /**
   * Called once, at the moment when it takes nothing more because of the disk; `waiting` records are refused by it,
   * but for the outcomes among them, if somebody keeps those.
   */
  readonly failed: (failure: AuditUnavailable, waiting: number) => KeepOutcome | null;
  /** Hears each checkpoint once it is durable. */
  readonly signed: (note: string) => void;
  /** Hears that a segment is complete, and another begun. */
  readonly rotated: () => void;
}

/**
 * One opening of the log, from its first record to its close or its failure, which is final: who wants to go on
 * recovers the log and begins another.
 *
 * Group commit: records that arrive while a sync runs share the next one; one sync at a time.
 */
export class Epoch {
  readonly #segments: SegmentStore;
  readonly #anchors: Anchors;
  readonly #tree: Frontier;
  readonly #place: { -readonly [K in keyof RecordPlace]: RecordPlace[K] };
  readonly #failed: EpochStart['failed'];
  readonly #rotated: EpochStart['rotated'];
  readonly #deadline: NodeJS.Timeout;
  readonly #linger: NodeJS.Timeout;
  #lingering = false;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #checkpointRecords: number;
  /** Position before the segment that is being written. */
  #base: LogBase;
  #filling: CommitGroup;
  #syncing: CommitGroup;
  #busy = false;
  /** Called when a write that was under way at the failure has come back. */
  #returned: () => void = () => undefined;
  #scheduled = false;
  #groups = 0;
  #failure: AuditUnavailable | null = null;
  #refusal: AuditUnavailable | null = null;

  private constructor(start: EpochStart, segments: SegmentStore, anchors: Anchors, place: RecordPlace) {
    const { options, recovered, failed, rotated } = start;
    this.#rotated = rotated;
    this.#segments = segments;
    this.#anchors = anchors;
    this.#place = { ...place };
    this.#failed = failed;
    this.#tree = recovered.frontier.copy();
    const { segment, epoch, seq, chain, frontier } = recovered;
    this.#base = { segment, epoch, seq, chain, frontier };
    const records = new Chain(recovered.chain);
    this.#filling = new CommitGroup(records);
    this.#syncing = new CommitGroup(records);
    this.#checkpointRecords = options.checkpointRecords ?? 10_000;
    const deadlineMs = options.deadlineMs ?? 5_000;
    this.#deadline = setTimeout(() => this.#expire(deadlineMs), deadlineMs).unref();
    this.#linger = setTimeout(this.#lingered, LINGER_MS);
    this.#timers = [
      setInterval(() => this.#anchor('lasting'), options.checkpointMs ?? 60_000).unref(),
      setInterval(() => this.#anchor('newest'), options.renewMs ?? 1_000).unref(),
    ];
  }

  /** @throws AuditUnavailable if the disk does not take the first records */
  static async start(start: EpochStart): Promise<Epoch> {
    const { store, signer, recovered, signed: told } = start;
    const { signed } = recovered;
    const segments = store.segments(recovered);
    const place = { writer: signer.writer, epoch: recovered.epoch + 1, seq: recovered.seq };
    let anchors: Anchors | null = null;
    try {
      anchors = new Anchors(await store.notes(signed.end), signer, signed, told);
      // INVARIANT: the first checkpoint is older than the first segment, so a log without one is damaged.
      if (signed.newest === -1) await anchors.write(recovered.frontier);
      await segments.begin({ ...place, firstSeq: place.seq, chain: recovered.chain }, recovered.frontier);
    } catch (error) {
      await segments.abandon();
      await anchors?.close();
      throw unavailable(error);
    }
    const epoch = new Epoch(start, segments, anchors, place);
    await epoch.#recordFirst(start.first(place));
    return epoch;
  }

  append(entry: AuditEntry, done: AppendDone): void {
    this.#add(entry, done, this.#refusal, entry.kind === 'outcome');
  }

  /** As `append` of the whole entry; the same bytes. */
  appendForm(
    form: RecordForm,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    done: AppendDone,
  ): void {
    if (this.#refusal) {
      process.nextTick(done, this.#refusal, -1);
      return;
    }
    const record = form.record(this.#place, requestId, statementHmac, rows, durationUs);
    if (record === null) {
      this.append(form.entry(requestId, statementHmac, rows, durationUs), done);
      return;
    }
    const outcome = form.kind === 'outcome' ? form : null;
    const refused = this.#filling.addBytes(record, this.#place.seq, done, outcome);
    this.#added(refused, done, outcome === null);
  }

  fingerprint(text: string): string {
    return this.#segments.fingerprint(text);
  }

  fingerprintOf(bytes: Uint8Array, start: number, end: number): string {
    return this.#segments.fingerprintOf(bytes, start, end);
  }

  stats(): Omit<AuditStats, 'gaps'> {
    return {
      writer: this.#place.writer,
      epoch: this.#place.epoch,
      records: this.#place.seq,
      durable: this.#tree.size,
      anchored: this.#anchors.size,
      groups: this.#groups,
      segment: this.#segments.number,
      failure: this.#failure,
    };
  }

  /** Makes all that was appended durable with a last record, and signs a last checkpoint. Rejects if it failed. */
  async close(last: AuditEntry): Promise<void> {
    this.#refusal ??= new AuditUnavailable('closed', 'the audit log is closed');
    try {
      if (!this.#failure) {
        await this.#appendPromised(last, null);
        await this.#anchors.write(this.#tree);
      }
    } catch (error) {
      this.#fail(unavailable(error));
    }
    this.#stopTimers();
    if (this.#failure) throw this.#failure;
    await this.#segments.finish();
    await this.#anchors.close();
  }

  /** Records that this process knows to be durable, whatever is later found on disk. */
  get acknowledged(): AcknowledgedTree {
    return { size: this.#tree.size, root: this.#tree.root() };
  }

  /** True if a write is under way that the disk has not answered. */
  get busy(): boolean {
    return this.#busy;
  }

  /**
   * After a failure: waits until the disk has answered all that it was asked, however late, and lets go of the files.
   * A write still under way could land in whatever reuses its descriptor, or in a successor's segment.
   */
  async leave(): Promise<LogBase> {
    this.#stopTimers();
    if (this.#busy) {
      await new Promise<void>((resolve) => {
        this.#returned = resolve;
      });
    }
    await this.#anchors.settled();
    // A disk that fails to close a file has failed already; recovery judges what is there.
    await this.#segments.abandon().catch(() => undefined);
    await this.#anchors.close().catch(() => undefined);
    return this.#base;
  }

  #stopTimers(): void {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#deadline);
    clearTimeout(this.#linger);
  }

  #appendPromised(entry: AuditEntry, refusal: AuditUnavailable | null): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#add(entry, (error, seq) => (error ? reject(error) : resolve(seq)), refusal, false);
    });
  }

  /** @param keep whether a failure of the disk may keep the entry, instead of refusing it */
  #add(entry: AuditEntry, done: AppendDone, refusal: AuditUnavailable | null, keep: boolean): void {
    if (refusal) {
      process.nextTick(done, refusal, -1);
      return;
    }
    const { seq } = this.#place;
    const outcome = keep ? entry : null;
    let refused = this.#filling.add(encodeRecord(entry, this.#place), seq, done, outcome);
    if (refused === 'too_long') {
      const shortened = encodeShortened(entry, this.#place);
      if (shortened !== null) refused = this.#filling.add(shortened, seq, done, outcome);
    }
    this.#added(refused, done, !keep);
  }

  /** @param awaited whether an answer waits for the record */
  #added(refused: AppendRefusal | null, done: AppendDone, awaited: boolean): void {
    if (refused !== null) {
      process.nextTick(done, new AuditUnavailable(refused, REFUSALS[refused]), -1);
      return;
    }
    if (awaited) this.#filling.awaited = true;
    this.#place.seq += 1;
    this.#schedule();
  }

  /**
   * Waits for the end of the event loop's turn, so that all records of the turn share the sync. Outcomes alone wait for
   * the next decision, if one comes soon: nobody's answer depends on them, and a sync for them would be in its way.
   */
  #schedule(): void {
    if (this.#busy || this.#scheduled || this.#filling.used === 0) return;
    if (!this.#filling.awaited) {
      if (!this.#lingering) this.#linger.refresh();
      this.#lingering = true;
      return;
    }
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #lingered = (): void => {
    this.#lingering = false;
    if (!this.#busy && !this.#scheduled && this.#filling.used > 0) this.#flush();
  };

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#failure) return;
    const group = this.#filling;
    this.#filling = this.#syncing;
    this.#syncing = group;
    this.#busy = true;
    this.#deadline.refresh();
    if (this.#segments.fits(group.used)) {
      this.#segments.append(group.buffer, group.used, this.#written);
      return;
    }
    this.#nextSegment(group);
  };

  #nextSegment(group: CommitGroup): void {
    const { writer, epoch } = this.#place;
    const { number: segment } = this.#segments;
    const { firstSeq } = group;
    const chain = Buffer.from(group.chainBefore, 'latin1');
    const base = { segment, epoch, seq: firstSeq, chain, frontier: this.#tree.copy() };
    this.#segments.begin({ writer, epoch, firstSeq, chain }, base.frontier).then(
      () => {
        this.#base = base;
        this.#rotated();
        // Whoever waits for the disk has been refused by now; the segment stays empty.
        if (this.#failure) this.#written(null);
        else this.#segments.append(group.buffer, group.used, this.#written);
      },
      (error: unknown) => this.#written(error),
    );
  }

  readonly #written = (error: unknown): void => {
    this.#busy = false;
    if (this.#failure) {
      this.#returned();
      return;
    }
    if (error) {
      this.#fail(unavailable(error));
      return;
    }
    const group = this.#syncing;
    this.#groups += 1;
    for (const leaf of group.leaves) this.#tree.push(leaf);
    const { waiting, firstSeq } = group;
    for (let i = 0; i < waiting.length; i += 1) waiting[i]?.(null, firstSeq + i);
    group.clear();
    if (this.#tree.size - this.#anchors.lasting >= this.#checkpointRecords) this.#anchor('lasting');
    this.#schedule();
  };

  #anchor(which: 'lasting' | 'newest'): void {
    if (this.#failure) return;
    const signing = which === 'lasting' ? this.#anchors.write(this.#tree) : this.#anchors.renew(this.#tree);
    signing.catch((error: unknown) => this.#fail(unavailable(error)));
  }

  /**
   * The process may have stood still itself, and the disk's answer wait to be read; so what is still under way is
   * given a moment of running time before it counts as hanging.
   */
  #expire(deadlineMs: number): void {
    if (!this.#busy) return;
    const groups = this.#groups;
    const judge = (): void => {
      if (!this.#busy || this.#groups !== groups) return;
      this.#fail(new AuditUnavailable('deadline', `the audit log's disk is silent for ${deadlineMs} ms`));
    };
    setTimeout(judge, GRACE_MS).unref();
  }

  /** Final: a failed sync is never tried again, since the kernel may have dropped the pages. */
  #fail(failure: AuditUnavailable): void {
    if (this.#failure) return;
    this.#failure = failure;
    this.#refusal = failure;
    const keep = this.#failed(failure, this.#syncing.waiting.length + this.#filling.waiting.length);
    for (const group of [this.#syncing, this.#filling]) group.refuse(failure, keep);
  }

  async #recordFirst(entries: readonly AuditEntry[]): Promise<void> {
    try {
      await Promise.all(entries.map((entry) => this.#appendPromised(entry, null)));
      await this.#anchors.write(this.#tree);
    } catch (error) {
      this.#fail(unavailable(error));
      await this.leave();
      throw unavailable(error);
    }
  }
}

/** Longest that an outcome waits for a decision to share its sync with, ms. */
const LINGER_MS = 2;

/** Wait after the deadline, ms: many turns of the event loop. */
const GRACE_MS = 100;

const REFUSALS = {
  too_long: 'the audit record is longer than 65,535 bytes even without its objects',
  overloaded: 'too many audit records wait for the disk',
} as const satisfies Partial<Record<UnavailableReason, string>>;
