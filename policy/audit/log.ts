import { mkdirSync, write as writeAt } from 'node:fs';
import { join } from 'node:path';
import { Anchors } from './anchors.js';
import { AuditUnavailable, type UnavailableReason, unavailable } from './errors.js';
import type { Frontier } from './frontier.js';
import { type AppendDone, Group } from './group.js';
import type { AuditLog, AuditLogOptions, AuditStats } from './interface.js';
import { lockDirectory } from './lock.js';
import {
  type AuditEntry,
  type AuditRecord,
  encodeRecord,
  encodeShortened,
  type RecordPlace,
} from './record.js';
import { listSegments, type Recovered, recoverLog } from './recover.js';
import { Segments } from './segments.js';
import { loadSigner, PRIVATE_KEY_FILE, type Signer } from './signer.js';

/**
 * Opens the audit log for writing: takes the lock, checks the whole log, cuts a torn tail, gives every allowed
 * decision without outcome an outcome `unknown`, and signs a checkpoint. The log's own records (`audit.open`,
 * `audit.recover`, `audit.close`) are events of the surface `system`.
 *
 * @throws AuditLocked if another process writes to the directory
 * @throws AuditDamaged if the log is not what its writer left (a torn tail excepted)
 * @throws AuditUnavailable if the disk does not take the first records
 */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const release = lockDirectory(options.dir);
  let signer: Signer;
  let recovered: Recovered;
  try {
    const fresh = listSegments(options.dir).length === 0;
    const keyFile = options.signingKeyFile ?? join(options.dir, PRIVATE_KEY_FILE);
    signer = loadSigner(options.dir, keyFile, options.writer, fresh);
    recovered = recoverLog(options.dir, signer);
  } catch (error) {
    release();
    throw error;
  }
  return SegmentLog.start(options, signer, recovered, release);
}

/** Group commit: records that arrive while a sync runs share the next one; one sync at a time. */
class SegmentLog implements AuditLog {
  readonly #options: AuditLogOptions;
  readonly #segments: Segments;
  readonly #anchors: Anchors;
  readonly #tree: Frontier;
  readonly #place: { -readonly [K in keyof RecordPlace]: RecordPlace[K] };
  readonly #release: () => void;
  readonly #deadline: NodeJS.Timeout;
  readonly #anchorTimer: NodeJS.Timeout;
  readonly #checkpointRecords: number;
  #chain: Buffer;
  #filling = new Group();
  #syncing = new Group();
  #busy = false;
  #scheduled = false;
  #groups = 0;
  #failure: AuditUnavailable | null = null;
  #refusal: AuditUnavailable | null = null;
  #closed: Promise<void> | null = null;

  private constructor(
    options: AuditLogOptions,
    segments: Segments,
    anchors: Anchors,
    place: RecordPlace,
    recovered: Recovered,
    release: () => void,
  ) {
    this.#options = options;
    this.#segments = segments;
    this.#anchors = anchors;
    this.#place = { ...place };
    this.#tree = recovered.frontier;
    this.#chain = recovered.chain;
    this.#release = release;
    this.#checkpointRecords = options.checkpointRecords ?? 10_000;
    const deadlineMs = options.deadlineMs ?? 5_000;
    this.#deadline = setTimeout(() => this.#expire(deadlineMs), deadlineMs).unref();
    this.#anchorTimer = setInterval(() => this.#anchor(), options.checkpointMs ?? 60_000).unref();
  }

  static async start(
    options: AuditLogOptions,
    signer: Signer,
    recovered: Recovered,
    release: () => void,
  ): Promise<SegmentLog> {
    const write = options.write ?? writeAt;
    const size = recovered.checkpoint?.size ?? -1;
    const anchors = await Anchors.open(options.dir, signer, write, recovered.checkpointsEnd, size);
    const segments = new Segments(
      options.dir,
      options.segmentBytes ?? 32 * 1024 * 1024,
      recovered.segment,
      write,
    );
    const place = { writer: signer.writer, epoch: recovered.epoch + 1, seq: recovered.seq };
    try {
      // INVARIANT: the first checkpoint is older than the first segment, so a log without one is damaged.
      if (size === -1) await anchors.write(recovered.frontier);
      await segments.begin({
        writer: place.writer,
        epoch: place.epoch,
        firstSeq: place.seq,
        chain: recovered.chain,
      });
    } catch (error) {
      await segments.abandon();
      await anchors.close();
      release();
      throw unavailable(error);
    }
    const log = new SegmentLog(options, segments, anchors, place, recovered, release);
    await log.#recordOpening(recovered);
    return log;
  }

  append(entry: AuditEntry): Promise<number>;
  append(entry: AuditEntry, done: AppendDone): void;
  append(entry: AuditEntry, done?: AppendDone): Promise<number> | undefined {
    if (done) {
      this.#add(entry, done, this.#refusal);
      return undefined;
    }
    return this.#appendPromised(entry, this.#refusal);
  }

  fingerprint(text: string): string {
    return this.#segments.fingerprint(text);
  }

  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  stats(): AuditStats {
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

  #appendPromised(entry: AuditEntry, refusal: AuditUnavailable | null): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#add(entry, (error, seq) => (error ? reject(error) : resolve(seq)), refusal);
    });
  }

  #add(entry: AuditEntry, done: AppendDone, refusal: AuditUnavailable | null): void {
    if (refusal) {
      process.nextTick(done, refusal, -1);
      return;
    }
    const { seq } = this.#place;
    let chain = this.#filling.add(encodeRecord(entry, this.#place), this.#chain, seq, done);
    if (chain === 'too_long') {
      const shortened = encodeShortened(entry, this.#place);
      if (shortened !== null) chain = this.#filling.add(shortened, this.#chain, seq, done);
    }
    if (typeof chain === 'string') {
      process.nextTick(done, new AuditUnavailable(chain, REFUSALS[chain]), -1);
      return;
    }
    this.#chain = chain;
    this.#place.seq += 1;
    this.#schedule();
  }

  /** Waits for the end of the event loop's turn, so that all records of the turn share the sync. */
  #schedule(): void {
    if (this.#busy || this.#scheduled || this.#filling.used === 0) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

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
    const { writer, epoch } = this.#place;
    this.#segments.begin({ writer, epoch, firstSeq: group.firstSeq, chain: group.chainBefore }).then(
      () => this.#segments.append(group.buffer, group.used, this.#written),
      (error: unknown) => this.#written(error),
    );
  };

  readonly #written = (error: unknown): void => {
    this.#busy = false;
    if (this.#failure) return;
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
    if (this.#tree.size - this.#anchors.size >= this.#checkpointRecords) this.#anchor();
    this.#schedule();
  };

  #anchor(): void {
    if (this.#failure) return;
    this.#anchors.write(this.#tree).catch((error: unknown) => this.#fail(unavailable(error)));
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
    for (const group of [this.#syncing, this.#filling]) {
      for (const done of group.waiting) process.nextTick(done, failure, -1);
      // What the kernel may still read must not change, so the buffer is left behind, not reused.
      group.waiting.length = 0;
    }
  }

  async #recordOpening(recovered: Recovered): Promise<void> {
    const { cut, orphans } = recovered;
    const events = [this.#event('audit.open', [])];
    if (cut !== null) events.push(this.#event('audit.recover', [cut]));
    const entries = [...events, ...orphans.map(outcomeUnknown)];
    try {
      await Promise.all(entries.map((entry) => this.#appendPromised(entry, null)));
      await this.#anchors.write(this.#tree);
    } catch (error) {
      this.#fail(unavailable(error));
      await this.close().catch(() => undefined);
      throw unavailable(error);
    }
  }

  #event(action: string, objects: readonly string[]): AuditEntry {
    const { writer, epoch } = this.#place;
    const tenant = this.#options.tenant ?? '';
    return { kind: 'event', request_id: `${writer}.${epoch}`, tenant, surface: 'system', action, objects };
  }

  async #shutDown(): Promise<void> {
    clearInterval(this.#anchorTimer);
    this.#refusal ??= new AuditUnavailable('closed', 'the audit log is closed');
    try {
      if (!this.#failure) {
        await this.#appendPromised(this.#event('audit.close', []), null);
        await this.#anchors.write(this.#tree);
      }
    } catch (error) {
      this.#fail(unavailable(error));
    }
    clearTimeout(this.#deadline);
    // A write still under way could land in whatever reuses its descriptor, and in a successor's log.
    if (!this.#busy) {
      await (this.#failure ? this.#segments.abandon() : this.#segments.finish());
      await this.#anchors.close();
      this.#release();
    }
    if (this.#failure) throw this.#failure;
  }
}

/** Wait after the deadline, ms: many turns of the event loop. */
const GRACE_MS = 100;

const REFUSALS = {
  too_long: 'the audit record is longer than 65,535 bytes even without its objects',
  overloaded: 'too many audit records wait for the disk',
} as const satisfies Partial<Record<UnavailableReason, string>>;

function outcomeUnknown(decision: AuditRecord): AuditEntry {
  const {
    writer: _writer,
    epoch: _epoch,
    seq: _seq,
    objects_omitted: _omitted,
    ts: _ts,
    ...request
  } = decision;
  return { ...request, kind: 'outcome', outcome: 'unknown', rows: null, duration_us: null };
}
