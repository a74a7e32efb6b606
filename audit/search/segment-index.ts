import { hash } from 'node:crypto';
import { chainHash, decodeHeader, frameAt, leafHash, segmentName, usedEnd } from '../format.js';
import type { LogBase } from '../frontier.js';
import { Frontier } from '../frontier.js';
import type { AuditRecord } from '../record.js';
import { partiesOf } from './filter.js';

/**
 * Index of a complete segment, in a file next to it: the blocks in which subjects, objects, requests and times occur,
 * and the log state after the segment, so that it need not be read on startup. Derived from the records, rebuilt if
 * missing, and never trusted: records found with it are checked, and its tree state must lead to a signed root.
 */
export interface SegmentIndex {
  readonly format: 1;
  readonly segment: number;
  readonly writer: string;
  readonly epoch: number;
  readonly first: number;
  /** Seq of the last record plus one. */
  readonly end: number;
  /** Chain hash after the segment, hex. */
  readonly chain: string;
  /** Roots of the complete subtrees of all records so far, hex. */
  readonly frontier: readonly string[];
  /** Allowed decisions up to the end of the segment that have no outcome yet. */
  readonly open: readonly AuditRecord[];
  /** Blocks of `BLOCK_RECORDS` records. */
  readonly blocks: readonly IndexBlock[];
  /** Blocks in which a subject occurs, alone or in a delegation chain. */
  readonly subjects: Postings;
  /** Blocks in which an object occurs; the key `*` lists the blocks with shortened object lists. */
  readonly objects: Postings;
}

export interface IndexBlock {
  /** Byte offset of the first frame in the segment. */
  readonly at: number;
  /** Seq of the first record in the block. */
  readonly seq: number;
  /** Earliest and latest time in the block, not that of the first and last record: the clock may run backwards. */
  readonly since: string;
  readonly until: string;
  /** First four bytes of the hash of each request id, base64; absent in indexes of older versions. */
  readonly requests?: string;
}

const REQUEST_BYTES = 4;

/** True if the block may contain records of the request. */
export function mayHaveRequest({ requests }: IndexBlock, requestId: string): boolean {
  if (requests === undefined) return true;
  const known = Buffer.from(requests, 'base64');
  const wanted = requestHash(requestId);
  for (let at = 0; at < known.length; at += REQUEST_BYTES) if (known.readUInt32BE(at) === wanted) return true;
  return false;
}

/** False for indexes of older versions, which lack request hashes. */
export function hasRequests({ blocks }: SegmentIndex): boolean {
  return blocks.every(({ requests }) => requests !== undefined);
}

function requestHash(requestId: string): number {
  return hash('sha256', requestId, 'buffer').readUInt32BE(0);
}

function requestsText(hashes: ReadonlySet<number>): string {
  const bytes = Buffer.alloc(REQUEST_BYTES * hashes.size);
  let at = 0;
  for (const one of hashes) at = bytes.writeUInt32BE(one, at);
  return bytes.toString('base64');
}

export type Postings = readonly (readonly [name: string, blocks: readonly number[]])[];

const BLOCK_RECORDS = 512;
/** Key in `objects` that lists the blocks with shortened object lists. */
export const OMITTED = '*';

/** Name of a segment's index file, which may be deleted at any time. */
export function indexName(segment: number): string {
  return segmentName(segment).replace(/\.log$/, '.index');
}

/**
 * Builds the index of a complete segment.
 *
 * @param before log state before the segment
 * @param open allowed decisions before the segment that have no outcome before it
 * @returns null if the segment is invalid or does not follow `before`
 */
export function buildIndex(
  bytes: Buffer,
  before: LogBase,
  open: readonly AuditRecord[],
): SegmentIndex | null {
  const decoded = decodeHeader(bytes);
  if (decoded === null) return null;
  const { header, end: start } = decoded;
  if (header.firstSeq !== before.seq || !header.chain.equals(before.chain)) return null;
  const made = new IndexBuilder(before, open);
  const end = usedEnd(bytes);
  for (let at = start; at < end; ) {
    const frame = frameAt(bytes, at, end);
    if (frame === null) return null;
    const leaf = leafHash(frame.leafInput);
    if (!made.follows(chainHash(made.chain, leaf), frame.chain)) return null;
    made.take(at, JSON.parse(frame.record.toString()) as AuditRecord, leaf); // the chain proves its format
    at = frame.next;
  }
  const { writer, epoch, segment } = header;
  return { format: 1, segment, writer, epoch, first: header.firstSeq, ...made.rest() };
}

interface BlockDraft {
  readonly at: number;
  readonly seq: number;
  since: string;
  until: string;
  /** Hashes of the request ids in the block. */
  readonly hashes: Set<number>;
}

class IndexBuilder {
  chain: Buffer;
  readonly #frontier: Frontier;
  readonly #open: Map<string, AuditRecord>;
  readonly #blocks: BlockDraft[] = [];
  readonly #subjects = new Map<string, number[]>();
  readonly #objects = new Map<string, number[]>();
  #inBlock = BLOCK_RECORDS;

  constructor(before: LogBase, open: readonly AuditRecord[]) {
    this.chain = before.chain;
    this.#frontier = before.frontier.copy();
    this.#open = new Map(open.map((record) => [record.request_id, record]));
  }

  follows(chain: Buffer, stored: Buffer): boolean {
    if (!chain.equals(stored)) return false;
    this.chain = chain;
    return true;
  }

  take(at: number, record: AuditRecord, leaf: Buffer): void {
    this.#frontier.push(leaf.toString('latin1'));
    if (record.kind === 'decision' && record.decision === 'allow') this.#open.set(record.request_id, record);
    if (record.kind === 'outcome') this.#open.delete(record.request_id);
    this.#intoBlock(at, record);
    const block = this.#blocks.length - 1;
    for (const party of partiesOf(record)) post(this.#subjects, party, block);
    for (const object of record.objects) post(this.#objects, object, block);
    if (record.objects_omitted > 0) post(this.#objects, OMITTED, block);
  }

  rest() {
    return {
      end: this.#frontier.size,
      chain: this.chain.toString('hex'),
      frontier: this.#frontier.roots.map((root) => Buffer.from(root, 'latin1').toString('hex')),
      open: [...this.#open.values()],
      blocks: this.#blocks.map(({ hashes, ...block }) => ({ ...block, requests: requestsText(hashes) })),
      subjects: [...this.#subjects],
      objects: [...this.#objects],
    };
  }

  #intoBlock(at: number, { seq, ts, request_id }: AuditRecord): void {
    const block = this.#inBlock < BLOCK_RECORDS ? this.#blocks.at(-1) : undefined;
    if (block === undefined) {
      this.#blocks.push({ at, seq, since: ts, until: ts, hashes: new Set([requestHash(request_id)]) });
      this.#inBlock = 1;
      return;
    }
    this.#inBlock += 1;
    block.hashes.add(requestHash(request_id));
    if (ts < block.since) block.since = ts;
    if (ts > block.until) block.until = ts;
  }
}

function post(postings: Map<string, number[]>, name: string, block: number): void {
  const blocks = postings.get(name);
  if (blocks === undefined) postings.set(name, [block]);
  else if (blocks.at(-1) !== block) blocks.push(block);
}

/** Returns the log state after the indexed segment. @throws RangeError if the index contradicts itself */
export function baseOf({ segment, epoch, end, chain, frontier }: SegmentIndex): LogBase {
  const roots = frontier.map((root) => Buffer.from(root, 'hex').toString('latin1'));
  return { segment, epoch, seq: end, chain: Buffer.from(chain, 'hex'), frontier: Frontier.of(end, roots) };
}

/** Parses a segment index; null if the text is not a segment index. */
export function parseIndex(text: string): SegmentIndex | null {
  try {
    const index: unknown = JSON.parse(text);
    // Only `format` is checked here; the content is verified against records when it is used.
    return typeof index === 'object' && index !== null && Reflect.get(index, 'format') === 1
      ? (index as SegmentIndex)
      : null;
  } catch {
    return null;
  }
}
