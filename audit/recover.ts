import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  CHECKPOINTS_FILE,
  type Checkpoint,
  LATEST_FILE,
  openCheckpoint,
  parseRetentionNote,
  RETAINED_FILE,
  splitNotes,
  syncedBefore,
  type VerifierKey,
} from './checkpoint.js';
import { AuditDamaged } from './errors.js';
import {
  chainHash,
  decodeHeader,
  frameAt,
  GENESIS,
  isTorn,
  leafHash,
  type RecordFrame,
  segmentName,
  usedEnd,
} from './format.js';
import { BEGINNING, Frontier, type LogBase, type SignedState } from './frontier.js';
import type { AuditRecord } from './record.js';
import type { Signer } from './signer.js';
import type { LogSource } from './source.js';

/** Action of the record that ends the log after a clean shutdown. */
export const CLOSING = 'audit.close';

export interface RecoveredLog extends LogBase {
  readonly signed: SignedState;
  /** Time of the last record read, RFC 3339; null if none was read. */
  readonly ts: string | null;
  /** True if the last record is not `audit.close`. */
  readonly unclean: boolean;
  /** Allowed decisions that have no outcome. */
  readonly orphans: readonly AuditRecord[];
  /** Torn bytes that were cut off, as `<file>:<offset>+<bytes>`; null if there were none. */
  readonly cut: string | null;
}

/** Position from which recovery may start: the end of a prefix of the log. */
export interface RecoverBase {
  readonly base: LogBase;
  /** Allowed decisions recorded before this position, whose outcome had not been recorded by then. */
  readonly open: readonly AuditRecord[];
}

export interface RecoverOptions {
  /** End of a prefix that is already verified; by default the whole log is read. */
  readonly base?: RecoverBase;
  /**
   * Tree of the records that the writer has acknowledged. The log counts as damaged if one of these records differs, or
   * if one that was synced is missing.
   */
  readonly acknowledged?: AcknowledgedTree | null;
}

/** Tree of the records that the writer has acknowledged. */
export interface AcknowledgedTree {
  readonly size: number;
  readonly root: Buffer;
  /** Number of these records that were synced; the disk may have lost the others. */
  readonly durable: number;
}

/** Number of frames processed per turn of the event loop: about a millisecond of work. */
const FRAMES_A_TURN = 256;

/** Content of the last segment. */
export interface LastSegment {
  readonly segment: number;
  readonly bytes: Buffer;
  /** Offset after the last valid frame. */
  readonly end: number;
}

/**
 * Reads the log, or the part after `base`, and verifies it against its hash chain and newest checkpoint. Changes
 * nothing.
 *
 * @returns the state from which to continue, and the last segment (null if there is none after `base`)
 * @throws AuditDamaged for any fault except a torn tail in a source that can have one
 */
export async function recoverLog(
  source: LogSource,
  signer: Signer,
  options: RecoverOptions = {},
): Promise<{ readonly recovered: Omit<RecoveredLog, 'cut'>; readonly tail: LastSegment | null }> {
  const { acknowledged = null } = options;
  const { checkpoint, signed } = await readCheckpoints(source, signer);
  const { base, open } = options.base ?? (await beginningOf(source, signer.verifier));
  const walk = new LogCursor(source, signer.writer, base, open, checkpoint, acknowledged);
  const segments = (await source.segments()).filter((segment) => segment > base.segment);
  if (segments.length > 0 && signed.lasting === -1) {
    throw new AuditDamaged(
      join(source.place, CHECKPOINTS_FILE),
      0,
      0,
      'the log has records but no checkpoint',
    );
  }
  walk.requireRoot(0);
  for (const segment of segments) await walk.readSegment(segment, segment === segments.at(-1));
  walk.requireRecords(checkpoint, acknowledged);
  const recovered = {
    segment: segments.at(-1) ?? base.segment,
    epoch: walk.epoch,
    seq: walk.seq,
    chain: walk.chain,
    frontier: walk.frontier,
    signed,
    ts: walk.ts,
    unclean: walk.unclean,
    orphans: [...walk.open.values()],
  };
  return { recovered, tail: walk.tail };
}

/** Returns the tree size of the newest checkpoint; -1 if there is none. @throws AuditDamaged */
export async function signedSize(source: LogSource, signer: Signer): Promise<number> {
  return (await readCheckpoints(source, signer)).signed.newest;
}

/** Returns the position before the first record, or before the first retained one. @throws AuditDamaged */
export async function beginningOf(source: LogSource, key: VerifierKey): Promise<RecoverBase> {
  try {
    const kept = parseRetentionNote(await source.retained(), key);
    if (kept === null) return { base: BEGINNING, open: [] };
    const { segment, epoch, chain, checkpoint, frontier } = kept;
    const roots = frontier.map((root) => root.toString('latin1'));
    const tree = Frontier.of(checkpoint.size, roots);
    if (!tree.root().equals(checkpoint.root))
      throw new TypeError('its roots are not those of the signed tree');
    const base = { segment: segment - 1, epoch, seq: checkpoint.size, chain, frontier: tree };
    return { base, open: [] };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AuditDamaged(join(source.place, RETAINED_FILE), 0, 0, why);
  }
}

/** Reads the newest checkpoint, and the tree sizes of the newest and the last permanent one. @throws AuditDamaged */
async function readCheckpoints(
  source: LogSource,
  signer: Signer,
): Promise<{ readonly checkpoint: Checkpoint | null; readonly signed: SignedState }> {
  const path = join(source.place, CHECKPOINTS_FILE);
  const { notes, end } = splitNotes(await source.checkpoints());
  const note = notes.at(-1);
  const lasting = note === undefined ? null : openedNote(note, path, end - note.length, signer);
  const latestPath = join(source.place, LATEST_FILE);
  const [latestNote] = splitNotes(await source.latest()).notes;
  const latest = latestNote === undefined ? null : openedNote(latestNote, latestPath, 0, signer);
  const checkpoint = (latest?.size ?? -1) > (lasting?.size ?? -1) ? latest : lasting;
  return { checkpoint, signed: { end, lasting: lasting?.size ?? -1, newest: checkpoint?.size ?? -1 } };
}

function openedNote(note: string, path: string, offset: number, signer: Signer): Checkpoint {
  const checkpoint = openCheckpoint(note, signer.verifier);
  if (!checkpoint) throw new AuditDamaged(path, offset, 0, 'the last checkpoint is not validly signed');
  return checkpoint;
}

/** Read position in the log; everything before it has been verified. */
class LogCursor {
  seq: number;
  epoch: number;
  chain: Buffer;
  readonly frontier: Frontier;
  readonly open: Map<string, AuditRecord>;
  readonly #source: LogSource;
  readonly #writer: string;
  readonly #roots: ReadonlyMap<number, Buffer>;
  /** Number of leading records synced in order; a power failure may have removed any of the later ones. */
  readonly #synced: number;
  ts: string | null = null;
  #action: string | null = null;
  #file = '';
  readonly #first: number;
  #segment: number;
  #bytes: Buffer = GENESIS;
  #end = 0;

  constructor(
    source: LogSource,
    writer: string,
    base: LogBase,
    open: readonly AuditRecord[],
    checkpoint: Checkpoint | null,
    acknowledged: AcknowledgedTree | null,
  ) {
    const known = [checkpoint, acknowledged];
    this.#synced = syncedBefore(checkpoint);
    this.#source = source;
    this.open = new Map(open.map((record) => [record.request_id, record]));
    this.#writer = writer;
    this.#roots = new Map(known.flatMap((tree) => (tree === null ? [] : [[tree.size, tree.root]])));
    this.seq = base.seq;
    this.epoch = base.epoch;
    this.chain = base.chain;
    this.frontier = base.frontier.copy();
    this.#first = base.segment;
    this.#segment = base.segment;
  }

  async readSegment(segment: number, last: boolean): Promise<void> {
    this.#file = join(this.#source.place, segmentName(segment));
    this.#bytes = await this.#source.segment(segment, false);
    if (segment !== this.#segment + 1) this.#damaged(0, `segment ${this.#segment + 1} is missing`);
    this.#segment = segment;
    let at = this.#readHeader(segment);
    const end = usedEnd(this.#bytes);
    let group = at;
    for (let read = 1; at < end; read += 1) {
      if (read % FRAMES_A_TURN === 0) await nextTurn();
      const frame = frameAt(this.#bytes, at, end);
      const leaf = frame && leafHash(frame.leafInput);
      const chain = leaf && chainHash(this.chain, leaf);
      if (!frame || !leaf || !chain?.equals(frame.chain)) {
        const holes = this.seq >= this.#synced;
        if (last && this.#source.mayTear && isTorn(this.#bytes, at, end, holes)) break;
        this.#damaged(at, 'the frame is neither whole nor the torn end of an unfinished write');
      }
      if (frame.back === 0) group = at;
      if (at - frame.back !== group) this.#damaged(at, 'the frame does not belong to its group');
      this.#take(frame, leaf, chain);
      at = frame.next;
    }
    this.#end = at;
  }

  #readHeader(segment: number): number {
    const decoded = decodeHeader(this.#bytes);
    if (!decoded) this.#damaged(0, 'the segment header is not readable');
    const { header, end } = decoded;
    const follows =
      header.segment === segment &&
      header.writer === this.#writer &&
      header.firstSeq === this.seq &&
      header.epoch >= this.epoch &&
      header.chain.equals(this.chain);
    if (!follows) this.#damaged(0, 'the segment does not follow the one before it');
    this.epoch = header.epoch;
    return end;
  }

  #take(frame: RecordFrame, leaf: Buffer, chain: Buffer): void {
    const record = parseRecord(frame.record);
    if (record?.seq !== this.seq) this.#damaged(frame.at, 'the record is not the one that belongs here');
    this.chain = chain;
    this.seq += 1;
    this.#action = record.action;
    this.ts = record.ts;
    this.frontier.push(leaf.toString('latin1'));
    if (record.kind === 'decision' && record.decision === 'allow') this.open.set(record.request_id, record);
    if (record.kind === 'outcome') this.open.delete(record.request_id);
    this.requireRoot(frame.at);
  }

  requireRoot(at: number): void {
    const root = this.#roots.get(this.seq);
    if (root !== undefined && !root.equals(this.frontier.root())) {
      this.#damaged(at, 'the records up to here are not those that were signed, or acknowledged');
    }
  }

  /** Checks that no record covered by a checkpoint or synced by the writer is missing. */
  requireRecords(checkpoint: Checkpoint | null, acknowledged: AcknowledgedTree | null): void {
    const size = checkpoint?.size ?? 0;
    if (this.seq < size)
      this.#damaged(this.#end, `the last checkpoint covers ${size} records: the tail was cut`);
    const durable = acknowledged?.durable ?? 0;
    if (this.seq < durable)
      this.#damaged(this.#end, `${durable} records were synced: the disk lost the last of them`);
  }

  get unclean(): boolean {
    return this.seq > 0 && this.#action !== CLOSING;
  }

  get tail(): LastSegment | null {
    if (this.#segment === this.#first) return null;
    return { segment: this.#segment, bytes: this.#bytes, end: this.#end };
  }

  #damaged(offset: number, message: string): never {
    throw new AuditDamaged(this.#file, offset, this.seq, message);
  }
}

function parseRecord(bytes: Buffer): AuditRecord | null {
  try {
    // The chain proves that a writer of this format wrote the record.
    return JSON.parse(bytes.toString()) as AuditRecord;
  } catch {
    return null;
  }
}
