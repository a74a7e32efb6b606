import { setImmediate as nextTurn } from 'node:timers/promises';
import { openCheckpoint, retentionLines, splitNotes, type VerifierKey } from './checkpoint.js';
import { AuditDamaged, AuditUnavailable } from './errors.js';
import {
  chainHash,
  decodeHeader,
  frameAt,
  leafHash,
  type RecordFrame,
  segmentName,
  usedEnd,
} from './format.js';
import type { Frontier, LogBase } from './frontier.js';
import type { AuditEntry } from './record.js';
import { beginningOf } from './recover.js';
import type { Signer } from './signer.js';
import type { LogSource } from './source.js';
import type { LogStore, RetirementPlan } from './store.js';

/** Retention period of records, and the destination of expired ones. */
export interface Retention {
  /** Age at which a record expires, ms. A segment expires with the newest of its records. */
  readonly ms: number;
  /** Directory to which expired segment files are copied; null if they are only deleted. */
  readonly archive: string | null;
}

const FRAMES_A_TURN = 256;

/**
 * Finds the oldest complete segments whose records are all older than `before`. Verifies them again, up to the first
 * checkpoint after them, so that the retention note covers only signed records.
 *
 * @returns null if no segment has expired, or no checkpoint follows the expired ones
 * @throws AuditDamaged if the segments differ from what was signed
 */
async function expiredSegments(
  source: LogSource,
  key: VerifierKey,
  before: string,
): Promise<RetirementPlan | null> {
  const start = await beginningOf(source, key);
  const numbers = (await source.segments()).filter((number) => number > start.base.segment);
  let [expired, until] = [0, ''];
  for (const [i, number] of numbers.slice(0, -1).entries()) {
    const latest = latestTime(await source.segment(number, false), before);
    if (latest >= before) break;
    // A failed start leaves a segment without records, which expires with the next one that has some.
    if (latest !== '') expired = i + 1;
    if (latest > until) until = latest;
  }
  const old = numbers.slice(0, expired);
  if (expired === 0) return null;
  const roots = await signedRoots(source, key);
  const walk = new VerifyingReader(source.place, start.base, roots);
  let base: LogBase | null = null;
  for (const number of numbers) {
    await walk.read(number, await source.segment(number, number === numbers.at(-1)), base !== null);
    if (number === old.at(-1)) base = walk.place(number);
    if (base !== null && walk.vouched >= base.seq) return { segments: old, base, until };
  }
  return null; // no checkpoint after them yet
}

/**
 * Returns the segments that the retention note covers and that are still there, since their deletion failed or was
 * interrupted; null if there are none. Rows of a table are not deleted by the gateway.
 */
async function leftSegments(source: LogSource, key: VerifierKey): Promise<RetirementPlan | null> {
  if (source.dir === null) return null;
  const { base } = await beginningOf(source, key);
  const segments = (await source.segments()).filter((number) => number <= base.segment);
  const last = segments.at(-1);
  if (last === undefined) return null;
  return { segments, base, until: latestTime(await source.segment(last, false)) };
}

/** Returns the signed retention note, which ends in an empty line. */
function retentionNote(signer: Signer, { base }: RetirementPlan): Buffer {
  const roots = base.frontier.roots.map((root) => Buffer.from(root, 'latin1'));
  const lines = retentionLines(base.segment + 1, base.epoch, base.chain, roots);
  return Buffer.from(`${signer.sign(base.seq, base.frontier.root(), new Date().toISOString(), lines)}\n`);
}

async function signedRoots(source: LogSource, key: VerifierKey): Promise<ReadonlyMap<number, Buffer>> {
  const files = [await source.checkpoints(), await source.latest()];
  const notes = files.flatMap((file) => splitNotes(file).notes);
  const checkpoints = notes.flatMap((note) => openCheckpoint(note, key) ?? []);
  return new Map(checkpoints.map(({ size, root }) => [size, root]));
}

class VerifyingReader {
  /** Number of records covered by the last checkpoint that was reached and verified. */
  vouched: number;
  readonly #place: string;
  readonly #roots: ReadonlyMap<number, Buffer>;
  readonly #tree: Frontier;
  #chain: Buffer;
  #epoch: number;

  constructor(place: string, base: LogBase, roots: ReadonlyMap<number, Buffer>) {
    this.#place = place;
    this.#roots = roots;
    this.#tree = base.frontier.copy();
    this.#chain = base.chain;
    this.#epoch = base.epoch;
    this.vouched = base.seq;
  }

  /** @param briefly true to stop at the first checkpoint that is reached */
  async read(number: number, bytes: Buffer, briefly: boolean): Promise<void> {
    const header = decodeHeader(bytes);
    const fits = header?.header.firstSeq === this.#tree.size && header.header.chain.equals(this.#chain);
    if (!header || !fits) this.#damaged(number, 0, 'the segment does not follow the one before it');
    this.#epoch = header.header.epoch;
    const end = usedEnd(bytes);
    let read = 0;
    for (let frame = frameAt(bytes, header.end, end); frame; frame = frameAt(bytes, frame.next, end)) {
      if (++read % FRAMES_A_TURN === 0) await nextTurn();
      this.#take(number, frame);
      if (briefly && this.vouched === this.#tree.size) return;
    }
  }

  place(segment: number): LogBase {
    return {
      segment,
      epoch: this.#epoch,
      seq: this.#tree.size,
      chain: this.#chain,
      frontier: this.#tree.copy(),
    };
  }

  #take(number: number, frame: RecordFrame): void {
    const leaf = leafHash(frame.leafInput);
    this.#chain = chainHash(this.#chain, leaf);
    if (!this.#chain.equals(frame.chain))
      this.#damaged(number, frame.at, 'the record does not follow the chain');
    this.#tree.push(leaf.toString('latin1'));
    const root = this.#roots.get(this.#tree.size);
    if (root === undefined) return;
    if (!root.equals(this.#tree.root()))
      this.#damaged(number, frame.at, 'the records are not those that were signed');
    this.vouched = this.#tree.size;
  }

  #damaged(segment: number, offset: number, why: string): never {
    throw new AuditDamaged(`${this.#place}/${segmentName(segment)}`, offset, this.#tree.size, why);
  }
}

const TIME = Buffer.from(',"ts":"');

/**
 * Returns the latest time of the records in a segment; empty if it has none. Stops at the first record that is not
 * older than `before`.
 */
function latestTime(bytes: Buffer, before = '~'): string {
  const end = usedEnd(bytes);
  let latest = '';
  for (
    let frame = frameAt(bytes, decodeHeader(bytes)?.end ?? end, end);
    frame !== null && latest < before;
    frame = frameAt(bytes, frame.next, end)
  ) {
    // Canonical JSON escapes the quotes in strings, so only the member itself begins like this.
    const start = frame.record.indexOf(TIME) + TIME.length;
    const time = frame.record.toString('latin1', start, frame.record.indexOf('"', start));
    if (time > latest) latest = time;
  }
  return latest;
}

const LOOK_MS = 3_600_000;

interface RetentionLog {
  readonly store: LogStore;
  readonly signer: Signer;
  readonly retention: Retention;
  readonly tenant: string;
  append(entry: AuditEntry): Promise<number>;
  /** True if the wall clock has not jumped since the log was opened. After a jump, nothing is deleted. */
  steady(): boolean;
  /** Called if expired records could not be deleted. */
  refused(why: Error): void;
}

/** Deletes expired segments in three steps: sign a note about them, record the deletion, delete the files. */
export class RetentionRunner {
  readonly #log: RetentionLog;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  #closed = false;
  /** First record kept after the last deletion that this process has recorded; null if it has recorded none. */
  #recorded: number | null = null;

  constructor(log: RetentionLog) {
    this.#log = log;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
    this.look();
  }

  look(): void {
    if (this.#closed || !this.#log.steady()) return;
    this.#running ??= this.#keep().finally(() => {
      this.#running = null;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #keep(): Promise<void> {
    const { store, signer, retention } = this.#log;
    try {
      const left = await leftSegments(store.source, signer.verifier);
      if (left !== null) await this.#release(left);
      const before = new Date(Date.now() - retention.ms).toISOString();
      const old = await expiredSegments(store.source, signer.verifier, before);
      if (old === null) return;
      await store.retain(retentionNote(signer, old), old);
      await this.#release(old);
    } catch (error) {
      // The next run repeats failed steps. If the log accepts no records, it reports that itself.
      if (!(error instanceof AuditUnavailable))
        this.#log.refused(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #release(old: RetirementPlan): Promise<void> {
    const { store, signer, retention, append, tenant } = this.#log;
    const { segments, base, until } = old;
    if (this.#recorded !== base.seq) {
      const detail = {
        from: base.seq,
        segments: [segments[0], segments.at(-1)],
        until,
        archive: retention.archive,
      };
      const place = {
        kind: 'event',
        request_id: `${signer.writer}.retain.${base.seq}`,
        tenant,
        surface: 'system',
      } as const;
      await append({ ...place, action: 'audit.retain', detail: JSON.stringify(detail) });
      this.#recorded = base.seq;
    }
    await store.release(old, retention.archive);
  }
}
