import { access, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AuditDamaged } from './errors.js';
import {
  decodeHeader,
  frameAt,
  type RecordFrame,
  type SegmentHeader,
  segmentName,
  usedEnd,
} from './format.js';
import type { AuditRecord } from './record.js';
import { segmentNumbers } from './source.js';

export interface ReadOptions {
  /** First seq to read; default 0. */
  readonly from?: number;
  /** First segment to read, or if it no longer exists, the next one; default: the segment that contains `from`. */
  readonly segment?: number;
  /** Wait for new records like `tail -f`; default false. */
  readonly follow?: boolean;
  /** Stops following without raising an error. */
  readonly signal?: AbortSignal;
  /** Poll interval while following, ms; default 200. */
  readonly pollMs?: number;
}

export interface StoredFrame {
  readonly seq: number;
  readonly segment: number;
  readonly frame: RecordFrame;
}

const CHUNK = 1024 * 1024;

/**
 * Reads records in order; safe while the log is being written. Checks framing only; to verify, use `verifyAuditLog`.
 *
 * @throws AuditDamaged if a segment other than the last cannot be read to its end
 */
export async function* readRecords(
  dir: string,
  options: ReadOptions = {},
): AsyncGenerator<AuditRecord, void, void> {
  for await (const { frame } of readFrames(dir, options)) {
    yield recordIn(frame);
  }
}

/** Parses the record in a frame. @throws SyntaxError if it is not JSON */
export function recordIn({ record }: Pick<RecordFrame, 'record'>): AuditRecord {
  return JSON.parse(record.toString()) as AuditRecord; // encoded by the writer
}

/** Yields the unparsed frames of a log; the bytes of a frame are valid only until the next iteration. */
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
  /** True if the file was opened after its segment was complete. */
  let final = false;
  try {
    const chunk = Buffer.alloc(CHUNK);
    const { bytesRead } = await handle.read(chunk, 0, CHUNK, 0);
    const decoded = decodeHeader(chunk.subarray(0, bytesRead));
    if (!decoded) throw new AuditDamaged(segmentName(segment), 0, -1, 'the segment header is not readable');
    let position = decoded.end;
    let seq = decoded.header.firstSeq;
    for (;;) {
      // INVARIANT: checked before reading, so that nothing is missed that was written before the next segment began.
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
        // Recovery replaces a segment file to cut off a torn tail, so reopen it once.
        await handle.close();
        handle = await open(path, 'r');
        final = true;
      }
    }
  } finally {
    await handle.close();
  }
}

/** Returns the number of the first segment to read; null if the log has no segment. */
async function firstSegment(dir: string, { from = 0, segment }: ReadOptions): Promise<number | null> {
  const numbers = (await segmentNumbers(dir)).toReversed();
  if (segment !== undefined) return numbers.findLast((n) => n >= segment) ?? null;
  for (const number of numbers) {
    const header = await readHeader(join(dir, segmentName(number)));
    if (header !== null && header.firstSeq <= from) return number;
  }
  return numbers.at(-1) ?? null;
}

/** Reads the header of a segment file; null if it has no valid header. */
export async function readHeader(path: string): Promise<SegmentHeader | null> {
  const handle = await open(path, 'r');
  try {
    const head = Buffer.alloc(256);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    return decodeHeader(head.subarray(0, bytesRead))?.header ?? null;
  } finally {
    await handle.close();
  }
}

/** Waits for one poll interval if following; returns false if reading should end. */
async function mayWait({ follow, signal, pollMs }: ReadOptions): Promise<boolean> {
  if (!follow || signal?.aborted) return false;
  try {
    await sleep(pollMs ?? 200, undefined, signal ? { signal } : {});
    return true;
  } catch {
    // aborted by the signal
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
