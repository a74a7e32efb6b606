import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { parseVerifierKey } from '../checkpoint.js';
import { segmentName } from '../format.js';
import { BEGINNING } from '../frontier.js';
import { readHeader } from '../read.js';
import { beginningOf, type RecoverBase } from '../recover.js';
import { directorySource, segmentNumbers } from '../source.js';
import {
  baseOf,
  buildIndex,
  hasRequests,
  indexName,
  parseIndex,
  type SegmentIndex,
} from './segment-index.js';

/**
 * Reads the stored index of a complete segment; null if it is missing, inconsistent, or does not match the headers of
 * this segment and the next.
 */
export async function storedIndex(dir: string, segment: number): Promise<SegmentIndex | null> {
  const text = await readFile(join(dir, indexName(segment)), 'utf8').catch(() => null);
  const index = text === null ? null : parseIndex(text);
  if (index === null || index.segment !== segment) return null;
  const [own, next] = await Promise.all(
    [segment, segment + 1].map((number) => readHeader(join(dir, segmentName(number))).catch(nullIfNotOpened)),
  );
  if (!own || !next) return null;
  const fits = own.writer === index.writer && own.firstSeq === index.first && next.firstSeq === index.end;
  return fits && next.chain.toString('hex') === index.chain && isConsistent(index) ? index : null;
}

/** Returns null for a segment file that cannot be opened; rethrows other errors. */
function nullIfNotOpened(error: unknown): null {
  if (error instanceof Error && 'syscall' in error && error.syscall === 'open') return null;
  throw error;
}

function isConsistent(index: SegmentIndex): boolean {
  try {
    return baseOf(index).seq === index.end;
  } catch (error) {
    if (error instanceof RangeError) return false; // the index contradicts itself
    throw error;
  }
}

/**
 * Yields the indexes of all complete segments, building missing ones. Stops before an invalid segment.
 *
 * @param requests true to rebuild indexes of older versions, which lack request hashes
 */
export async function* segmentIndexes(
  dir: string,
  requests = false,
): AsyncGenerator<SegmentIndex, void, void> {
  const segments = await segmentNumbers(dir);
  let before = await startOf(dir);
  for (const segment of segments.slice(0, -1)) {
    const stored = await storedIndex(dir, segment);
    const serves = stored !== null && (!requests || hasRequests(stored));
    const index = serves ? stored : await buildAndStore(dir, segment, before);
    if (index === null) return;
    yield index;
    before = { base: baseOf(index), open: index.open };
  }
}

/**
 * Builds all indexes after the newest stored one.
 *
 * @returns the newest index; null if there is no valid complete segment
 */
export async function buildMissingIndexes(dir: string): Promise<SegmentIndex | null> {
  const complete = (await segmentNumbers(dir)).slice(0, -1);
  let newest: SegmentIndex | null = null;
  let at = complete.length;
  while (newest === null && at > 0) {
    at -= 1;
    newest = await storedIndex(dir, complete[at] ?? 0);
  }
  let before = newest === null ? await startOf(dir) : { base: baseOf(newest), open: newest.open };
  for (const segment of complete.slice(newest === null ? 0 : at + 1)) {
    const index = await buildAndStore(dir, segment, before);
    if (index === null) return newest;
    newest = index;
    before = { base: baseOf(index), open: index.open };
  }
  return newest;
}

/** Returns the log state before the first retained segment. */
async function startOf(dir: string): Promise<RecoverBase> {
  const source = directorySource(dir);
  const key = await source.verifierKey();
  return key === null ? { base: BEGINNING, open: [] } : beginningOf(source, parseVerifierKey(key));
}

/**
 * Returns the log state after the newest indexed segment that a signed tree of `size` records covers; null if there is
 * no such segment, or if a segment is missing.
 */
export async function newestIndexedBase(
  dir: string,
  first: number,
  size: number,
): Promise<RecoverBase | null> {
  const segments = (await segmentNumbers(dir)).filter((segment) => segment >= first);
  if (segments.some((segment, i) => segment !== first + i)) return null;
  for (const segment of segments.slice(0, -1).reverse()) {
    const index = await storedIndex(dir, segment);
    if (index !== null && index.end <= size) return { base: baseOf(index), open: index.open };
  }
  return null;
}

async function buildAndStore(
  dir: string,
  segment: number,
  { base, open: unanswered }: RecoverBase,
): Promise<SegmentIndex | null> {
  const index = buildIndex(await readFile(join(dir, segmentName(segment))), base, unanswered);
  // In a read-only directory, indexes work without being stored.
  if (index !== null) await keep(dir, index).catch(() => undefined);
  // Retention may have deleted the segment in the meantime, and would not find its index later.
  if (!existsSync(join(dir, segmentName(segment)))) await rm(join(dir, indexName(segment)), { force: true });
  return index;
}

/** Stores an index. Several processes may do so at the same time, so each renames its own temporary file. */
async function keep(dir: string, index: SegmentIndex): Promise<void> {
  const path = join(dir, indexName(index.segment));
  const making = `${path}.${randomBytes(4).toString('hex')}.new`;
  try {
    await writeFile(making, JSON.stringify(index), { mode: 0o600 });
    await rename(making, path);
  } catch (error) {
    await rm(making, { force: true });
    throw error;
  }
}

/** Delay in ms, so that indexing does not compete with the load that filled the segment. */
const WAIT_MS = 1_000;

/**
 * Indexes complete segments in a worker thread, so that the next start need not read them. Optional: without an index,
 * a start reads the segments.
 */
export class SegmentIndexer {
  readonly #dir: string;
  #timer: NodeJS.Timeout | null = null;
  #running: Worker | null = null;
  #again = false;
  #closed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  soon(): void {
    if (this.#closed) return;
    if (this.#running !== null) this.#again = true;
    else this.#timer ??= setTimeout(() => this.#run(), WAIT_MS).unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#running?.terminate();
  }

  #run(): void {
    this.#timer = null;
    const workerData = { dir: this.#dir };
    let thread: Worker;
    try {
      thread = new Worker(new URL('./segment-indexer-thread.js', import.meta.url), { workerData });
    } catch {
      return; // no thread available: indexes are built on demand
    }
    thread.unref();
    this.#running = thread;
    // If the directory is inaccessible, the log itself fails and reports it.
    thread.on('error', () => undefined);
    thread.once('exit', () => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      this.soon();
    });
  }
}
