import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import {
  CHECKPOINTS_FILE,
  type Checkpoint,
  LATEST_FILE,
  openCheckpoint,
  PUBLIC_KEY_FILE,
  parseVerifierKey,
  RETAINED_FILE,
  splitNotes,
  type VerifierKey,
} from './checkpoint.js';
import { decodeHeader, frameAt, isTorn, type RecordFrame, segmentName, usedEnd } from './format.js';
import { type RetentionCheckpoint, retainedIn } from './retained.js';
import { directorySource, type LogSource } from './source.js';
import { RunningRoot, subtreesOf } from './tree.js';
import {
  type AuditProblem,
  type AuditVerdict,
  found,
  LogProblemError,
  type ProblemKind,
  type Recovery,
} from './verdict.js';
import type { VerifiedSegment } from './verifying/judge.js';
import { SegmentVerifiers } from './verifying/judges.js';

export interface VerifyOptions {
  /** Verifier key from outside the directory; default: the directory's own `checkpoint.vkey`, which proves less. */
  readonly verifierKey?: string;
  /** Checkpoint notes kept elsewhere: they show a log that was cut back, or written anew, with its own checkpoints. */
  readonly anchors?: readonly string[];
  /** Hears how far it is, after each segment. */
  readonly progress?: (progress: VerifyProgress) => void;
  /** Clock for the anchor's age, ms since 1970; default now. */
  readonly now?: number;
}

export interface VerifyProgress {
  readonly records: number;
  readonly segments: number;
  readonly allSegments: number;
}

/**
 * Reads the whole log, segment by segment, and judges it; writes nothing and may run beside the writer. It shares
 * the format with the writer, not its code, and ends at the first problem.
 */
export async function verifyAuditLog(
  log: string | LogSource,
  options: VerifyOptions = {},
): Promise<AuditVerdict> {
  const source = typeof log === 'string' ? directorySource(log) : log;
  const check = new Check();
  try {
    const key = await loadKey(source, options.verifierKey);
    await loadCheckpoints(source, key, options.anchors ?? [], check);
    await loadRetained(source, key, check);
    await readLog(source, key, check, options.progress ?? (() => undefined));
  } catch (error) {
    if (!(error instanceof LogProblemError)) throw error;
    check.problem = error.problem;
  }
  return verdict(check, options.now ?? Date.now());
}

/** The trusted key and the checkpoints are read before the records, so that a live writer is never ahead of them. */
async function loadKey(source: LogSource, given: string | undefined): Promise<VerifierKey> {
  const text = given ?? (await source.verifierKey());
  if (text === null) found('verifier_key', PUBLIC_KEY_FILE, 0, 0, 'the verifier key cannot be read');
  try {
    return parseVerifierKey(text);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new LogProblemError('verifier_key', PUBLIC_KEY_FILE, 0, 0, error.message);
  }
}

async function loadCheckpoints(
  source: LogSource,
  key: VerifierKey,
  anchors: readonly string[],
  check: Check,
): Promise<void> {
  const file = await source.checkpoints();
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
  const [latest] = splitNotes(await source.latest()).notes;
  if (latest !== undefined) {
    const newest = openCheckpoint(latest, key);
    if (!newest) found('checkpoint', LATEST_FILE, 0, 0, 'the checkpoint is not validly signed');
    check.checkpoints.push(newest);
    check.checkpoints.sort((a, b) => a.size - b.size);
  }
  for (const anchor of anchors) {
    const outside = openCheckpoint(anchor, key);
    if (!outside) found('checkpoint', 'anchor', 0, 0, 'the given anchor is not a checkpoint of this log');
    check.checkpoints.push(outside);
  }
  check.checkpoints.sort((a, b) => a.size - b.size);
}

/** Loads the signed note that stands for records that are no longer kept. */
async function loadRetained(source: LogSource, key: VerifierKey, check: Check): Promise<void> {
  try {
    const kept = retainedIn(await source.retained(), key);
    if (kept === null) return;
    for (const { start, end, root } of subtreesOf(kept.checkpoint.size, kept.frontier)) {
      check.tree.addComplete(end - start, root);
    }
    if (!check.tree.root().equals(kept.checkpoint.root)) {
      throw new TypeError('what was signed of records that are not kept does not lead to its own root');
    }
    check.begin(kept);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    found('checkpoint', RETAINED_FILE, 0, 0, error.message);
  }
}

async function readLog(
  source: LogSource,
  key: VerifierKey,
  check: Check,
  progress: (progress: VerifyProgress) => void,
): Promise<void> {
  const first = check.kept?.segment ?? 1;
  const numbers = (await source.segments()).filter((number) => number >= first);
  check.compareRoots('', 0);
  const sizes = check.checkpoints.map(({ size }) => size);
  const judges = source.dir === null ? null : new SegmentVerifiers(source.dir, numbers.slice(0, -1), sizes);
  try {
    let expected = first;
    for (const number of numbers) {
      const name = segmentName(number);
      if (number !== expected) {
        found('segment_missing', name, 0, check.records, `segment ${expected} is missing before this one`);
      }
      const judged = (await judges?.judged(number)) ?? null;
      // What does not hold by itself, or does not follow, is read record by record, to say what it is.
      if (judged === null || !check.follow(judged, number, key)) {
        const last = number === numbers.at(-1);
        readSegment(name, await source.segment(number, last), number, last && source.mayTear, key, check);
      }
      expected += 1;
      progress({ records: check.records, segments: expected - first, allSegments: numbers.length });
    }
  } finally {
    await judges?.close();
  }
  const size = check.checkpoints.at(-1)?.size ?? 0;
  if (check.records < size) {
    const lost = size - check.records;
    const message = `the last ${lost} of the ${size} records that a checkpoint covers are gone`;
    found('cut', check.segment, check.offset, check.records, message);
  }
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
function explain(name: string, at: number, frame: RecordFrame | null, check: Check): never {
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

function readRecord(name: string, frame: RecordFrame, key: VerifierKey, check: Check): void {
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

/** Range of records that a start recovered without a checkpoint; older logs do not state it. */
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

/** State of a verification. */
class Check {
  records = 0;
  epoch = 0;
  chain: Buffer = Buffer.alloc(32);
  tornBytes = 0;
  segment = '';
  offset = 0;
  problem: AuditProblem | null = null;
  tree = new RunningRoot();
  readonly checkpoints: Checkpoint[] = [];
  readonly recovered: Recovery[] = [];
  readonly open = new Set<string>();
  /** Signed note of the records that are no longer kept. */
  kept: RetentionCheckpoint | null = null;
  #next = 0;

  begin(kept: RetentionCheckpoint): void {
    this.kept = kept;
    this.records = kept.checkpoint.size;
    this.epoch = kept.epoch;
    this.chain = kept.chain;
    while ((this.checkpoints[this.#next]?.size ?? this.records) < this.records) this.#next += 1;
  }

  /** Goes on with a segment that holds by itself; false, and nothing is changed, where it does not follow. */
  follow(
    { header, chain, pieces, opened, closed, closedOdd, recovered }: VerifiedSegment,
    number: number,
    key: VerifierKey,
  ): boolean {
    const follows =
      header.segment === number &&
      key.name.endsWith(`/${header.writer}`) &&
      header.epoch >= this.epoch &&
      header.firstSeq === this.records &&
      this.chain.equals(header.chain);
    if (!follows) return false;
    const tree = this.tree.copy();
    const roots: Buffer[] = [];
    for (const { end, subtrees } of pieces) {
      for (const { leaves, root } of subtrees) tree.addComplete(leaves, root);
      for (let at = this.#next + roots.length; this.checkpoints[at]?.size === end; at += 1) {
        if (!this.checkpoints[at]?.root.equals(tree.root())) return false;
        roots.push(tree.root());
      }
    }
    this.#next += roots.length;
    this.tree = tree;
    this.records = pieces.at(-1)?.end ?? this.records;
    this.epoch = header.epoch;
    this.chain = Buffer.from(chain);
    if (this.open.size > 0) for (const request of closed.split('\n')) this.open.delete(request);
    for (const request of closedOdd) this.open.delete(request);
    for (const request of opened) this.open.add(request);
    this.recovered.push(...recovered.map((one) => Object.freeze(one)));
    this.segment = segmentName(number);
    this.offset = 0;
    return true;
  }

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
    records: check.records - (check.kept?.checkpoint.size ?? 0),
    kept:
      check.kept === null ? null : { from: check.kept.checkpoint.size, since: check.kept.checkpoint.time },
    unanchored: Math.max(0, check.records - (newest?.size ?? 0)),
    recovered: check.recovered,
    openDecisions: check.open.size,
    tornBytes: check.tornBytes,
    problem,
  };
}
