import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, LATEST_FILE, PUBLIC_KEY_FILE, RETAINED_FILE } from './checkpoint.js';
import { segmentName, segmentNumber, usedEnd } from './format.js';
import type { LeafRange } from './tree.js';

/** A log as it is stored, to those who read it: in a directory, or in a table that gives the same bytes. */
export interface LogSource {
  /** Name used in messages. */
  readonly place: string;
  /** The directory of its segment files; null where there are none. */
  readonly dir: string | null;
  /** True if a write may end half way: of a file it may, of a transaction never. */
  readonly mayTear: boolean;
  /** Null where there is none. */
  verifierKey(): Promise<string | null>;
  /** The checkpoints that stay, one after another. */
  checkpoints(): Promise<Buffer>;
  /** The newest one alone. */
  latest(): Promise<Buffer>;
  /** Signed notes of records that are no longer kept; empty if all are kept. */
  retained(): Promise<Buffer>;
  /** Numbers of the segments, ascending. */
  segments(): Promise<readonly number[]>;
  /** Null where the files beside the segments serve. */
  readonly index: LogIndex | null;
  /** The bytes of a segment. @param live whether it may be written to meanwhile */
  segment(number: number, live: boolean): Promise<Buffer>;
}

/** Index that finds the inputs of proofs. It is not trusted: each proof is checked before it is returned. */
export interface LogIndex {
  /** The records of a request, in their order. */
  recordsOf(requestId: string): Promise<readonly StoredRecord[]>;
  /** Places between two segments, of which more is known than the records behind them say. */
  places(): Promise<readonly KnownPlace[]>;
  /** The leaves in these ranges, which are ascending and do not overlap; in their order. */
  leaves(ranges: readonly LeafRange[]): AsyncIterable<LogLeaf>;
}

export interface StoredRecord {
  readonly seq: number;
  readonly record: Buffer;
}

/** A place before a segment, with what the records before it come to. */
export interface KnownPlace {
  /** Records before it. */
  readonly size: number;
  /** Roots of the complete subtrees of those records, largest first. */
  readonly roots: readonly Buffer[];
}

export interface LogLeaf {
  readonly seq: number;
  /** As `leafOf` gives it. */
  readonly hash: string;
}

/** The log in a directory. */
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
    segments: async () => {
      const numbers = (await readdir(dir)).map(segmentNumber).filter((number) => number !== null);
      return numbers.sort((a, b) => a - b);
    },
    segment: (number: number, live: boolean) => {
      const path = join(dir, segmentName(number));
      return live ? readLive(path) : readFile(path);
    },
  });
}

/**
 * A segment that may be written to meanwhile. One pass could see a later group but miss an earlier one; what the
 * first pass saw the end of is whole in the second, as groups are written one after another.
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
