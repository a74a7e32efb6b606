import {
  type Checkpoint,
  openCheckpoint,
  parseRetentionNote,
  parseVerifierKey,
  type RetentionCheckpoint,
  splitNotes,
  type VerifierKey,
} from './checkpoint.js';
import { decodeHeader, frameAt, leafHash, type RecordFrame, usedEnd } from './format.js';
import { parseProof, proofText } from './proof-formats.js';
import { recordIn } from './read.js';
import type { AuditRecord } from './record.js';
import { segmentIndexes } from './search/index-files.js';
import { candidates } from './search/search.js';
import {
  directorySource,
  type KnownBoundary,
  type LogIndex,
  type LogLeaf,
  type LogSource,
  type StoredRecord,
  segmentNumbers,
} from './source.js';
import { type LeafRange, leafOf, pathRanges, RunningRoot, rootFromPath, subtreesOf } from './tree.js';

/** Returns an index that uses the index files next to the segments, and creates missing ones. */
function directoryIndex(source: LogSource, dir: string): LogIndex {
  return logIndex(source, {
    segmentsOf: async (requestId) => {
      const found: number[] = [];
      let lastIndexed = 0;
      for await (const index of segmentIndexes(dir, true)) {
        lastIndexed = index.segment;
        if (candidates(index, { requestId }).length > 0) found.push(index.segment);
      }
      const others = (await segmentNumbers(dir)).filter((segment) => segment > lastIndexed);
      return [...found, ...others];
    },
    places: async () => {
      const places: SegmentBoundary[] = [];
      for await (const { segment, end, frontier } of segmentIndexes(dir)) {
        const roots = frontier.map((root) => Buffer.from(root, 'hex'));
        places.push({ segment: segment + 1, size: end, roots });
      }
      return places;
    },
  });
}

/** Inclusion proof of one record under a signed checkpoint. */
export interface AuditProof {
  readonly seq: number;
  /** C2SP tlog-proof; its `extra` line holds the record as base64, and it ends with the checkpoint note. */
  readonly text: string;
}

export type InclusionVerdict =
  | {
      readonly ok: true;
      readonly record: AuditRecord;
      readonly checkpoint: ProvenCheckpoint;
    }
  | { readonly ok: false; readonly reason: string };

/** The checkpoint under which a record is proved. */
export interface ProvenCheckpoint extends Pick<Checkpoint, 'origin' | 'size' | 'time'> {
  /** Root hash of the tree, base64. */
  readonly root: string;
}

export interface ProveOptions {
  /** True to read every record instead of using an index. */
  readonly everything?: boolean;
}

/**
 * Returns inclusion proofs for all records of a request (decision, then outcome) under the newest checkpoint, in O(log
 * n) memory. With an index, only the segments that may contain the request are read, plus one segment for each tree
 * level above segments. If a proof built from the index turns out invalid, the whole log is read.
 *
 * @returns an empty list if the newest checkpoint covers no record of the request
 * @throws RangeError if the log has no verifier key or no valid checkpoint
 */
export async function prove(
  log: string | LogSource,
  requestId: string,
  { everything = false }: ProveOptions = {},
): Promise<AuditProof[]> {
  const source = typeof log === 'string' ? directorySource(log) : log;
  const vkey = await source.verifierKey();
  if (vkey === null) throw new RangeError(`the audit log in ${source.place} has no verifier key`);
  const key = parseVerifierKey(vkey);
  const checkpoint = await newestCheckpoint(source, key);
  const kept = parseRetentionNote(await source.retained(), key);
  const index = everything ? null : indexOf(source);
  if (index !== null) {
    const proofs = await proofsOf(index, kept, checkpoint, requestId).catch(unlessContradictory);
    if (proofs?.every(({ text }) => checkProof(text, vkey).ok)) return proofs;
  }
  return proofsOf(logIndex(source, null), kept, checkpoint, requestId);
}

function indexOf(source: LogSource): LogIndex | null {
  return source.index ?? (source.dir === null ? null : directoryIndex(source, source.dir));
}

/** Returns null for a TypeError, which means that the index is inconsistent; rethrows other errors. */
function unlessContradictory(error: unknown): null {
  if (error instanceof TypeError) return null;
  throw error;
}

async function proofsOf(
  index: LogIndex,
  kept: RetentionCheckpoint | null,
  checkpoint: Checkpoint,
  requestId: string,
): Promise<AuditProof[]> {
  const { size } = checkpoint;
  const records = (await index.recordsOf(requestId)).filter(({ seq }) => seq < size);
  if (records.length === 0) return [];
  const known = kept === null ? [] : [{ size: kept.checkpoint.size, roots: kept.frontier }];
  const subtrees = [...known, ...(await index.places())].map((place) => subtreesOf(place.size, place.roots));
  const wanted = records.map(({ seq, record }) => new ProofBuilder(seq, size, record, subtrees));
  for await (const { seq, hash } of index.leaves(merged(wanted.flatMap((proof) => proof.unread))))
    for (const proof of wanted) proof.add(seq, hash);
  return wanted.map((proof) => ({ seq: proof.seq, text: proof.text(checkpoint) }));
}

/** Merges ranges into a list of disjoint ranges in ascending order. */
function merged(ranges: readonly LeafRange[]): readonly LeafRange[] {
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = all.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}

/** Sibling on an inclusion path: leaves before `from` are already included in `running`, the others must be read. */
interface Sibling extends LeafRange {
  readonly from: number;
  readonly running: RunningRoot;
}

/**
 * Finds the subtree roots that are already known for a sibling on the path: those of the segment boundary whose
 * complete subtrees cover the longest prefix of `range`. Boundaries after the end of `range` do not always help: there,
 * subtrees of `range` may already be merged with earlier leaves.
 */
function siblingOf(range: LeafRange, places: readonly KnownSubtrees[]): Sibling {
  let best: KnownSubtrees = [];
  for (const subtrees of places) {
    const within = subtrees.filter(({ start, end }) => start >= range.start && end <= range.end);
    if (within[0]?.start === range.start && endOf(within) > endOf(best)) best = within;
  }
  const running = new RunningRoot();
  for (const { start, end, root } of best) running.addComplete(end - start, root);
  return { ...range, from: Math.max(range.start, endOf(best)), running };
}

/** Complete subtrees before a boundary, in order. */
type KnownSubtrees = ReturnType<typeof subtreesOf>;

function endOf(subtrees: KnownSubtrees): number {
  return subtrees.at(-1)?.end ?? 0;
}

/** Builds the proof of one record by computing the root of each sibling on its path. */
class ProofBuilder {
  readonly seq: number;
  readonly #record: Buffer;
  readonly #siblings: readonly Sibling[];

  constructor(seq: number, size: number, record: Buffer, places: readonly KnownSubtrees[]) {
    this.seq = seq;
    this.#record = record;
    this.#siblings = pathRanges(seq, size).map((range) => siblingOf(range, places));
  }

  /** Ranges of leaves that must be read. */
  get unread(): readonly LeafRange[] {
    return this.#siblings.flatMap(({ from, end }) => (from < end ? [{ start: from, end }] : []));
  }

  add(seq: number, leaf: string): void {
    this.#siblings.find((range) => range.from <= seq && seq < range.end)?.running.add(leaf);
  }

  text(checkpoint: Checkpoint): string {
    const path = this.#siblings.map((range) => range.running.root());
    return proofText(this.#record, this.seq, path, checkpoint.note);
  }
}

async function newestCheckpoint(source: LogSource, key: VerifierKey): Promise<Checkpoint> {
  const files = await Promise.all([source.checkpoints(), source.latest()]);
  const notes = files.map((file) => splitNotes(file).notes.at(-1));
  const found = notes.flatMap((note) => (note === undefined ? [] : (openCheckpoint(note, key) ?? [])));
  const [checkpoint] = found.sort((a, b) => b.size - a.size);
  if (!checkpoint)
    throw new RangeError(`the audit log in ${source.place} has no valid checkpoint to prove against`);
  return checkpoint;
}

/** Returns the record in a proof without verifying the proof; null if the text is not a proof. */
export function recordOfProof(text: string): AuditRecord | null {
  const proof = parseProof(text);
  return proof === null ? null : recordIn(proof);
}

/**
 * Checks a proof offline, given only the log's verifier key (the text of `checkpoint.vkey`).
 *
 * @throws TypeError if the verifier key is malformed
 */
export function checkProof(text: string, verifierKey: string): InclusionVerdict {
  const key = parseVerifierKey(verifierKey);
  const proof = parseProof(text);
  if (proof === null) return { ok: false, reason: 'the text is not an inclusion proof' };
  const { record, index, path, note } = proof;
  const checkpoint = openCheckpoint(note, key);
  if (!checkpoint) return { ok: false, reason: 'the checkpoint is not signed by the given key' };
  if (note.split('\n\u2014 ').length !== 2)
    return { ok: false, reason: 'the checkpoint has signatures beside that of the log' };
  const leaf = leafHash(Buffer.concat([Buffer.alloc(1), record]));
  const root = rootFromPath(index, checkpoint.size, leaf, path);
  if (!root?.equals(checkpoint.root))
    return { ok: false, reason: 'the path does not lead to the signed root' };
  const { origin, size, time } = checkpoint;
  // A signed root covers the record, so the log's writer encoded it.
  return {
    ok: true,
    record: JSON.parse(record.toString()) as AuditRecord,
    checkpoint: { origin, size, root: root.toString('base64'), time },
  };
}

interface SegmentBoundary extends KnownBoundary {
  readonly segment: number;
}

/** Finds the segments that may contain a request, and known tree states at segment boundaries. */
interface SegmentLookup {
  segmentsOf(requestId: string): Promise<readonly number[]>;
  places(): Promise<readonly SegmentBoundary[]>;
}

/** Returns an index that reads the segments to which `guide` points, or all segments if `guide` is null. */
function logIndex(source: LogSource, guide: SegmentLookup | null): LogIndex {
  const places = async (): Promise<readonly SegmentBoundary[]> => (await guide?.places()) ?? [];
  return Object.freeze({
    places,
    recordsOf: async (requestId: string) => {
      const found: StoredRecord[] = [];
      const numbers = (await guide?.segmentsOf(requestId)) ?? (await source.segments());
      for await (const { seq, frame } of framesIn(source, numbers)) {
        // Searching the raw bytes first avoids parsing most records.
        if (!frame.record.includes(requestId) || recordIn(frame).request_id !== requestId) continue;
        found.push({ seq, record: Buffer.from(frame.record) });
      }
      return found;
    },
    leaves: (ranges: readonly LeafRange[]) => leavesIn(source, places, ranges),
  });
}

async function* leavesIn(
  source: LogSource,
  places: () => Promise<readonly SegmentBoundary[]>,
  ranges: readonly LeafRange[],
): AsyncGenerator<LogLeaf, void, void> {
  const firstOf = new Map((await places()).map(({ segment, size }) => [segment, size]));
  const numbers = (await source.segments()).filter((number) => {
    const first = firstOf.get(number) ?? 0;
    const end = firstOf.get(number + 1) ?? Number.POSITIVE_INFINITY;
    return ranges.some((range) => range.start < end && first < range.end);
  });
  let at = 0;
  for await (const { seq, frame } of framesIn(source, numbers)) {
    while ((ranges[at]?.end ?? Number.POSITIVE_INFINITY) <= seq) at += 1;
    const range = ranges[at];
    if (range === undefined) return;
    if (seq >= range.start) yield { seq, hash: leafOf(frame.leafInput) };
  }
}

async function* framesIn(
  source: LogSource,
  numbers: readonly number[],
): AsyncGenerator<{ readonly seq: number; readonly frame: RecordFrame }, void, void> {
  const last = (await source.segments()).at(-1);
  for (const number of numbers) {
    const bytes = await source.segment(number, number === last);
    const decoded = decodeHeader(bytes);
    if (decoded === null) throw new RangeError(`segment ${number} of ${source.place} cannot be read`);
    let seq = decoded.header.firstSeq;
    const end = usedEnd(bytes);
    for (let frame = frameAt(bytes, decoded.end, end); frame; frame = frameAt(bytes, frame.next, end)) {
      yield { seq, frame };
      seq += 1;
    }
  }
}
