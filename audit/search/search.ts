import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditDamaged } from '../errors.js';
import { decodeHeader, frameAt, frameEnd, segmentName, usedEnd } from '../format.js';
import { readFrames, recordIn } from '../read.js';
import { type AuditRecord, isPlain } from '../record.js';
import { segmentNumbers } from '../source.js';
import { type AuditFilter, matches, namesOf } from './filter.js';
import { segmentIndexes, storedIndex } from './index-files.js';
import {
  type IndexBlock,
  mayHaveRequest,
  OMITTED,
  type Postings,
  type SegmentIndex,
} from './segment-index.js';

export interface SearchOptions {
  /** True to read every record instead of relying on the index files. */
  readonly everything?: boolean;
}

/** Yields the matching records of one log, in order. Uses indexes to skip parts of complete segments. */
export async function* searchRecords(
  dir: string,
  filter: AuditFilter,
  { everything = false }: SearchOptions = {},
): AsyncGenerator<AuditRecord, void, void> {
  let from = 0;
  if (!everything) {
    for await (const index of segmentIndexes(dir, filter.requestId !== undefined)) {
      yield* inIndexedSegment(dir, index, filter);
      from = index.end;
    }
  }
  const { requestId } = filter;
  // Searching raw bytes is cheaper than parsing, but works only for ids that need no escaping.
  const needle = requestId !== undefined && isPlain(requestId) ? requestId : '';
  for await (const { frame } of readFrames(dir, { from })) {
    if (!frame.record.includes(needle)) continue;
    const record = recordIn(frame);
    if (matches(record, filter)) yield record;
  }
}

async function* inIndexedSegment(
  dir: string,
  index: SegmentIndex,
  filter: AuditFilter,
): AsyncGenerator<AuditRecord, void, void> {
  const blocks = candidates(index, filter);
  if (blocks.length === 0) return;
  const found: AuditRecord[] = [];
  // Keep only the matches of a block: segments may be large, and several logs are searched at a time.
  const complete = await readBlocks(dir, index, blocks, (run) => {
    const records = recordsOf(run);
    if (records[0]?.seq !== run.first || records.at(-1)?.seq !== run.first + run.starts.length - 1)
      return false;
    found.push(...records.filter((record) => matches(record, filter)));
    return true;
  });
  if (complete) yield* found;
  else yield* recordsOf(await readComplete(dir, index)).filter((record) => matches(record, filter));
}

function recordsOf({ bytes, starts, end }: FrameRun): readonly AuditRecord[] {
  return starts.flatMap((start) => {
    const frame = frameAt(bytes, start, end);
    return frame === null ? [] : [recordIn(frame)];
  });
}

/** Step of a backward search: a match, or, if `record` is null, only the position reached. */
export interface SearchStep {
  readonly seq: number;
  readonly record: AuditRecord | null;
}

/** Number of records searched before progress is reported without a match. */
const STRIDE = 2_048;

/**
 * Yields the matching records of one log before seq `before` (null: all), newest first. Also yields steps without a
 * record, so that a caller can stop and continue from there later.
 *
 * @throws AuditDamaged if a complete segment cannot be read to its end
 */
export async function* searchNewest(
  dir: string,
  filter: AuditFilter,
  before: number | null,
): AsyncGenerator<SearchStep, void, void> {
  const segments = await segmentNumbers(dir);
  const least = before ?? Number.POSITIVE_INFINITY;
  // Indexes of older versions lack request hashes: rebuild them once.
  if (filter.requestId !== undefined)
    for await (const _ of segmentIndexes(dir, true))
      yield { seq: before ?? Number.MAX_SAFE_INTEGER, record: null };
  for (const segment of segments.toReversed()) {
    const isLast = segment === segments.at(-1);
    const index = isLast ? null : await storedIndex(dir, segment);
    if (index !== null && index.first >= least) continue;
    const found = index === null ? null : await inBlocks(dir, index, filter, least);
    if (found !== null) yield* found;
    else yield* inSegment(dir, segment, isLast, filter, least);
  }
}

/** Returns the matches in the blocks that the index points to; null if the whole segment must be read. */
async function inBlocks(
  dir: string,
  index: SegmentIndex,
  filter: AuditFilter,
  least: number,
): Promise<Iterable<SearchStep> | null> {
  const blocks = candidates(index, filter).filter((n) => (index.blocks[n]?.seq ?? 0) < least);
  if (blocks.length === 0) return [{ seq: index.first, record: null }];
  const runs: FrameRun[] = [];
  const complete = await readBlocks(dir, index, blocks, (run) => runs.push(run) > 0);
  return complete ? backThrough(runs, filter, least, index.first) : null;
}

async function* inSegment(
  dir: string,
  segment: number,
  isLast: boolean,
  filter: AuditFilter,
  least: number,
): AsyncGenerator<SearchStep, void, void> {
  const name = segmentName(segment);
  const bytes = await readFile(join(dir, name)).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null; // the segment has expired
    throw error;
  });
  if (bytes === null) return;
  const decoded = decodeHeader(bytes);
  if (decoded === null) {
    if (isLast) return; // the writer is still creating the segment
    throw new AuditDamaged(name, 0, -1, 'the segment header is not readable');
  }
  const run = runOf(bytes, decoded.end, decoded.header.firstSeq);
  if (!isLast && !run.whole) {
    const seq = run.first + run.starts.length;
    throw new AuditDamaged(name, run.starts.at(-1) ?? decoded.end, seq, 'no frame can be read here');
  }
  yield* backThrough([run], filter, least, run.first);
}

/** A run of consecutive frames. */
interface FrameRun {
  readonly bytes: Buffer;
  readonly first: number;
  readonly starts: readonly number[];
  readonly end: number;
  /** True if the bytes consist of complete frames only. */
  readonly whole: boolean;
}

function runOf(bytes: Buffer, start: number, first: number): FrameRun {
  const end = usedEnd(bytes);
  const starts: number[] = [];
  let at = start;
  for (let next = frameEnd(bytes, at, end); next !== null; next = frameEnd(bytes, at, end)) {
    starts.push(at);
    at = next;
  }
  return { bytes, first, starts, end, whole: at >= end };
}

/**
 * Passes blocks of a segment to `take`, one after another. Returns false if `take` refuses a block, if a block
 * contradicts the index, or if reading the whole segment is cheaper.
 */
async function readBlocks(
  dir: string,
  { segment, blocks, end }: SegmentIndex,
  numbers: readonly number[],
  take: (run: FrameRun) => boolean,
): Promise<boolean> {
  if (numbers.length > blocks.length / 2) return false;
  const handle = await open(join(dir, segmentName(segment)), 'r');
  try {
    const { size } = await handle.stat();
    for (const number of numbers) {
      const [block, next] = [blocks[number], blocks[number + 1]];
      if (block === undefined || block.at > size) return false;
      const bytes = Buffer.alloc(Math.max(0, Math.min(size, next?.at ?? size) - block.at));
      await handle.read(bytes, 0, bytes.length, block.at);
      const run = runOf(bytes, 0, block.seq);
      if (!run.whole || run.first + run.starts.length !== (next?.seq ?? end)) return false;
      if (!take(run)) return false;
    }
  } finally {
    await handle.close();
  }
  return true;
}

async function readComplete(dir: string, { segment, first }: SegmentIndex): Promise<FrameRun> {
  const bytes = await readFile(join(dir, segmentName(segment)));
  return runOf(bytes, decodeHeader(bytes)?.end ?? 0, first);
}

function* backThrough(
  runs: readonly FrameRun[],
  filter: AuditFilter,
  least: number,
  last: number,
): Generator<SearchStep> {
  let looked = 0;
  for (const { bytes, first, starts, end } of runs.toReversed()) {
    for (let i = Math.min(starts.length, least - first) - 1; i >= 0; i -= 1) {
      const frame = frameAt(bytes, starts[i] ?? 0, end);
      if (frame === null) continue;
      const record = recordIn(frame);
      looked += 1;
      if (matches(record, filter)) yield { seq: first + i, record };
      else if (looked % STRIDE === 0) yield { seq: first + i, record: null };
    }
  }
  yield { seq: last, record: null };
}

/** Returns the numbers of the blocks that may contain a match, in ascending order. */
export function candidates(
  index: SegmentIndex,
  { subject, object, since, until, requestId, fingerprints }: AuditFilter,
): readonly number[] {
  const inTime = ({ since: first, until: last }: IndexBlock): boolean =>
    (since === undefined || last >= since) && (until === undefined || first < until);
  const ofSubject = subject === undefined ? null : blocksOf(index.subjects, [subject]);
  const ofObject = object === undefined ? null : blocksOf(index.objects, [...namesOf(object), OMITTED]);
  const ofName = fingerprints === undefined ? null : blocksOf(index.objects, [...fingerprints, OMITTED]);
  const ofRequest = (block: IndexBlock): boolean =>
    requestId === undefined || mayHaveRequest(block, requestId);
  return index.blocks.flatMap((block, number) => {
    const posted = [ofSubject, ofObject, ofName].every((blocks) => blocks?.has(number) ?? true);
    return posted && inTime(block) && ofRequest(block) ? [number] : [];
  });
}

function blocksOf(postings: Postings, names: readonly string[]): ReadonlySet<number> {
  const wanted = new Set(names);
  return new Set(postings.flatMap(([name, blocks]) => (wanted.has(name) ? blocks : [])));
}

/** Merges several logs by time; records of the same log keep their order. */
export async function* byTime(
  chains: readonly AsyncGenerator<AuditRecord, void, void>[],
): AsyncGenerator<AuditRecord, void, void> {
  const heads = await Promise.all(chains.map(async (chain) => ({ chain, next: await chain.next() })));
  for (;;) {
    let first: (typeof heads)[number] | null = null;
    let earliest: AuditRecord | null = null;
    for (const head of heads) {
      if (head.next.done) continue;
      if (earliest === null || head.next.value.ts < earliest.ts) [first, earliest] = [head, head.next.value];
    }
    if (first === null || earliest === null) return;
    yield earliest;
    first.next = await first.chain.next();
  }
}
