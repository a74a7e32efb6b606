import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  chainHash,
  decodeHeader,
  encodeHeader,
  FRAME_HEAD,
  FRAME_TAIL,
  frameAt,
  leafHash,
  putFrameHead,
  putFrameTail,
  type RecordFrame,
  type SegmentHeader,
  segmentNumber,
  usedEnd,
} from '../../audit/format.js';
import {
  type AppendDone,
  type AuditEntry,
  type AuditLog,
  type AuditLogOptions,
  openAuditLog,
} from '../../audit/index.js';
import type { CommonEntry } from '../../audit/record.js';

export function tempDir(): string {
  return mkdtempSync(join(tmpdir(), 'osl-audit-'));
}

/** A decision (even n) or its outcome (odd n) of request n div 2. */
export function entry(n: number): AuditEntry {
  const request = {
    request_id: `req-${Math.floor(n / 2)}`,
    tenant: 'acme',
    surface: 'wire',
    action: 'query',
    subject: 'analyst-eu',
    chain: ['svc-bi', 'analyst-eu'],
    form: 'structured',
    objects: ['osl.entities.order'],
    decision: 'allow',
    versions: { manifest: 'm1', policy: 'p1' },
  } as const;
  return n % 2 === 0
    ? { ...request, kind: 'decision' }
    : { ...request, kind: 'outcome', outcome: 'ok', rows: 3, duration_us: 1200 };
}

/** The two ways in which a log takes a record, of the same entry. */
export type Append = (log: AuditLog, entry: AuditEntry) => Promise<number>;
export const WAYS = {
  entry: (log, entry) => log.append(entry),
  form: (log, entry) => {
    const { common, requestId, statementHmac, rows, durationUs, standby } = parted(entry);
    return new Promise((resolve, reject) => {
      const done: AppendDone = (error, seq) => (error ? reject(error) : resolve(seq));
      log.appendForm(log.form(common), requestId, statementHmac, rows, durationUs, done, standby);
    });
  },
} as const satisfies Record<string, Append>;

/** Returns an entry with some fields changed; the log's own clock stamps it. */
export function parted(entry: AuditEntry): {
  readonly common: CommonEntry;
  readonly requestId: string;
  readonly statementHmac: string | null;
  readonly rows: number | null;
  readonly durationUs: number | null;
  readonly standby: AuditEntry['standby'];
} {
  const { request_id, ts: _, statement_hmac, rows = null, duration_us = null, standby, ...common } = entry;
  return {
    common,
    requestId: request_id,
    statementHmac: statement_hmac ?? null,
    rows,
    durationUs: duration_us,
    standby,
  };
}

/** A closed log with `count` entries besides its own `audit.open` (seq 0) and `audit.close` (last). */
export async function writtenLog(count: number, options: Partial<AuditLogOptions> = {}): Promise<string> {
  const dir = options.dir ?? tempDir();
  const log = await openAuditLog({ segmentBytes: 64 * 1024, ...options, dir });
  for (let n = 0; n < count; n += 1) await log.append(entry(n));
  await log.close();
  return dir;
}

/** Runs `work` while the clock shows January 2020. */
export async function in2020(work: () => Promise<void>): Promise<void> {
  const real = Date.now;
  const since = real();
  Date.now = () => Date.UTC(2020, 0, 1) + real() - since;
  try {
    await work();
  } finally {
    Date.now = real;
  }
}

export function segmentPaths(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => segmentNumber(name) !== null)
    .sort()
    .map((name) => join(dir, name));
}

export function lastSegment(dir: string): string {
  return segmentPaths(dir).at(-1) ?? '';
}

export interface Segment {
  readonly path: string;
  readonly header: SegmentHeader;
  readonly frames: RecordFrame[];
}

export function readSegmentFile(path: string): Segment {
  const bytes = readFileSync(path);
  const decoded = decodeHeader(bytes);
  if (!decoded) throw new Error(`no header in ${path}`);
  const frames: RecordFrame[] = [];
  let at = decoded.end;
  for (let frame = frameAt(bytes, at, usedEnd(bytes)); frame; frame = frameAt(bytes, at, usedEnd(bytes))) {
    frames.push(frame);
    at = frame.next;
  }
  return { path, header: decoded.header, frames };
}

/** One frame, correctly chained to `previous`. */
export function makeFrame(record: string, previous: Buffer, back = 0): { bytes: Buffer; chain: Buffer } {
  const length = Buffer.byteLength(record);
  const bytes = Buffer.alloc(FRAME_HEAD + length + FRAME_TAIL);
  putFrameHead(bytes, 0, back, length);
  bytes.write(record, FRAME_HEAD);
  const chain = chainHash(previous, leafHash(bytes.subarray(FRAME_HEAD - 1, FRAME_HEAD + length)));
  putFrameTail(bytes, 0, length, chain.toString('latin1'));
  return { bytes, chain };
}

/** Writes a log's records anew with a correct chain throughout, as its disk's owner could. */
export function rechain(dir: string, change: (record: string) => string): void {
  let chain: Buffer | null = null;
  for (const path of segmentPaths(dir)) {
    const { header, frames } = readSegmentFile(path);
    chain ??= header.chain;
    const parts: Buffer[] = [encodeHeader({ ...header, chain })];
    for (const frame of frames) {
      const made = makeFrame(change(frame.record.toString()), chain);
      chain = made.chain;
      parts.push(made.bytes);
    }
    writeFileSync(path, Buffer.concat(parts));
  }
}
