import { BackgroundSync } from './background-sync.js';
import type { AuditSync } from './checkpoint.js';
import { CheckpointWriter } from './checkpoint-writer.js';
import { type AppendDone, type AppendRefusal, Chain, CommitGroup, type KeepOutcome } from './commit-group.js';
import { AuditUnavailable, toAuditUnavailable, type UnavailableReason } from './errors.js';
import { leafHash, MAX_RECORD_BYTES } from './format.js';
import { type Frontier, type LogBase, RecentTree } from './frontier.js';
import type { AuditLogOptions, AuditStats } from './interface.js';
import { proofText } from './proof-formats.js';
import {
  type AuditEntry,
  encodeRecord,
  encodeShortened,
  type RecordedStandby,
  type RecordPlace,
  type RecordTemplate,
} from './record.js';
import type { AcknowledgedTree, RecoveredLog } from './recover.js';
import type { Signer } from './signer.js';
import type { LogStore, SegmentStore } from './store.js';

export interface EpochStart {
  readonly options: AuditLogOptions;
  readonly store: LogStore;
  readonly signer: Signer;
  readonly recovered: RecoveredLog;
  /** Returns the first records of the epoch; others are accepted once a durable checkpoint covers these. */
  readonly first: (place: RecordPlace) => readonly AuditEntry[];
  /**
   * Called once when the disk fails, with the number of waiting records. They are refused; if a callback is returned,
   * outcomes among them are passed to it instead.
   */
  readonly failed: (failure: AuditUnavailable, waiting: number) => KeepOutcome | null;
  /** Called with each checkpoint once it is durable. */
  readonly signed: (note: string) => void;
  /** Called after a new segment has been started. */
  readonly rotated: () => void;
}

/**
 * One period in which the log is open, from its first record until it is closed or fails. A failure is final: to
 * continue, the log must be recovered and a new epoch started.
 *
 * Uses group commit: only one write runs at a time, and records that arrive meanwhile share the next one. With
 * `sync: 'disk'` a write returns when it is synced.
 */
export class Epoch {
  readonly #segments: SegmentStore;
  readonly #checkpoints: CheckpointWriter;
  /** Tree of all acknowledged records. */
  readonly #tree: RecentTree;
  /** Newest checkpoint signed for a proof, reused for further proofs while the tree has the same size. */
  #head: { readonly size: number; readonly note: string } | null = null;
  readonly #sync: AuditSync;
  /** Syncs written records later; null if a write returns when it is synced. */
  readonly #background: BackgroundSync | null;
  readonly #place: { -readonly [K in keyof RecordPlace]: RecordPlace[K] };
  readonly #failed: EpochStart['failed'];
  readonly #rotated: EpochStart['rotated'];
  readonly #deadline: NodeJS.Timeout;
  readonly #linger: NodeJS.Timeout;
  #lingering = false;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #checkpointRecords: number;
  /** Position in the log before the current segment. */
  #base: LogBase;
  #filling: CommitGroup;
  #syncing: CommitGroup;
  #busy = false;
  /** Called when a write that was pending at the time of the failure has returned. */
  #returned: () => void = () => undefined;
  #scheduled = false;
  #groups = 0;
  #failure: AuditUnavailable | null = null;
  #refusal: AuditUnavailable | null = null;

  private constructor(
    start: EpochStart,
    segments: SegmentStore,
    checkpoints: CheckpointWriter,
    place: RecordPlace,
  ) {
    const { options, recovered, failed, rotated } = start;
    this.#rotated = rotated;
    this.#segments = segments;
    this.#checkpoints = checkpoints;
    this.#place = { ...place };
    this.#failed = failed;
    this.#tree = new RecentTree(recovered.frontier);
    this.#sync = options.sync ?? 'disk';
    this.#background =
      this.#sync === 'disk'
        ? null
        : new BackgroundSync(
            () => segments.sync(),
            () => this.#tree.size,
            (error) => this.#fail(toAuditUnavailable(error)),
          );
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
      setInterval(() => this.#writeCheckpoint('lasting'), options.checkpointMs ?? 60_000).unref(),
      setInterval(() => this.#writeCheckpoint('newest'), options.renewMs ?? 1_000).unref(),
    ];
  }

  /** @throws AuditUnavailable if the first records cannot be written */
  static async start(start: EpochStart): Promise<Epoch> {
    const { options, store, signer, recovered, signed: told } = start;
    const { signed } = recovered;
    const segments = store.segments(recovered);
    const place = { writer: signer.writer, epoch: recovered.epoch + 1, seq: recovered.seq };
    let checkpoints: CheckpointWriter | null = null;
    try {
      checkpoints = new CheckpointWriter(
        await store.notes(signed.end),
        signer,
        signed,
        options.sync ?? 'disk',
        told,
      );
      // INVARIANT: the first checkpoint is written before the first segment, so a log without a checkpoint is
      // damaged.
      if (signed.newest === -1) await checkpoints.write(recovered.frontier);
      await segments.begin({ ...place, firstSeq: place.seq, chain: recovered.chain }, recovered.frontier);
    } catch (error) {
      await segments.abandon();
      await checkpoints?.close();
      throw toAuditUnavailable(error);
    }
    const epoch = new Epoch(start, segments, checkpoints, place);
    await epoch.#recordFirst(start.first(place));
    return epoch;
  }

  append(entry: AuditEntry, done: AppendDone): void {
    this.#add(entry, done, this.#refusal, entry.kind === 'outcome');
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
    if (this.#refusal) {
      process.nextTick(done, this.#refusal, -1);
      return;
    }
    const record = form.record(this.#place, requestId, statementHmac, rows, durationUs, standby);
    if (record === null) {
      this.append(form.entry(requestId, statementHmac, rows, durationUs, standby), done);
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

  /**
   * Proves that a record of this epoch is in the log, under a signed tree that contains it. Resolves with null if the
   * record is no longer in memory, or is not `entry`; rejects if the log has failed.
   */
  async proof(entry: AuditEntry, seq: number): Promise<string | null> {
    await this.#durableTree();
    if (this.#failure) throw this.#failure;
    const size = this.#background?.durable ?? this.#tree.size;
    const path = this.#tree.pathOf(seq, size);
    if (path === null) return null;
    const place = { ...this.#place, seq };
    const whole = encodeRecord(entry, place);
    const record = Buffer.from(
      Buffer.byteLength(whole) > MAX_RECORD_BYTES ? (encodeShortened(entry, place) ?? whole) : whole,
    );
    if (!this.#tree.leaf(seq)?.equals(leafHash(Buffer.concat([LEAF_PREFIX, record])))) return null;
    if (this.#head?.size !== size)
      this.#head = { size, note: this.#checkpoints.sign(size, this.#tree.rootAt(size)) };
    return proofText(record, seq, path, this.#head.note);
  }

  stats(): Omit<AuditStats, 'gaps'> {
    return {
      writer: this.#place.writer,
      epoch: this.#place.epoch,
      records: this.#place.seq,
      durable: this.#background?.durable ?? this.#tree.size,
      anchored: this.#checkpoints.size,
      sync: this.#sync,
      groups: this.#groups,
      segment: this.#segments.number,
      failure: this.#failure,
    };
  }

  /** Makes all records durable, appends `last`, and writes a final checkpoint. Rejects after a failure. */
  async close(last: AuditEntry): Promise<void> {
    this.#refusal ??= new AuditUnavailable('closed', 'the audit log is closed');
    try {
      if (!this.#failure) {
        await this.#appendPromised(last, null);
        await this.#checkpoints.write(await this.#durableTree());
      }
    } catch (error) {
      this.#fail(toAuditUnavailable(error));
    }
    this.#stopTimers();
    await this.#background?.stop();
    if (this.#failure) throw this.#failure;
    await this.#segments.finish();
    await this.#checkpoints.close();
  }

  /** Tree of all acknowledged records, and how many of them are on disk. */
  get acknowledged(): AcknowledgedTree {
    const { size } = this.#tree;
    return { size, root: this.#tree.root(), durable: this.#background?.durable ?? size };
  }

  /** True while a write is pending. */
  get busy(): boolean {
    return this.#busy;
  }

  /**
   * After a failure: waits until all pending disk operations have returned, then closes the files. Without the wait, a
   * pending write could hit a reused file descriptor or a segment of the next writer.
   */
  async leave(): Promise<LogBase> {
    this.#stopTimers();
    if (this.#busy) {
      await new Promise<void>((resolve) => {
        this.#returned = resolve;
      });
    }
    await this.#background?.stop();
    await this.#checkpoints.settled();
    // Errors on close do not matter: recovery decides what is valid.
    await this.#segments.abandon().catch(() => undefined);
    await this.#checkpoints.close().catch(() => undefined);
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

  /** @param keep true if a disk failure may queue the entry instead of refusing it */
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

  /** @param awaited true if a response is waiting for the record */
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
   * Starts the next write at the end of the current event loop turn, so that all records of the turn share it. A group
   * that contains only outcomes waits up to `LINGER_MS` for the next decision: no response depends on it, and a
   * separate write would delay decisions.
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
    if (this.#background?.overdue === true)
      this.#background.settled().then(() => this.#write(group), this.#written);
    else this.#write(group);
  };

  #write(group: CommitGroup): void {
    // After a failure, all waiting records have been refused.
    if (this.#failure) this.#written(null);
    else if (this.#segments.fits(group.used)) this.#segments.append(group.buffer, group.used, this.#written);
    else this.#nextSegment(group);
  }

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
        // After a failure all waiting records have been refused; the segment stays empty.
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
      this.#fail(toAuditUnavailable(error));
      return;
    }
    const group = this.#syncing;
    this.#groups += 1;
    for (const leaf of group.leaves) this.#tree.push(leaf);
    this.#background?.wrote();
    const { waiting, firstSeq } = group;
    for (let i = 0; i < waiting.length; i += 1) waiting[i]?.(null, firstSeq + i);
    group.clear();
    if (this.#tree.size - this.#checkpoints.lasting >= this.#checkpointRecords)
      this.#writeCheckpoint('lasting');
    this.#schedule();
  };

  #writeCheckpoint(which: 'lasting' | 'newest'): void {
    if (this.#failure) return;
    const sign = (tree: Frontier): Promise<void> =>
      which === 'lasting' ? this.#checkpoints.write(tree) : this.#checkpoints.renew(tree);
    this.#durableTree()
      .then(sign)
      .catch((error: unknown) => this.#fail(toAuditUnavailable(error)));
  }

  /** Syncs all records. INVARIANT: no checkpoint covers a record that a power failure could still remove. */
  async #durableTree(): Promise<Frontier> {
    if (this.#background === null) return this.#tree;
    const tree = this.#tree.copy();
    await this.#background.settled();
    return tree;
  }

  /**
   * Called when a write may have been pending for `deadlineMs`. Fails the log if it is still pending after a grace
   * period, which allows for a process that was suspended before it could read the result.
   */
  #expire(deadlineMs: number): void {
    if (!this.#busy) return;
    const groups = this.#groups;
    const failIfSilent = (): void => {
      if (!this.#busy || this.#groups !== groups) return;
      this.#fail(new AuditUnavailable('deadline', `the audit log's disk is silent for ${deadlineMs} ms`));
    };
    setTimeout(failIfSilent, GRACE_MS).unref();
  }

  /** Fails the epoch. A failed sync is never retried, because the kernel may have dropped the pages. */
  #fail(failure: AuditUnavailable): void {
    if (this.#failure) return;
    this.#failure = failure;
    this.#refusal = failure;
    const keep = this.#failed(failure, this.#syncing.waiting.length + this.#filling.waiting.length);
    for (const group of [this.#syncing, this.#filling]) group.refuse(failure, keep);
  }

  async #recordFirst(entries: readonly AuditEntry[]): Promise<void> {
    try {
      // All together may be larger than a group.
      for (let at = 0; at < entries.length; at += FIRST_AT_ONCE) {
        const some = entries.slice(at, at + FIRST_AT_ONCE);
        await Promise.all(some.map((entry) => this.#appendPromised(entry, null)));
      }
      await this.#checkpoints.write(await this.#durableTree());
    } catch (error) {
      this.#fail(toAuditUnavailable(error));
      await this.leave();
      throw toAuditUnavailable(error);
    }
  }
}

/** Prefix of the data that is hashed for a leaf: a zero byte (RFC 6962). */
const LEAF_PREFIX = Buffer.alloc(1);

/** Maximum time that an outcome waits for a decision with which to share a write, ms. */
const LINGER_MS = 2;

/** Number of first records that are written as one group; even the longest ones fit. */
const FIRST_AT_ONCE = 64;

/** Grace period after the deadline, ms. */
const GRACE_MS = 100;

const REFUSALS = {
  too_long: 'the audit record is longer than 65,535 bytes even without its objects',
  overloaded: 'too many audit records wait for the disk',
} as const satisfies Partial<Record<UnavailableReason, string>>;
