import { readdirSync } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Signed } from './anchors.js';
import { BEGINNING, type LogBase } from './base.js';
import { CHECKPOINTS_FILE, type Checkpoint, LATEST_FILE, openCheckpoint, splitNotes } from './checkpoint.js';
import { syncDirectoryAsync, writeDurablyAsync } from './disk.js';
import { AuditDamaged } from './errors.js';
import {
  chainHash,
  decodeHeader,
  type Frame,
  frameAt,
  GENESIS,
  isTorn,
  leafHash,
  segmentName,
  segmentNumber,
  usedEnd,
} from './format.js';
import type { Frontier } from './frontier.js';
import type { AuditRecord } from './record.js';
import { SPARE_FILE } from './segments.js';
import type { Signer } from './signer.js';

const COPY_FILE = 'recover.tmp';
/** The action of the record that a stop in order leaves last. */
export const CLOSING = 'audit.close';

/** Where the writer goes on. */
export interface Recovered extends LogBase {
  readonly signed: Signed;
  /** Whether the last record is not the one that a stop in order leaves. */
  readonly unclean: boolean;
  /** Allowed decisions that have no outcome. */
  readonly orphans: readonly AuditRecord[];
  /** Torn bytes cut off, as `<file>:<offset>+<bytes>`; null if none. */
  readonly cut: string | null;
}

/** Numbers of the segments in a directory, ascending. */
export function listSegments(dir: string): number[] {
  return readdirSync(dir)
    .map(segmentNumber)
    .filter((number) => number !== null)
    .sort((a, b) => a - b);
}

/** What a reading may rest on. */
export interface RecoverOptions {
  /** What is proved already; default: nothing, so that the whole log is read. */
  readonly base?: LogBase;
  /** What the writer knows to have been acknowledged: fewer records, or others, are damage. */
  readonly acknowledged?: Acknowledged | null;
}

export interface Acknowledged {
  readonly size: number;
  readonly root: Buffer;
}

/** Frames between two turns of the event loop: about a millisecond. */
const FRAMES_A_TURN = 256;

/**
 * Reads the log, or what follows `base`, checks it against its chain and its last checkpoint, and cuts a torn tail.
 *
 * @throws AuditDamaged for anything else that is wrong; nothing is changed on disk then
 */
export async function recoverLog(
  dir: string,
  signer: Signer,
  { base = BEGINNING, acknowledged = null }: RecoverOptions = {},
): Promise<Recovered> {
  const { checkpoint, signed } = await readCheckpoints(dir, signer);
  const walk = new Walk(dir, signer.writer, base, [checkpoint, acknowledged]);
  const segments = listSegments(dir).filter((segment) => segment > base.segment);
  if (segments.length > 0 && signed.lasting === -1) {
    throw new AuditDamaged(join(dir, CHECKPOINTS_FILE), 0, 0, 'the log has records but no checkpoint');
  }
  for (const segment of segments) await walk.readSegment(segment, segment === segments.at(-1));
  walk.requireRecords(checkpoint, acknowledged);
  await rm(join(dir, SPARE_FILE), { force: true });
  const cut = await walk.secureLast();
  await trimCheckpoints(dir, signed.end);
  return {
    segment: segments.at(-1) ?? base.segment,
    epoch: walk.epoch,
    seq: walk.seq,
    chain: walk.chain,
    frontier: walk.frontier,
    signed,
    unclean: walk.unclean,
    orphans: [...walk.open.values()],
    cut,
  };
}

/** The newest checkpoint, and where the file of those that stay goes on. */
async function readCheckpoints(
  dir: string,
  signer: Signer,
): Promise<{ readonly checkpoint: Checkpoint | null; readonly signed: Signed }> {
  const path = join(dir, CHECKPOINTS_FILE);
  const { notes, end } = splitNotes(await readIfThere(path));
  const note = notes.at(-1);
  const lasting = note === undefined ? null : openedNote(note, path, end - note.length, signer);
  const latestPath = join(dir, LATEST_FILE);
  const [latestNote] = splitNotes(await readIfThere(latestPath)).notes;
  const latest = latestNote === undefined ? null : openedNote(latestNote, latestPath, 0, signer);
  const checkpoint = (latest?.size ?? -1) > (lasting?.size ?? -1) ? latest : lasting;
  return { checkpoint, signed: { end, lasting: lasting?.size ?? -1, newest: checkpoint?.size ?? -1 } };
}

function openedNote(note: string, path: string, offset: number, signer: Signer): Checkpoint {
  const checkpoint = openCheckpoint(note, signer.verifier);
  if (!checkpoint) throw new AuditDamaged(path, offset, 0, 'the last checkpoint is not validly signed');
  return checkpoint;
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

async function trimCheckpoints(dir: string, end: number): Promise<void> {
  const handle = await open(join(dir, CHECKPOINTS_FILE), 'a', 0o644);
  try {
    await handle.truncate(end);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectoryAsync(dir);
}

/** Reading position in the log: everything before it is proved. */
class Walk {
  seq: number;
  epoch: number;
  chain: Buffer;
  readonly frontier: Frontier;
  readonly open = new Map<string, AuditRecord>();
  readonly #dir: string;
  readonly #writer: string;
  readonly #roots: ReadonlyMap<number, Buffer>;
  /** Of the last record. */
  #action: string | null = null;
  #file = '';
  readonly #first: number;
  #segment: number;
  #bytes: Buffer = GENESIS;
  #end = 0;

  /** @param known trees that the log must have had */
  constructor(dir: string, writer: string, base: LogBase, known: readonly (Acknowledged | null)[]) {
    this.#dir = dir;
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
    this.#file = join(this.#dir, segmentName(segment));
    this.#bytes = await readFile(this.#file);
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
        if (last && isTorn(this.#bytes, at, end)) break;
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

  #take(frame: Frame, leaf: Buffer, chain: Buffer): void {
    const record = parseRecord(frame.record);
    if (record?.seq !== this.seq) this.#damaged(frame.at, 'the record is not the one that belongs here');
    this.chain = chain;
    this.seq += 1;
    this.#action = record.action;
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

  /** Nothing that a checkpoint covers, or that was acknowledged, may be missing. */
  requireRecords(checkpoint: Checkpoint | null, acknowledged: Acknowledged | null): void {
    const size = checkpoint?.size ?? 0;
    if (this.seq < size)
      this.#damaged(this.#end, `the last checkpoint covers ${size} records: the tail was cut`);
    const durable = acknowledged?.size ?? 0;
    if (this.seq < durable)
      this.#damaged(this.#end, `${durable} records were acknowledged: the disk lost the last of them`);
  }

  get unclean(): boolean {
    return this.seq > 0 && this.#action !== CLOSING;
  }

  /**
   * Puts the valid part of the last segment on disk, without the torn tail. The page cache may show what a failed
   * or interrupted sync never wrote, so the part is written anew, not merely synced; that also cuts off a
   * write of a killed process that is still under way. A segment without unused room was closed in order.
   */
  async secureLast(): Promise<string | null> {
    if (this.#segment === this.#first || this.#end === this.#bytes.length) return null;
    const copy = join(this.#dir, COPY_FILE);
    await writeDurablyAsync(copy, this.#bytes.subarray(0, this.#end), 0o600);
    await rename(copy, this.#file);
    await syncDirectoryAsync(this.#dir);
    const torn = usedEnd(this.#bytes) - this.#end;
    return torn > 0 ? `${segmentName(this.#segment)}:${this.#end}+${torn}` : null;
  }

  #damaged(offset: number, message: string): never {
    throw new AuditDamaged(this.#file, offset, this.seq, message);
  }
}

function parseRecord(bytes: Buffer): AuditRecord | null {
  try {
    // The chain has proved that a writer of this format made these bytes.
    return JSON.parse(bytes.toString()) as AuditRecord;
  } catch {
    return null;
  }
}
