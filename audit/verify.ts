import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import {
  CHECKPOINTS_FILE,
  type Checkpoint,
  LATEST_FILE,
  openCheckpoint,
  PUBLIC_KEY_FILE,
  parseRetentionNote,
  parseVerifierKey,
  RETAINED_FILE,
  type RetentionCheckpoint,
  splitNotes,
  syncedBefore,
  type VerifierKey,
} from './checkpoint.js';
import { decodeHeader, frameAt, isTorn, type RecordFrame, segmentName, usedEnd } from './format.js';
import { directorySource, type LogSource } from './source.js';
import { RunningRoot, subtreesOf } from './tree.js';
import {
  type AuditProblem,
  type AuditVerdict,
  LogProblemError,
  type ProblemKind,
  type Recovery,
  reportProblem,
} from './verdict.js';
import { SegmentVerifiers, type VerifiedSegment } from './verifying/verify-segment.js';

export interface VerifyOptions {
  /** Verifier key from a trusted source; default: the log's own `checkpoint.vkey`, which gives weaker evidence. */
  readonly verifierKey?: string;
  /**
   * Checkpoint notes stored elsewhere. They expose a log that was truncated or rewritten along with its own
   * checkpoints.
   */
  readonly anchors?: readonly string[];
  /** Called after each segment. */
  readonly progress?: (progress: VerifyProgress) => void;
  /** Time at which the anchor's age is measured, ms since 1970; default: now. */
  readonly now?: number;
}

export interface VerifyProgress {
  readonly records: number;
  readonly segments: number;
  readonly allSegments: number;
}

/**
 * Verifies the whole log segment by segment and stops at the first problem. Writes nothing and is safe to run while the
 * log is being written. Shares only the format, checkpoint parsing and file reading with the writer.
 */
export async function verifyAuditLog(
  log: string | LogSource,
  options: VerifyOptions = {},
): Promise<AuditVerdict> {
  const source = typeof log === 'string' ? directorySource(log) : log;
  for (;;) {
    const retained = await source.retained();
    const result = await verifyOnce(source, options).catch((error: unknown) => ({ error }));
    if (!('error' in result) && result.problem === null) return result;
    // Segments may have expired since the retention note was read. Then the log is verified from the new note.
    if (!retained.equals(await source.retained())) continue;
    if ('error' in result) throw result.error;
    return result;
  }
}

async function verifyOnce(source: LogSource, options: VerifyOptions): Promise<AuditVerdict> {
  const state = new VerificationState();
  try {
    const key = await loadKey(source, options.verifierKey);
    await loadCheckpoints(source, key, options.anchors ?? [], state);
    await loadRetained(source, key, state);
    await readLog(source, key, state, options.progress ?? (() => undefined));
    const stray = await source.strayRecord();
    if (stray !== null)
      reportProblem('sequence', source.place, 0, stray, 'the record is in no segment: added by another hand');
  } catch (error) {
    if (!(error instanceof LogProblemError)) throw error;
    state.problem = error.problem;
  }
  return verdict(state, options.now ?? Date.now());
}

/** Parses the given verifier key or, by default, the log's own. */
async function loadKey(source: LogSource, given: string | undefined): Promise<VerifierKey> {
  const text = given ?? (await source.verifierKey());
  if (text === null) reportProblem('verifier_key', PUBLIC_KEY_FILE, 0, 0, 'the verifier key cannot be read');
  try {
    return parseVerifierKey(text);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new LogProblemError('verifier_key', PUBLIC_KEY_FILE, 0, 0, error.message);
  }
}

/**
 * Reads all checkpoints. Must run before the records are read, so that a concurrent writer cannot make the checkpoints
 * newer than the records.
 */
async function loadCheckpoints(
  source: LogSource,
  key: VerifierKey,
  anchors: readonly string[],
  state: VerificationState,
): Promise<void> {
  const file = await source.checkpoints();
  let offset = 0;
  for (const note of splitNotes(file).notes) {
    const checkpoint = openCheckpoint(note, key);
    if (!checkpoint)
      reportProblem('checkpoint', CHECKPOINTS_FILE, offset, 0, 'the checkpoint is not validly signed');
    const previous = state.checkpoints.at(-1);
    if (previous && previous.size > checkpoint.size) {
      reportProblem(
        'checkpoint',
        CHECKPOINTS_FILE,
        offset,
        checkpoint.size,
        'the checkpoint covers less than the one before',
      );
    }
    state.checkpoints.push(checkpoint);
    offset += Buffer.byteLength(note) + 1;
  }
  if (state.checkpoints.length === 0)
    reportProblem('checkpoint', CHECKPOINTS_FILE, 0, 0, 'there is no checkpoint');
  const [latest] = splitNotes(await source.latest()).notes;
  if (latest !== undefined) {
    const newest = openCheckpoint(latest, key);
    if (!newest) reportProblem('checkpoint', LATEST_FILE, 0, 0, 'the checkpoint is not validly signed');
    state.checkpoints.push(newest);
    state.checkpoints.sort((a, b) => a.size - b.size);
  }
  for (const anchor of anchors) {
    const outside = openCheckpoint(anchor, key);
    if (!outside)
      reportProblem('checkpoint', 'anchor', 0, 0, 'the given anchor is not a checkpoint of this log');
    state.checkpoints.push(outside);
  }
  state.checkpoints.sort((a, b) => a.size - b.size);
}

/** Starts verification after the deleted records, using their signed note; does nothing if no records were deleted. */
async function loadRetained(source: LogSource, key: VerifierKey, state: VerificationState): Promise<void> {
  try {
    const kept = parseRetentionNote(await source.retained(), key);
    if (kept === null) return;
    for (const { start, end, root } of subtreesOf(kept.checkpoint.size, kept.frontier)) {
      state.tree.addComplete(end - start, root);
    }
    if (!state.tree.root().equals(kept.checkpoint.root)) {
      throw new TypeError('what was signed of records that are not kept does not lead to its own root');
    }
    state.begin(kept);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    reportProblem('checkpoint', RETAINED_FILE, 0, 0, error.message);
  }
}

async function readLog(
  source: LogSource,
  key: VerifierKey,
  state: VerificationState,
  progress: (progress: VerifyProgress) => void,
): Promise<void> {
  const first = state.kept?.segment ?? 1;
  const numbers = (await source.segments()).filter((number) => number >= first);
  state.compareRoots('', 0);
  const sizes = state.checkpoints.map(({ size }) => size);
  const verifiers =
    source.dir === null ? null : new SegmentVerifiers(source.dir, numbers.slice(0, -1), sizes);
  try {
    let expected = first;
    for (const number of numbers) {
      const name = segmentName(number);
      if (number !== expected) {
        reportProblem(
          'segment_missing',
          name,
          0,
          state.records,
          `segment ${expected} is missing before this one`,
        );
      }
      const verified = (await verifiers?.verified(number)) ?? null;
      // If independent verification failed, read the segment record by record to find the problem.
      if (verified === null || !state.follow(verified, number, key)) {
        const last = number === numbers.at(-1);
        readSegment(name, await source.segment(number, last), number, last && source.mayTear, key, state);
      }
      expected += 1;
      progress({ records: state.records, segments: expected - first, allSegments: numbers.length });
    }
  } finally {
    await verifiers?.close();
  }
  const size = state.checkpoints.at(-1)?.size ?? 0;
  if (state.records < size) {
    const lost = size - state.records;
    const message = `the last ${lost} of the ${size} records that a checkpoint covers are gone`;
    reportProblem('cut', state.segment, state.offset, state.records, message);
  }
}

function readSegment(
  name: string,
  bytes: Buffer,
  number: number,
  last: boolean,
  key: VerifierKey,
  state: VerificationState,
): void {
  const end = usedEnd(bytes);
  let at = readHeader(name, bytes, number, key, state);
  let group = at;
  while (at < end) {
    const frame = frameAt(bytes, at, end);
    const leaf = frame && createHash('sha256').update(frame.leafInput).digest();
    const chain = leaf && createHash('sha256').update(state.chain).update(leaf).digest();
    if (!frame || !leaf || !chain?.equals(frame.chain)) {
      if (last && isTorn(bytes, at, end, state.records >= syncedBefore(state.newest))) {
        state.tornBytes = end - at;
        break;
      }
      explain(name, at, frame, state);
    }
    if (frame.back === 0) group = at;
    if (at - frame.back !== group)
      reportProblem('frame', name, at, state.records, 'the frame does not belong to its group');
    readRecord(name, frame, key, state);
    state.chain = chain;
    state.tree.add(leaf);
    state.records += 1;
    state.compareRoots(name, at);
    at = frame.next;
  }
  state.segment = name;
  state.offset = at;
}

function readHeader(
  name: string,
  bytes: Buffer,
  number: number,
  key: VerifierKey,
  state: VerificationState,
): number {
  const decoded = decodeHeader(bytes);
  if (!decoded) reportProblem('header', name, 0, state.records, 'the segment header is not readable');
  const { header, end } = decoded;
  if (header.segment !== number || !key.name.endsWith(`/${header.writer}`) || header.epoch < state.epoch) {
    reportProblem('header', name, 0, state.records, 'the segment is not the one that belongs here');
  }
  if (header.firstSeq !== state.records) {
    const message = `the segment starts with record ${header.firstSeq} where ${state.records} is next`;
    reportProblem(header.firstSeq > state.records ? 'gap' : 'header', name, 0, state.records, message);
  }
  if (!header.chain.equals(state.chain)) {
    reportProblem('header', name, 0, state.records, 'the segment does not continue the chain before it');
  }
  state.epoch = header.epoch;
  return end;
}

/** Reports the most likely cause of an invalid frame. */
function explain(name: string, at: number, frame: RecordFrame | null, state: VerificationState): never {
  const seq = state.records;
  if (!frame)
    reportProblem('frame', name, at, seq, 'the bytes here are no frame, and no unfinished write either');
  const stored = parse(frame.record)?.['seq'];
  if (typeof stored === 'number' && stored !== seq) {
    reportProblem(
      'sequence',
      name,
      at,
      seq,
      `record ${stored} stands where ${seq} belongs: removed, inserted or moved`,
    );
  }
  reportProblem(
    'chain',
    name,
    at,
    seq,
    'the record does not follow the chain: altered, or added by another hand',
  );
}

function readRecord(name: string, frame: RecordFrame, key: VerifierKey, state: VerificationState): void {
  const text = frame.record.toString();
  const record = parse(frame.record);
  const seq = state.records;
  if (record?.['seq'] !== seq)
    reportProblem('sequence', name, frame.at, seq, 'the record carries another seq');
  if (canonicalize(record) !== text)
    reportProblem('record', name, frame.at, seq, 'the record is not canonical JSON');
  if (!key.name.endsWith(`/${record['writer']}`) || record['epoch'] !== state.epoch) {
    reportProblem('record', name, frame.at, seq, 'the record is of another writer or epoch');
  }
  const request = String(record['request_id']);
  if (record['kind'] === 'decision' && record['decision'] === 'allow') state.open.add(request);
  if (record['kind'] === 'outcome') state.open.delete(request);
  if (record['kind'] === 'event' && record['action'] === 'audit.recover') readRecovery(record, state);
}

/** Adds the range of records that were recovered without a checkpoint; events of older versions contain no range. */
function readRecovery(record: Record<string, unknown>, state: VerificationState): void {
  const detail = typeof record['detail'] === 'string' ? parse(Buffer.from(record['detail'])) : null;
  const { from, to } = detail ?? {};
  if (typeof from === 'number' && typeof to === 'number')
    state.recovered.push(Object.freeze({ epoch: state.epoch, from, to }));
}

function parse(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    // The value is null or an object, whose members are still `unknown`.
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

class VerificationState {
  records = 0;
  epoch = 0;
  chain: Buffer = Buffer.alloc(32);
  tornBytes = 0;
  segment = '';
  offset = 0;
  problem: AuditProblem | null = null;
  tree = new RunningRoot();
  /** Sorted by tree size, ascending. */
  readonly checkpoints: Checkpoint[] = [];
  readonly recovered: Recovery[] = [];
  readonly open = new Set<string>();
  /** Signed note about deleted records; null if none were deleted. */
  kept: RetentionCheckpoint | null = null;
  #next = 0;

  get newest(): Checkpoint | null {
    return this.checkpoints.at(-1) ?? null;
  }

  begin(kept: RetentionCheckpoint): void {
    this.kept = kept;
    this.records = kept.checkpoint.size;
    this.epoch = kept.epoch;
    this.chain = kept.chain;
    while ((this.checkpoints[this.#next]?.size ?? this.records) < this.records) this.#next += 1;
  }

  /** Adds a verified segment. Returns false, changing nothing, if it does not fit the log or a checkpoint. */
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

  /** Compares the tree with every checkpoint of the same size. */
  compareRoots(name: string, offset: number): void {
    for (;;) {
      const checkpoint = this.checkpoints[this.#next];
      if (!checkpoint || checkpoint.size !== this.records) return;
      if (!checkpoint.root.equals(this.tree.root())) {
        const message = `the first ${this.records} records are not those that the checkpoint signed`;
        reportProblem('root', name, offset, Math.max(0, this.records - 1), message);
      }
      this.#next += 1;
    }
  }
}

const MISSING: ReadonlySet<ProblemKind> = new Set(['cut', 'gap', 'segment_missing']);

function verdict(state: VerificationState, now: number): AuditVerdict {
  const { problem } = state;
  const { newest } = state;
  const time = newest?.time ?? null;
  const missing = problem !== null && MISSING.has(problem.kind);
  const damaged = problem !== null && problem.kind !== 'cut';
  return {
    integrity: damaged ? 'damaged' : 'intact',
    completeness: missing ? 'incomplete' : problem ? 'unknown' : 'complete',
    anchor: newest ? { size: newest.size, time, ageMs: time === null ? null : now - Date.parse(time) } : null,
    records: state.records - (state.kept?.checkpoint.size ?? 0),
    kept:
      state.kept === null ? null : { from: state.kept.checkpoint.size, since: state.kept.checkpoint.time },
    unanchored: Math.max(0, state.records - (newest?.size ?? 0)),
    recovered: state.recovered,
    openDecisions: state.open.size,
    tornBytes: state.tornBytes,
    sync: newest?.sync ?? 'disk',
    problem,
  };
}
