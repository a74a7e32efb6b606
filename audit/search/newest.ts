import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditDamaged } from '../errors.js';
import { decodeHeader, frameAt, frameEnd, segmentName, usedEnd } from '../format.js';
import type { AuditRecord } from '../record.js';
import { type AuditFilter, matches } from './filter.js';
import type { Seal } from './seal.js';
import { sealsOf, segmentsIn, storedSeal } from './seals.js';
import { candidates } from './search.js';

/** A place that a search has come to on its way back: `record` where it found one, null where it only passed by. */
export interface SearchStep {
  readonly seq: number;
  readonly record: AuditRecord | null;
}

/** Between two steps that find nothing so many records are looked at, at most. */
const STRIDE = 2_048;

/**
 * The records of one chain that a filter describes, the newest first, those before `before` alone. Says in between how
 * far it is, so that whoever has waited long enough can go on from there. Indexes say where nothing stands.
 *
 * @throws AuditDamaged where a complete segment cannot be read to its end
 */
export async function* searchNewest(
  dir: string,
  filter: AuditFilter,
  before: number | null,
): AsyncGenerator<SearchStep, void, void> {
  const segments = await segmentsIn(dir);
  const least = before ?? Number.POSITIVE_INFINITY;
  // Indexes of older versions say nothing of requests: they are made anew, once.
  if (filter.requestId !== undefined)
    for await (const _ of sealsOf(dir, true)) yield { seq: before ?? Number.MAX_SAFE_INTEGER, record: null };
  for (const segment of segments.toReversed()) {
    const isLast = segment === segments.at(-1);
    const seal = isLast ? null : await storedSeal(dir, segment);
    if (seal !== null && seal.first >= least) continue;
    const found = seal === null ? null : await inBlocks(dir, seal, filter, least);
    if (found !== null) yield* found;
    else yield* inSegment(dir, segment, isLast, filter, least);
  }
}

/** Matches in the blocks that an index points at; null if they differ from the index or are most of the segment. */
async function inBlocks(
  dir: string,
  seal: Seal,
  filter: AuditFilter,
  least: number,
): Promise<Iterable<SearchStep> | null> {
  const wanted = candidates(seal, filter).filter((n) => (seal.blocks[n]?.seq ?? 0) < least);
  if (wanted.length === 0) return [{ seq: seal.first, record: null }];
  if (wanted.length > seal.blocks.length / 2) return null;
  const runs: FrameRun[] = [];
  const handle = await open(join(dir, segmentName(seal.segment)), 'r');
  try {
    const { size } = await handle.stat();
    for (const number of wanted) {
      const [block, next] = [seal.blocks[number], seal.blocks[number + 1]];
      if (block === undefined || block.at > size) return null;
      const bytes = Buffer.alloc(Math.max(0, Math.min(size, next?.at ?? size) - block.at));
      await handle.read(bytes, 0, bytes.length, block.at);
      const run = runOf(bytes, 0, block.seq);
      if (!run.whole || run.first + run.starts.length !== (next?.seq ?? seal.end)) return null;
      runs.push(run);
    }
  } finally {
    await handle.close();
  }
  return backThrough(runs, filter, least, seal.first);
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
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null; // it is kept no more
    throw error;
  });
  if (bytes === null) return;
  const decoded = decodeHeader(bytes);
  if (decoded === null) {
    if (isLast) return; // one that is being begun
    throw new AuditDamaged(name, 0, -1, 'the segment header is not readable');
  }
  const run = runOf(bytes, decoded.end, decoded.header.firstSeq);
  if (!isLast && !run.whole) {
    const seq = run.first + run.starts.length;
    throw new AuditDamaged(name, run.starts.at(-1) ?? decoded.end, seq, 'no frame can be read here');
  }
  yield* backThrough([run], filter, least, run.first);
}

/** Frames that follow one another. */
interface FrameRun {
  readonly bytes: Buffer;
  /** Seq of the first. */
  readonly first: number;
  /** Start offset of each frame. */
  readonly starts: readonly number[];
  readonly end: number;
  /** True if nothing but them stands there. */
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
      const record = JSON.parse(frame.record.toString()) as AuditRecord; // the writer's format
      looked += 1;
      if (matches(record, filter)) yield { seq: first + i, record };
      else if (looked % STRIDE === 0) yield { seq: first + i, record: null };
    }
  }
  yield { seq: last, record: null };
}
