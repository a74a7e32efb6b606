import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, LATEST_FILE, PUBLIC_KEY_FILE, RETAINED_FILE } from './checkpoint.js';
import { segmentName, segmentNumber, usedEnd } from './format.js';
import type { LeafRange } from './tree.js';

/** Read access to a stored log: a directory, or a table that yields the same bytes. */
export interface LogSource {
  readonly place: string;
  /** Directory of the segment files; null if the log is in a table. */
  readonly dir: string | null;
  /** True if writes can be torn, which happens in files but never in transactions. */
  readonly mayTear: boolean;
  verifierKey(): Promise<string | null>;
  /** Permanent checkpoints, concatenated. */
  checkpoints(): Promise<Buffer>;
  latest(): Promise<Buffer>;
  /** Signed notes about deleted records; empty if none were deleted. */
  retained(): Promise<Buffer>;
  /** Segment numbers in ascending order. */
  segments(): Promise<readonly number[]>;
  /** Index of this source; null if the index files next to the segments are used. */
  readonly index: LogIndex | null;
  /** Content of a segment. @param live true if a writer may be appending to it */
  segment(number: number, live: boolean): Promise<Buffer>;
  /** Seq of a stored record that `segment` never returns but a search may find; null if there is none. */
  strayRecord(): Promise<number | null>;
}

/** Finds the data needed for inclusion proofs. Untrusted: each proof is checked before it is returned. */
export interface LogIndex {
  recordsOf(requestId: string): Promise<readonly StoredRecord[]>;
  /** Segment boundaries with known tree states. */
  places(): Promise<readonly KnownBoundary[]>;
  /** Leaves in the given ranges, which must be ascending and disjoint. */
  leaves(ranges: readonly LeafRange[]): AsyncIterable<LogLeaf>;
}

export interface StoredRecord {
  readonly seq: number;
  readonly record: Buffer;
}

/** Known state of the tree at a segment boundary. */
export interface KnownBoundary {
  /** Number of records before the boundary. */
  readonly size: number;
  /** Roots of the complete subtrees of these records, largest first. */
  readonly roots: readonly Buffer[];
}

export interface LogLeaf {
  readonly seq: number;
  /** Leaf hash, as computed by `leafOf`. */
  readonly hash: string;
}

export function directorySource(dir: string): LogSource {
  const file = (name: string): Promise<Buffer> => readIfThere(join(dir, name));
  return Object.freeze({
    place: dir,
    dir,
    mayTear: true,
    index: null,
    verifierKey: async () => {
      const key = await file(PUBLIC_KEY_FILE);
      return key.length === 0 ? null : key.toString();
    },
    checkpoints: () => file(CHECKPOINTS_FILE),
    latest: () => file(LATEST_FILE),
    retained: () => file(RETAINED_FILE),
    segments: () => segmentNumbers(dir),
    segment: (number: number, live: boolean) => {
      const path = join(dir, segmentName(number));
      return live ? readLive(path) : readFile(path);
    },
    strayRecord: async () => null,
  });
}

/** Segment numbers in a directory, in ascending order. */
export async function segmentNumbers(dir: string): Promise<readonly number[]> {
  const numbers = (await readdir(dir)).map(segmentNumber).filter((number) => number !== null);
  return numbers.sort((a, b) => a - b);
}

/**
 * Reads, in two passes, a segment that may be written at the same time. A single pass could see a later group but miss
 * an earlier one. Since groups are written one after another, all groups before the end seen by the first pass are
 * complete in the second.
 */
async function readLive(path: string): Promise<Buffer> {
  const end = usedEnd(await readFile(path));
  return (await readFile(path)).subarray(0, end);
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
