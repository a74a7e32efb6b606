import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, type Checkpoint, openCheckpoint, splitNotes } from './checkpoint.js';
import { syncDirectory, writeDurably } from './disk.js';
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
import { Frontier } from './frontier.js';
import type { AuditRecord } from './record.js';
import { SPARE_FILE } from './segments.js';
import type { Signer } from './signer.js';

const COPY_FILE = 'recover.tmp';

/** Where the writer goes on. */
export interface Recovered {
  readonly segment: number;
  readonly epoch: number;
  readonly seq: number;
  readonly chain: Buffer;
  readonly frontier: Frontier;
  readonly checkpoint: Checkpoint | null;
  /** Length of the file `checkpoints` in bytes. */
  readonly checkpointsEnd: number;
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

/**
 * Reads the whole log, checks it against its chain and its last checkpoint, and cuts a torn tail.
 *
 * @throws AuditDamaged for anything else that is wrong; nothing is changed on disk then
 */
export function recoverLog(dir: string, signer: Signer): Recovered {
  const { checkpoint, end } = readLastCheckpoint(dir, signer);
  const walk = new Walk(dir, signer.writer, checkpoint);
  const segments = listSegments(dir);
  if (segments.length > 0 && !checkpoint) {
    throw new AuditDamaged(join(dir, CHECKPOINTS_FILE), 0, 0, 'the log has records but no checkpoint');
  }
  for (const segment of segments) walk.readSegment(segment, segment === segments.at(-1));
  walk.requireCheckpoint();
  const cut = walk.secureLast();
  trimCheckpoints(dir, end);
  rmSync(join(dir, SPARE_FILE), { force: true });
  return {
    segment: segments.at(-1) ?? 0,
    epoch: walk.epoch,
    seq: walk.seq,
    chain: walk.chain,
    frontier: walk.frontier,
    checkpoint,
    checkpointsEnd: end,
    orphans: [...walk.open.values()],
    cut,
  };
}

function readLastCheckpoint(dir: string, signer: Signer): { checkpoint: Checkpoint | null; end: number } {
  const path = join(dir, CHECKPOINTS_FILE);
  const { notes, end } = splitNotes(readIfThere(path));
  const last = notes.at(-1);
  if (last === undefined) return { checkpoint: null, end };
  const checkpoint = openCheckpoint(last, signer.verifier);
  if (!checkpoint)
    throw new AuditDamaged(path, end - last.length, 0, 'the last checkpoint is not validly signed');
  return { checkpoint, end };
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function trimCheckpoints(dir: string, end: number): void {
  const fd = openSync(join(dir, CHECKPOINTS_FILE), 'a', 0o644);
  try {
    ftruncateSync(fd, end);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  syncDirectory(dir);
}

/** Reading position in the log: everything before it is proved. */
class Walk {
  seq = 0;
  epoch = 0;
  chain: Buffer = GENESIS;
  readonly frontier = new Frontier();
  readonly open = new Map<string, AuditRecord>();
  readonly #dir: string;
  readonly #writer: string;
  readonly #checkpoint: Checkpoint | null;
  #file = '';
  #segment = 0;
  #bytes: Buffer = GENESIS;
  #end = 0;

  constructor(dir: string, writer: string, checkpoint: Checkpoint | null) {
    this.#dir = dir;
    this.#writer = writer;
    this.#checkpoint = checkpoint;
  }

  readSegment(segment: number, last: boolean): void {
    this.#file = join(this.#dir, segmentName(segment));
    this.#bytes = readFileSync(this.#file);
    if (segment !== this.#segment + 1) this.#damaged(0, `segment ${this.#segment + 1} is missing`);
    this.#segment = segment;
    let at = this.#readHeader(segment);
    const end = usedEnd(this.#bytes);
    let group = at;
    while (at < end) {
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
    this.frontier.push(leaf);
    if (record.kind === 'decision' && record.decision === 'allow') this.open.set(record.request_id, record);
    if (record.kind === 'outcome') this.open.delete(record.request_id);
    this.requireRoot(frame.at);
  }

  requireRoot(at: number): void {
    const checkpoint = this.#checkpoint;
    if (checkpoint?.size === this.seq && !checkpoint.root.equals(this.frontier.root())) {
      this.#damaged(at, 'the records up to here are not those that the last checkpoint signed');
    }
  }

  requireCheckpoint(): void {
    const size = this.#checkpoint?.size ?? 0;
    if (this.seq < size)
      this.#damaged(this.#end, `the last checkpoint covers ${size} records: the tail was cut`);
  }

  /**
   * Puts the valid part of the last segment on disk, without the torn tail. The page cache may show what a failed
   * or interrupted sync never wrote, so the part is written anew, not merely synced; that also cuts off a
   * write of a killed process that is still under way. A segment without unused room was closed in order.
   */
  secureLast(): string | null {
    if (this.#segment === 0 || this.#end === this.#bytes.length) return null;
    const copy = join(this.#dir, COPY_FILE);
    writeDurably(copy, this.#bytes.subarray(0, this.#end), 0o600);
    renameSync(copy, this.#file);
    syncDirectory(this.#dir);
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
