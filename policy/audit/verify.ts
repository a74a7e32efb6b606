import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import canonicalize from 'canonicalize';
import {
  CHECKPOINTS_FILE,
  type Checkpoint,
  LATEST_FILE,
  openCheckpoint,
  PUBLIC_KEY_FILE,
  parseVerifierKey,
  splitNotes,
  type VerifierKey,
} from './checkpoint.js';
import { decodeHeader, type Frame, frameAt, isTorn, segmentName, segmentNumber, usedEnd } from './format.js';
import { RunningRoot } from './tree.js';
import {
  type AuditProblem,
  type AuditVerdict,
  Found,
  found,
  type ProblemKind,
  type Recovery,
} from './verdict.js';

export interface VerifyOptions {
  /** Verifier key from outside the directory; default: the directory's own `checkpoint.vkey`, which proves less. */
  readonly verifierKey?: string;
  /** A checkpoint note kept elsewhere: shows a log that was cut back together with its checkpoints. */
  readonly anchor?: string;
  /** Clock for the anchor's age, ms since 1970; default now. */
  readonly now?: number;
}

/**
 * Reads the whole log, segment by segment, and judges it; writes nothing and may run beside the writer. It shares
 * the format with the writer, not its code, and ends at the first problem.
 */
export async function verifyAuditLog(dir: string, options: VerifyOptions = {}): Promise<AuditVerdict> {
  const check = new Check();
  try {
    const key = await loadKey(dir, options.verifierKey);
    await loadCheckpoints(dir, key, options.anchor, check);
    await readLog(dir, key, check);
  } catch (error) {
    if (!(error instanceof Found)) throw error;
    check.problem = error.problem;
  }
  return verdict(check, options.now ?? Date.now());
}

/** The trusted key and the checkpoints are read before the records, so that a live writer is never ahead of them. */
async function loadKey(dir: string, given: string | undefined): Promise<VerifierKey> {
  try {
    return parseVerifierKey(given ?? (await readFile(join(dir, PUBLIC_KEY_FILE), 'utf8')));
  } catch (error) {
    const message = error instanceof TypeError ? error.message : 'the verifier key cannot be read';
    throw new Found('verifier_key', PUBLIC_KEY_FILE, 0, 0, message);
  }
}

async function loadCheckpoints(
  dir: string,
  key: VerifierKey,
  anchor: string | undefined,
  check: Check,
): Promise<void> {
  const file = await readFile(join(dir, CHECKPOINTS_FILE)).catch(() => Buffer.alloc(0));
  let offset = 0;
  for (const note of splitNotes(file).notes) {
    const checkpoint = openCheckpoint(note, key);
    if (!checkpoint) found('checkpoint', CHECKPOINTS_FILE, offset, 0, 'the checkpoint is not validly signed');
    const previous = check.checkpoints.at(-1);
    if (previous && previous.size > checkpoint.size) {
      found(
        'checkpoint',
        CHECKPOINTS_FILE,
        offset,
        checkpoint.size,
        'the checkpoint covers less than the one before',
      );
    }
    check.checkpoints.push(checkpoint);
    offset += Buffer.byteLength(note) + 1;
  }
  if (check.checkpoints.length === 0) found('checkpoint', CHECKPOINTS_FILE, 0, 0, 'there is no checkpoint');
  const [latest] = splitNotes(await readFile(join(dir, LATEST_FILE)).catch(() => Buffer.alloc(0))).notes;
  if (latest !== undefined) {
    const newest = openCheckpoint(latest, key);
    if (!newest) found('checkpoint', LATEST_FILE, 0, 0, 'the checkpoint is not validly signed');
    check.checkpoints.push(newest);
    check.checkpoints.sort((a, b) => a.size - b.size);
  }
  if (anchor === undefined) return;
  const outside = openCheckpoint(anchor, key);
  if (!outside) found('checkpoint', 'anchor', 0, 0, 'the given anchor is not a checkpoint of this log');
  check.checkpoints.push(outside);
  check.checkpoints.sort((a, b) => a.size - b.size);
}

async function readLog(dir: string, key: VerifierKey, check: Check): Promise<void> {
  const numbers = (await readdir(dir)).map(segmentNumber).filter((number) => number !== null);
  numbers.sort((a, b) => a - b);
  check.compareRoots('', 0);
  let expected = 1;
  for (const number of numbers) {
    const name = segmentName(number);
    if (number !== expected) {
      found('segment_missing', name, 0, check.records, `segment ${expected} is missing before this one`);
    }
    const last = number === numbers.at(-1);
    const path = join(dir, name);
    readSegment(name, await (last ? readLive(path) : readFile(path)), number, last, key, check);
    expected += 1;
  }
  const size = check.checkpoints.at(-1)?.size ?? 0;
  if (check.records < size) {
    const lost = size - check.records;
    const message = `the last ${lost} of the ${size} records that a checkpoint covers are gone`;
    found('cut', check.segment, check.offset, check.records, message);
  }
}

/**
 * A segment that may be written to meanwhile. One pass could see a later group but miss an earlier one; what the
 * first pass saw the end of is whole in the second, as groups are written one after another.
 */
async function readLive(path: string): Promise<Buffer> {
  const end = usedEnd(await readFile(path));
  return (await readFile(path)).subarray(0, end);
}

function readSegment(
  name: string,
  bytes: Buffer,
  number: number,
  last: boolean,
  key: VerifierKey,
  check: Check,
): void {
  const end = usedEnd(bytes);
  let at = readHeader(name, bytes, number, key, check);
  let group = at;
  while (at < end) {
    const frame = frameAt(bytes, at, end);
    const leaf = frame && createHash('sha256').update(frame.leafInput).digest();
    const chain = leaf && createHash('sha256').update(check.chain).update(leaf).digest();
    if (!frame || !leaf || !chain?.equals(frame.chain)) {
      if (last && isTorn(bytes, at, end)) {
        check.tornBytes = end - at;
        break;
      }
      explain(name, at, frame, check);
    }
    if (frame.back === 0) group = at;
    if (at - frame.back !== group)
      found('frame', name, at, check.records, 'the frame does not belong to its group');
    readRecord(name, frame, key, check);
    check.chain = chain;
    check.tree.add(leaf);
    check.records += 1;
    check.compareRoots(name, at);
    at = frame.next;
  }
  check.segment = name;
  check.offset = at;
}

function readHeader(name: string, bytes: Buffer, number: number, key: VerifierKey, check: Check): number {
  const decoded = decodeHeader(bytes);
  if (!decoded) found('header', name, 0, check.records, 'the segment header is not readable');
  const { header, end } = decoded;
  if (header.segment !== number || !key.name.endsWith(`/${header.writer}`) || header.epoch < check.epoch) {
    found('header', name, 0, check.records, 'the segment is not the one that belongs here');
  }
  if (header.firstSeq !== check.records) {
    const message = `the segment starts with record ${header.firstSeq} where ${check.records} is next`;
    found(header.firstSeq > check.records ? 'gap' : 'header', name, 0, check.records, message);
  }
  if (!header.chain.equals(check.chain)) {
    found('header', name, 0, check.records, 'the segment does not continue the chain before it');
  }
  check.epoch = header.epoch;
  return end;
}

/** Says what a frame that does not follow most likely is. */
function explain(name: string, at: number, frame: Frame | null, check: Check): never {
  const seq = check.records;
  if (!frame) found('frame', name, at, seq, 'the bytes here are no frame, and no unfinished write either');
  const stored = parse(frame.record)?.['seq'];
  if (typeof stored === 'number' && stored !== seq) {
    found(
      'sequence',
      name,
      at,
      seq,
      `record ${stored} stands where ${seq} belongs: removed, inserted or moved`,
    );
  }
  found('chain', name, at, seq, 'the record does not follow the chain: altered, or added by another hand');
}

function readRecord(name: string, frame: Frame, key: VerifierKey, check: Check): void {
  const text = frame.record.toString();
  const record = parse(frame.record);
  const seq = check.records;
  if (record?.['seq'] !== seq) found('sequence', name, frame.at, seq, 'the record carries another seq');
  if (canonicalize(record) !== text) found('record', name, frame.at, seq, 'the record is not canonical JSON');
  if (!key.name.endsWith(`/${record['writer']}`) || record['epoch'] !== check.epoch) {
    found('record', name, frame.at, seq, 'the record is of another writer or epoch');
  }
  const request = String(record['request_id']);
  if (record['kind'] === 'decision' && record['decision'] === 'allow') check.open.add(request);
  if (record['kind'] === 'outcome') check.open.delete(request);
  if (record['kind'] === 'event' && record['action'] === 'audit.recover') readRecovery(record, check);
}

/** What a start found without a checkpoint; older logs do not say from where to where. */
function readRecovery(record: Record<string, unknown>, check: Check): void {
  const detail = typeof record['detail'] === 'string' ? parse(Buffer.from(record['detail'])) : null;
  const { from, to } = detail ?? {};
  if (typeof from === 'number' && typeof to === 'number')
    check.recovered.push(Object.freeze({ epoch: check.epoch, from, to }));
}

function parse(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    // Just checked to be an object; members are read as unknown.
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/** What is known so far. */
class Check {
  records = 0;
  epoch = 0;
  chain: Buffer = Buffer.alloc(32);
  tornBytes = 0;
  segment = '';
  offset = 0;
  problem: AuditProblem | null = null;
  readonly tree = new RunningRoot();
  readonly checkpoints: Checkpoint[] = [];
  readonly recovered: Recovery[] = [];
  readonly open = new Set<string>();
  #next = 0;

  /** Compares with every checkpoint of the present size. */
  compareRoots(name: string, offset: number): void {
    for (;;) {
      const checkpoint = this.checkpoints[this.#next];
      if (!checkpoint || checkpoint.size !== this.records) return;
      if (!checkpoint.root.equals(this.tree.root())) {
        const message = `the first ${this.records} records are not those that the checkpoint signed`;
        found('root', name, offset, Math.max(0, this.records - 1), message);
      }
      this.#next += 1;
    }
  }
}

const MISSING: ReadonlySet<ProblemKind> = new Set(['cut', 'gap', 'segment_missing']);

function verdict(check: Check, now: number): AuditVerdict {
  const { problem } = check;
  const newest = check.checkpoints.at(-1);
  const time = newest?.time ?? null;
  const missing = problem !== null && MISSING.has(problem.kind);
  const damaged = problem !== null && problem.kind !== 'cut';
  return {
    integrity: damaged ? 'damaged' : 'intact',
    completeness: missing ? 'incomplete' : problem ? 'unknown' : 'complete',
    anchor: newest ? { size: newest.size, time, ageMs: time === null ? null : now - Date.parse(time) } : null,
    records: check.records,
    unanchored: Math.max(0, check.records - (newest?.size ?? 0)),
    recovered: check.recovered,
    openDecisions: check.open.size,
    tornBytes: check.tornBytes,
    problem,
  };
}
