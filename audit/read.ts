import { access, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AuditDamaged } from './errors.js';
import { decodeHeader, frameAt, type RecordFrame, segmentName, segmentNumber, usedEnd } from './format.js';
import type { AuditRecord } from './record.js';

export interface ReadOptions {
  /** First seq to read; default 0. */
  readonly from?: number;
  /** Segment to begin with, or the first that there is after it; default: the one that holds `from`. */
  readonly segment?: number;
  /** Wait for more at the end, as `tail -f` does; default false. */
  readonly follow?: boolean;
  /** Ends a follow; the iterator then finishes without an error. */
  readonly signal?: AbortSignal;
  /** Poll interval of a follow, ms; default 200. */
  readonly pollMs?: number;
}

export interface StoredFrame {
  readonly seq: number;
  /** Number of the segment that it stands in. */
  readonly segment: number;
  readonly frame: RecordFrame;
}

const CHUNK = 1024 * 1024;

/**
 * The records in order, also while a writer adds to them. Reading checks the framing only: what is to be
 * relied on goes through `verifyAuditLog`.
 *
 * @throws AuditDamaged where a segment before the last cannot be read to its end
 */
export async function* readRecords(
  dir: string,
  options: ReadOptions = {},
): AsyncGenerator<AuditRecord, void, void> {
  for await (const { frame } of readFrames(dir, options)) {
    yield recordIn(frame);
  }
}

/** The record of a frame. @throws SyntaxError where it is no JSON */
export function recordIn({ record }: RecordFrame): AuditRecord {
  return JSON.parse(record.toString()) as AuditRecord; // the writer's format
}

/** The records of a log as frames, unread; a frame's bytes are valid until the next one is asked for. */
export async function* readFrames(
  dir: string,
  options: ReadOptions = {},
): AsyncGenerator<StoredFrame, void, void> {
  const from = options.from ?? 0;
  let segment = await firstSegment(dir, options);
  while (segment === null) {
    if (!(await mayWait(options))) return;
    segment = await firstSegment(dir, options);
  }
  for (; ; segment += 1) {
    for await (const stored of readSegment(dir, segment, options)) if (stored.seq >= from) yield stored;
    if (!(await exists(dir, segment + 1))) return;
  }
}

async function* readSegment(
  dir: string,
  segment: number,
  options: ReadOptions,
): AsyncGenerator<StoredFrame, void, void> {
  const path = join(dir, segmentName(segment));
  let handle = await open(path, 'r');
  /** True if the segment was complete when it was opened, so that what is there is final. */
  let final = false;
  try {
    const chunk = Buffer.alloc(CHUNK);
    const { bytesRead } = await handle.read(chunk, 0, CHUNK, 0);
    const decoded = decodeHeader(chunk.subarray(0, bytesRead));
    if (!decoded) throw new AuditDamaged(segmentName(segment), 0, -1, 'the segment header is not readable');
    let position = decoded.end;
    let seq = decoded.header.firstSeq;
    for (;;) {
      // INVARIANT: asked before reading, so that nothing written before the next segment came is missed.
      const isLast = !(await exists(dir, segment + 1));
      const read = await handle.read(chunk, 0, CHUNK, position);
      const bytes = chunk.subarray(0, read.bytesRead);
      let at = 0;
      for (let frame = frameAt(bytes, at, bytes.length); frame; frame = frameAt(bytes, at, bytes.length)) {
        yield { seq, segment, frame };
        seq += 1;
        at = frame.next;
      }
      position += at;
      if (at > 0) continue;
      if (isLast) {
        if (!(await mayWait(options))) return;
      } else if (usedEnd(bytes) === 0) {
        return;
      } else if (final) {
        throw new AuditDamaged(segmentName(segment), position, seq, 'no frame can be read here');
      } else {
        // A writer whose disk failed has cut a torn tail by putting another file in this one's place.
        await handle.close();
        handle = await open(path, 'r');
        final = true;
      }
    }
  } finally {
    await handle.close();
  }
}

/** The segment to begin with, or the first there is; null if there is none. */
async function firstSegment(dir: string, { from = 0, segment }: ReadOptions): Promise<number | null> {
  const numbers = (await readdir(dir)).map(segmentNumber).filter((number) => number !== null);
  numbers.sort((a, b) => b - a);
  if (segment !== undefined) return numbers.findLast((n) => n >= segment) ?? null;
  for (const number of numbers) {
    const firstSeq = await readFirstSeq(join(dir, segmentName(number)));
    if (firstSeq !== null && firstSeq <= from) return number;
  }
  return numbers.at(-1) ?? null;
}

async function readFirstSeq(path: string): Promise<number | null> {
  const handle = await open(path, 'r');
  try {
    const head = Buffer.alloc(256);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    return decodeHeader(head.subarray(0, bytesRead))?.header.firstSeq ?? null;
  } finally {
    await handle.close();
  }
}

/** Waits one poll if the reader follows; false once reading should end. */
async function mayWait({ follow, signal, pollMs }: ReadOptions): Promise<boolean> {
  if (!follow || signal?.aborted) return false;
  try {
    await sleep(pollMs ?? 200, undefined, signal ? { signal } : {});
    return true;
  } catch {
    // Only the signal ends a sleep early.
    return false;
  }
}

async function exists(dir: string, segment: number): Promise<boolean> {
  try {
    await access(join(dir, segmentName(segment)));
    return true;
  } catch {
    return false;
  }
}
