import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import canonicalize from 'canonicalize';
import {
  decodeHeader,
  FRAME_HEAD,
  FRAME_TAIL,
  frameEnd,
  HASH_BYTES,
  type SegmentHeader,
  segmentName,
  usedEnd,
} from '../format.js';
import type { Recovery } from '../verdict.js';

/** Result of verifying a complete segment independently of its predecessors. */
export interface VerifiedSegment {
  readonly header: SegmentHeader;
  readonly chain: Uint8Array;
  /** The segment's part of the Merkle tree, split at checkpoints. */
  readonly pieces: readonly SubtreeRun[];
  /** Ids of requests whose last decision or outcome in this segment is an allowed decision. */
  readonly opened: readonly string[];
  /** Ids of requests with an outcome here, one per line: a single string is cheap to pass between threads. */
  readonly closed: string;
  /** Like `closed`, for outcomes that `CANONICAL` does not match; these ids may contain newlines. */
  readonly closedOdd: readonly string[];
  readonly recovered: readonly Recovery[];
}

/** Consecutive complete subtrees that end before record `end`. */
interface SubtreeRun {
  readonly end: number;
  readonly subtrees: readonly { readonly leaves: number; readonly root: Uint8Array }[];
}

/**
 * Verifies a complete segment independently of its predecessors.
 *
 * @param cuts tree sizes of checkpoints, ascending
 * @returns null for any problem; the sequential pass determines the reason
 */
export function verifySegment(bytes: Buffer, cuts: ArrayLike<number>): VerifiedSegment | null {
  const decoded = decodeHeader(bytes);
  if (decoded === null) return null;
  const { header, end: start } = decoded;
  const end = usedEnd(bytes);
  const tree = new SubtreeBuilder(header.firstSeq, cuts);
  const records = new Records(header);
  const link = Buffer.alloc(2 * HASH_BYTES);
  let chain = header.chain.toString('latin1');
  let group = start;
  for (let at = start; at < end; ) {
    const next = frameEnd(bytes, at, end);
    if (next === null) return null;
    const back = bytes.readUIntBE(at + 1, 3);
    const leaf = hash('sha256', bytes.subarray(at + FRAME_HEAD - 1, next - FRAME_TAIL), 'binary');
    link.write(chain, 0, HASH_BYTES, 'latin1');
    link.write(leaf, HASH_BYTES, HASH_BYTES, 'latin1');
    chain = hash('sha256', link, 'binary');
    const tail = next - FRAME_TAIL;
    if (bytes.toString('latin1', tail, tail + HASH_BYTES) !== chain) return null;
    if (back === 0) group = at;
    if (at - back !== group || !records.take(bytes, at + FRAME_HEAD, tail)) return null;
    tree.add(leaf);
    at = next;
  }
  return { header, chain: Buffer.from(chain, 'latin1'), pieces: tree.all(), ...records.found() };
}

const PLAIN = '[ !#-\\[\\]-~]*';
const TEXT = `"${PLAIN}"`;
const MAYBE = `(?:null|${TEXT})`;
const WHOLE = '(?:0|[1-9]\\d{0,14})';
const LIST = `\\[(?:${TEXT}(?:,${TEXT})*)?\\]`;

const RECEIPT =
  `\\{"as_of":${MAYBE},"masked":${LIST},"masked_omitted":${WHOLE},"order":${TEXT},"question":${TEXT},` +
  `"rows":${TEXT},"truncated":(?:false|true)\\}`;
const STANDBY = `\\{"as_of":${TEXT},"name":${TEXT}\\}`;

/** Fast path for canonical records with plain strings and without `detail`, whose JSON has escapes. */
const CANONICAL = new RegExp(
  `^\\{"action":${TEXT},"chain":${LIST},"code":${MAYBE},"decision":(null|${TEXT}),"duration_us":(?:null|${WHOLE}),` +
    `"epoch":(${WHOLE}),"form":${MAYBE},"kind":"(${PLAIN})","objects":${LIST},"objects_omitted":${WHOLE},` +
    `"outcome":${MAYBE}(?:,"plan":${TEXT})?(?:,"receipt":${RECEIPT})?,"request_id":"(${PLAIN})",` +
    `"rows":(?:null|${WHOLE}),"seq":(${WHOLE})(?:,"standby":${STANDBY})?,` +
    `"statement_hmac":${MAYBE},"subject":${MAYBE},"surface":${TEXT},"tenant":${TEXT},"ts":${TEXT},` +
    `"versions":(?:null|\\{"manifest":${MAYBE},"policy":${MAYBE}\\}),"writer":"(${PLAIN})"\\}$`,
);

class Records {
  readonly #writer: string;
  readonly #epoch: number;
  readonly #epochText: string;
  readonly #opened = new Set<string>();
  readonly #closed: string[] = [];
  readonly #odd: string[] = [];
  readonly #recovered: Recovery[] = [];
  #seq: number;

  constructor({ writer, epoch, firstSeq }: SegmentHeader) {
    this.#writer = writer;
    this.#epoch = epoch;
    this.#epochText = String(epoch);
    this.#seq = firstSeq;
  }

  /** Registers the record in [start, end). Returns false unless it is canonical and belongs at this position. */
  take(bytes: Buffer, start: number, end: number): boolean {
    const match = CANONICAL.exec(bytes.toString('latin1', start, end));
    if (match === null) return this.#parse(bytes.subarray(start, end));
    const [, decision, epoch, kind, request = '', seq, writer] = match;
    if (epoch !== this.#epochText || writer !== this.#writer || Number(seq) !== this.#seq) return false;
    this.#seq += 1;
    if (kind === 'decision' && decision === '"allow"') this.#opened.add(request);
    else if (kind === 'outcome') {
      this.#opened.delete(request);
      this.#closed.push(request);
    }
    return true;
  }

  found() {
    const closed = this.#closed.join('\n');
    return { opened: [...this.#opened], closed, closedOdd: this.#odd, recovered: this.#recovered };
  }

  #parse(bytes: Buffer): boolean {
    const text = bytes.toString();
    const record = objectIn(text);
    if (record === null || canonicalize(record) !== text) return false;
    if (record['seq'] !== this.#seq || record['writer'] !== this.#writer || record['epoch'] !== this.#epoch)
      return false;
    this.#seq += 1;
    const request = String(record['request_id']);
    if (record['kind'] === 'decision' && record['decision'] === 'allow') this.#opened.add(request);
    if (record['kind'] === 'outcome') {
      this.#opened.delete(request);
      this.#odd.push(request);
    }
    if (record['kind'] === 'event' && record['action'] === 'audit.recover') this.#recover(record['detail']);
    return true;
  }

  #recover(detail: unknown): void {
    const { from, to } = (typeof detail === 'string' ? objectIn(detail) : null) ?? {};
    if (typeof from === 'number' && typeof to === 'number')
      this.#recovered.push({ epoch: this.#epoch, from, to });
  }
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    // The value is null or an object, whose members are still `unknown`.
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/** Builds complete subtrees from leaves with known positions, without needing the leaves before them. */
class SubtreeBuilder {
  readonly #cuts: ArrayLike<number>;
  readonly #pieces: SubtreeRun[] = [];
  readonly #node = Buffer.alloc(1 + 2 * HASH_BYTES);
  #roots: string[] = [];
  #leaves: number[] = [];
  #next = 0;
  #seq: number;

  constructor(first: number, cuts: ArrayLike<number>) {
    this.#seq = first;
    this.#cuts = cuts;
    this.#node[0] = 1;
    while ((cuts[this.#next] ?? first + 1) <= first) this.#next += 1;
  }

  add(leaf: string): void {
    const roots = this.#roots;
    const leaves = this.#leaves;
    let [root, count] = [leaf, 1];
    this.#seq += 1;
    // Merge with a left neighbour of the same size if the pair is aligned.
    while (leaves.at(-1) === count && this.#seq % (2 * count) === 0) {
      leaves.pop();
      this.#node.write(roots.pop() ?? '', 1, HASH_BYTES, 'latin1');
      this.#node.write(root, 1 + HASH_BYTES, HASH_BYTES, 'latin1');
      root = hash('sha256', this.#node, 'binary');
      count *= 2;
    }
    roots.push(root);
    leaves.push(count);
    if (this.#cuts[this.#next] === this.#seq) this.#cut();
  }

  all(): readonly SubtreeRun[] {
    if (this.#roots.length > 0) this.#cut();
    return this.#pieces;
  }

  #cut(): void {
    const subtrees = this.#roots.map((root, i) => ({
      leaves: this.#leaves[i] ?? 1,
      root: Buffer.from(root, 'latin1'),
    }));
    this.#pieces.push({ end: this.#seq, subtrees });
    this.#roots = [];
    this.#leaves = [];
    while ((this.#cuts[this.#next] ?? this.#seq + 1) <= this.#seq) this.#next += 1;
  }
}

const MOST_THREADS = 8;
/** Minimum number of segments for which it is worth starting threads. */
const FEWEST = 6;

/** Message to a thread: verify one segment. */
export interface VerifyRequest {
  readonly segment: number;
  readonly file: string;
}

export interface VerifyResponse {
  readonly segment: number;
  readonly verified: VerifiedSegment | null;
}

/** Worker threads that verify segments ahead of the sequential pass, each independently of the previous ones. */
export class SegmentVerifiers {
  readonly #dir: string;
  readonly #threads: readonly Worker[];
  readonly #waiting = new Map<number, (verified: VerifiedSegment | null) => void>();
  readonly #asked = new Map<number, Promise<VerifiedSegment | null>>();
  readonly #queue: number[];
  readonly #cuts: readonly number[];
  #turn = 0;

  /** @param segments complete segments, in the order in which `verified` will be called */
  constructor(dir: string, segments: readonly number[], cuts: readonly number[]) {
    this.#dir = dir;
    this.#queue = [...segments];
    this.#cuts = cuts;
    const count =
      segments.length < FEWEST ? 0 : Math.min(MOST_THREADS, availableParallelism(), segments.length);
    const data = { cuts: Float64Array.from(cuts) };
    const file = new URL('./segment-verifier-thread.js', import.meta.url);
    this.#threads = Array.from({ length: count }, () =>
      this.#started(new Worker(file, { workerData: data })),
    );
    // Queue two segments per thread, which also bounds memory use.
    for (let i = 0; i < 2 * count; i += 1) this.#askNext();
  }

  /** Returns the result for the segment; null if it could not be verified independently. */
  async verified(segment: number): Promise<VerifiedSegment | null> {
    const asked = this.#asked.get(segment);
    if (asked === undefined) return this.#threads.length === 0 ? this.#here(segment) : null;
    const verified = await asked;
    this.#asked.delete(segment);
    this.#askNext();
    return verified;
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  async #here(segment: number): Promise<VerifiedSegment | null> {
    if (!this.#queue.includes(segment)) return null;
    const bytes = await readFile(join(this.#dir, segmentName(segment))).catch(() => null);
    return bytes === null ? null : verifySegment(bytes, this.#cuts);
  }

  #askNext(): void {
    const segment = this.#queue.shift();
    const thread = this.#threads[this.#turn % Math.max(1, this.#threads.length)];
    if (segment === undefined || thread === undefined) return;
    this.#turn += 1;
    this.#asked.set(segment, new Promise((resolve) => this.#waiting.set(segment, resolve)));
    thread.postMessage({ segment, file: join(this.#dir, segmentName(segment)) } satisfies VerifyRequest);
  }

  #started(thread: Worker): Worker {
    thread.on('message', ({ segment, verified }: VerifyResponse) => {
      this.#waiting.get(segment)?.(verified);
      this.#waiting.delete(segment);
    });
    // If a thread fails, the sequential pass verifies all remaining segments itself.
    const gone = (): void => {
      for (const resolve of this.#waiting.values()) resolve(null);
      this.#waiting.clear();
      this.#queue.length = 0;
    };
    thread.on('error', gone);
    thread.once('exit', gone);
    return thread;
  }
}
