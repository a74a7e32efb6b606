import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CHECKPOINTS_FILE,
  type Checkpoint,
  LATEST_FILE,
  openCheckpoint,
  PUBLIC_KEY_FILE,
  parseVerifierKey,
  splitNotes,
} from './checkpoint.js';
import { leafHash } from './format.js';
import { readFrames, recordIn } from './read.js';
import type { AuditRecord } from './record.js';
import { type LeafRange, pathRanges, RunningRoot, rootFromPath } from './tree.js';

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
export async function prove(dir: string, requestId: string): Promise<AuditProof[]> {
  const checkpoint = await newestCheckpoint(dir);
  const wanted: Wanted[] = [];
  for await (const { seq, frame } of readFrames(dir)) {
    if (seq >= checkpoint.size) break;
    // A cheap look at the bytes first; the parse decides.
    if (!frame.record.includes(requestId)) continue;
    const record = recordIn(frame);
    if (record.request_id === requestId)
      wanted.push(new Wanted(seq, checkpoint.size, Buffer.from(frame.record)));
  }
  if (wanted.length === 0) return [];
  for await (const { seq, frame } of readFrames(dir)) {
    if (seq >= checkpoint.size) break;
    const leaf = leafHash(frame.leafInput);
    for (const proof of wanted) proof.add(seq, leaf);
  }
  return wanted.map((proof) => ({ seq: proof.seq, text: proof.text(checkpoint) }));
}

/** A proof in the making: one running root per sibling on the path. */
class Wanted {
  readonly seq: number;
  readonly #record: Buffer;
  readonly #siblings: (LeafRange & { readonly running: RunningRoot })[];

  constructor(seq: number, size: number, record: Buffer) {
    this.seq = seq;
    this.#record = record;
    this.#siblings = pathRanges(seq, size).map((range) => ({ ...range, running: new RunningRoot() }));
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

async function newestCheckpoint(dir: string): Promise<Checkpoint> {
  const key = parseVerifierKey(await readFile(join(dir, PUBLIC_KEY_FILE), 'utf8'));
  const files = [join(dir, CHECKPOINTS_FILE), join(dir, LATEST_FILE)];
  const notes = await Promise.all(
    files.map(async (file) => splitNotes(await readFile(file).catch(nothing)).notes.at(-1)),
  );
  const found = notes.flatMap((note) => (note === undefined ? [] : (openCheckpoint(note, key) ?? [])));
  const [checkpoint] = found.sort((a, b) => b.size - a.size);
  if (!checkpoint) throw new RangeError(`the audit log in ${dir} has no valid checkpoint to prove against`);
  return checkpoint;
}

function nothing(): Buffer {
  return Buffer.alloc(0);
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
