import {
  type Checkpoint,
  openCheckpoint,
  parseVerifierKey,
  splitNotes,
  type VerifierKey,
} from './checkpoint.js';
import { leafHash } from './format.js';
import type { AuditRecord } from './record.js';
import { type RetentionCheckpoint, retainedIn } from './retained.js';
import { sealsOf, segmentsIn } from './search/seals.js';
import { candidates } from './search/search.js';
import { type SegmentPlace, segmentIndex } from './segment-index.js';
import { directorySource, type LogIndex, type LogSource } from './source.js';
import { type LeafRange, pathRanges, RunningRoot, rootFromPath, subtreesOf } from './tree.js';

/** By the files beside the segments of a directory; those that are missing are made. */
function directoryIndex(source: LogSource, dir: string): LogIndex {
  return segmentIndex(source, {
    segmentsOf: async (requestId) => {
      const found: number[] = [];
      let sealed = 0;
      for await (const seal of sealsOf(dir, true)) {
        sealed = seal.segment;
        if (candidates(seal, { requestId }).length > 0) found.push(seal.segment);
      }
      const others = (await segmentsIn(dir)).filter((segment) => segment > sealed);
      return [...found, ...others];
    },
    places: async () => {
      const places: SegmentPlace[] = [];
      for await (const { segment, end, frontier } of sealsOf(dir)) {
        const roots = frontier.map((root) => Buffer.from(root, 'hex'));
        places.push({ segment: segment + 1, size: end, roots });
      }
      return places;
    },
  });
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const PROOF =
  /^c2sp\.org\/tlog-proof@v1\nextra (?<extra>[A-Za-z0-9+/]+={0,2})\nindex (?<index>0|[1-9]\d{0,15})\n(?<path>(?:[A-Za-z0-9+/]{43}=\n)*)\n(?<note>[\s\S]+)$/;

/** Proof that one record is in the log that a checkpoint signs. */
export interface AuditProof {
  readonly seq: number;
  /** C2SP tlog-proof: `extra` is the record itself, base64; ends in the checkpoint note. */
  readonly text: string;
}

export type ProofVerdict =
  | {
      readonly ok: true;
      readonly record: AuditRecord;
      readonly checkpoint: { readonly origin: string; readonly size: number; readonly time: string | null };
    }
  | { readonly ok: false; readonly reason: string };

/** Source of the records to prove. */
export interface ProveOptions {
  /** Reads every record, and trusts no index. */
  readonly everything?: boolean;
}

/**
 * Inclusion proofs for all records of a request (decision, then outcome) under the newest checkpoint, in O(log n) memory.
 * With an index it reads the segments that the request may stand in and one for each level of the tree above a segment;
 * where a proof made with it does not check, the whole log.
 *
 * @returns empty if the request has no record that the newest checkpoint covers
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
  const kept = retainedIn(await source.retained(), key);
  const index = everything ? null : indexOf(source);
  if (index !== null) {
    const proofs = await proofsOf(index, kept, checkpoint, requestId).catch(unlessContradictory);
    if (proofs?.every(({ text }) => checkProof(text, vkey).ok)) return proofs;
  }
  return proofsOf(segmentIndex(source, null), kept, checkpoint, requestId);
}

function indexOf(source: LogSource): LogIndex | null {
  return source.index ?? (source.dir === null ? null : directoryIndex(source, source.dir));
}

/** Null for an index that contradicts itself. */
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

/** The same leaves in ranges that are ascending and do not overlap. */
function merged(ranges: readonly LeafRange[]): readonly LeafRange[] {
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = all.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}

/** A sibling on the path of a proof: its leaves before `from` are in `running`, the others have to be read. */
interface Sibling extends LeafRange {
  readonly from: number;
  readonly running: RunningRoot;
}

/**
 * The sibling with what is known of it: of all places the one whose complete subtrees cover most of it from its start on.
 * Behind the sibling's end they may have grown together with what stands before it; then another place knows more.
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

/** The complete subtrees before a place, in order. */
type KnownSubtrees = ReturnType<typeof subtreesOf>;

function endOf(subtrees: KnownSubtrees): number {
  return subtrees.at(-1)?.end ?? 0;
}

/** A proof in the making: one running root per sibling on the path. */
class ProofBuilder {
  readonly seq: number;
  readonly #record: Buffer;
  readonly #siblings: readonly Sibling[];

  constructor(seq: number, size: number, record: Buffer, places: readonly KnownSubtrees[]) {
    this.seq = seq;
    this.#record = record;
    this.#siblings = pathRanges(seq, size).map((range) => siblingOf(range, places));
  }

  /** The leaves that have to be read. */
  get unread(): readonly LeafRange[] {
    return this.#siblings.flatMap(({ from, end }) => (from < end ? [{ start: from, end }] : []));
  }

  add(seq: number, leaf: string): void {
    this.#siblings.find((range) => range.from <= seq && seq < range.end)?.running.add(leaf);
  }

  text(checkpoint: Checkpoint): string {
    const path = this.#siblings.map((range) => `${range.running.root().toString('base64')}\n`).join('');
    const extra = this.#record.toString('base64');
    return `${FIRST_LINE}\nextra ${extra}\nindex ${this.seq}\n${path}\n${checkpoint.note}`;
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

/**
 * Checks a proof with nothing but the log's verifier key (the text of `checkpoint.vkey`): no log, no network.
 *
 * @throws TypeError if the verifier key is malformed
 */
export function checkProof(text: string, verifierKey: string): ProofVerdict {
  const key = parseVerifierKey(verifierKey);
  const groups = PROOF.exec(text)?.groups;
  if (!groups) return { ok: false, reason: 'the text is not an inclusion proof' };
  const { extra = '', index = '', path = '', note = '' } = groups;
  const checkpoint = openCheckpoint(note, key);
  if (!checkpoint) return { ok: false, reason: 'the checkpoint is not signed by the given key' };
  const record = Buffer.from(extra, 'base64');
  const leaf = leafHash(Buffer.concat([Buffer.alloc(1), record]));
  const siblings = path
    .split('\n')
    .slice(0, -1)
    .map((line) => Buffer.from(line, 'base64'));
  const root = rootFromPath(Number(index), checkpoint.size, leaf, siblings);
  if (!root?.equals(checkpoint.root))
    return { ok: false, reason: 'the path does not lead to the signed root' };
  const { origin, size, time } = checkpoint;
  // Signed by the log's key, so it is a record of this format.
  return {
    ok: true,
    record: JSON.parse(record.toString()) as AuditRecord,
    checkpoint: { origin, size, time },
  };
}
