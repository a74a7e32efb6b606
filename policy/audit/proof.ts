import {
  type Checkpoint,
  openCheckpoint,
  parseVerifierKey,
  splitNotes,
  type VerifierKey,
} from './checkpoint.js';
import { decodeHeader, type Frame, frameAt, leafHash, usedEnd } from './format.js';
import type { AuditRecord } from './record.js';
import { type Retained, retainedIn } from './retained.js';
import { directorySource, type LogSource } from './source.js';
import { type LeafRange, pathRanges, RunningRoot, rootFromPath, subtreesOf } from './tree.js';

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

/**
 * Inclusion proofs for all records of a request (decision, then outcome) under the newest checkpoint. Reads the
 * log twice, in O(log n) memory.
 *
 * @returns empty if the request has no record that the newest checkpoint covers
 */
export async function prove(log: string | LogSource, requestId: string): Promise<AuditProof[]> {
  const source = typeof log === 'string' ? directorySource(log) : log;
  const key = await keyOf(source);
  const checkpoint = await newestCheckpoint(source, key);
  const kept = retainedIn(await source.retained(), key);
  const wanted: Wanted[] = [];
  for await (const { seq, frame } of covered(source, checkpoint.size, kept)) {
    // A cheap look at the bytes first; the parse decides.
    if (!frame.record.includes(requestId)) continue;
    const record = JSON.parse(frame.record.toString()) as AuditRecord; // the writer's format
    if (record.request_id === requestId)
      wanted.push(new Wanted(seq, checkpoint.size, Buffer.from(frame.record), kept));
  }
  if (wanted.length === 0) return [];
  for await (const { seq, frame } of covered(source, checkpoint.size, kept)) {
    const leaf = leafHash(frame.leafInput);
    for (const proof of wanted) proof.add(seq, leaf);
  }
  return wanted.map((proof) => ({ seq: proof.seq, text: proof.text(checkpoint) }));
}

/** The frames of a log that a checkpoint of so many records covers, in order. */
async function* covered(
  source: LogSource,
  size: number,
  kept: Retained | null,
): AsyncGenerator<{ readonly seq: number; readonly frame: Frame }, void, void> {
  const numbers = (await source.segments()).filter((number) => number >= (kept?.segment ?? 1));
  for (const number of numbers) {
    const bytes = await source.segment(number, number === numbers.at(-1));
    const decoded = decodeHeader(bytes);
    if (decoded === null) throw new RangeError(`segment ${number} of ${source.place} cannot be read`);
    let seq = decoded.header.firstSeq;
    const end = usedEnd(bytes);
    for (let frame = frameAt(bytes, decoded.end, end); frame; frame = frameAt(bytes, frame.next, end)) {
      if (seq >= size) return;
      yield { seq, frame };
      seq += 1;
    }
  }
}

/** A proof in the making: one running root per sibling on the path. */
class Wanted {
  readonly seq: number;
  readonly #record: Buffer;
  readonly #siblings: (LeafRange & { readonly running: RunningRoot })[];

  constructor(seq: number, size: number, record: Buffer, kept: Retained | null) {
    this.seq = seq;
    this.#record = record;
    this.#siblings = pathRanges(seq, size).map((range) => ({ ...range, running: new RunningRoot() }));
    if (kept === null) return;
    // Of what is kept no more there are the roots of whole subtrees, each within one sibling.
    for (const { start, end, root } of subtreesOf(kept.checkpoint.size, kept.frontier)) {
      this.#siblings
        .find((range) => range.start <= start && end <= range.end)
        ?.running.addComplete(end - start, root);
    }
  }

  add(seq: number, leaf: Buffer): void {
    this.#siblings.find((range) => range.start <= seq && seq < range.end)?.running.add(leaf);
  }

  text(checkpoint: Checkpoint): string {
    const path = this.#siblings.map((range) => `${range.running.root().toString('base64')}\n`).join('');
    const extra = this.#record.toString('base64');
    return `${FIRST_LINE}\nextra ${extra}\nindex ${this.seq}\n${path}\n${checkpoint.note}`;
  }
}

async function keyOf(source: LogSource): Promise<VerifierKey> {
  const key = await source.verifierKey();
  if (key === null) throw new RangeError(`the audit log in ${source.place} has no verifier key`);
  return parseVerifierKey(key);
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
