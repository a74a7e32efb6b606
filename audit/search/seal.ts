import { hash } from 'node:crypto';
import { chainHash, decodeHeader, frameAt, leafHash, segmentName, usedEnd } from '../format.js';
import type { LogBase } from '../frontier.js';
import { Frontier } from '../frontier.js';
import type { AuditRecord } from '../record.js';
import { partiesOf } from './filter.js';

/**
 * Index of a complete segment, in a file beside it: where its subjects, objects, requests and times stand,
 * and the place after it, so that an opening need not read it. It is made of the records, anew where it is missing, and trusted
 * for nothing: what it points at is read and judged, and what it says of the tree must lead to a signed root.
 */
export interface Seal {
  readonly format: 1;
  readonly segment: number;
  readonly writer: string;
  readonly epoch: number;
  readonly first: number;
  /** Seq after its last record. */
  readonly end: number;
  /** Chain hash after it, hex. */
  readonly chain: string;
  /** Roots of the complete subtrees of all records up to here, hex. */
  readonly frontier: readonly string[];
  /** Allowed decisions up to here that have no outcome yet. */
  readonly open: readonly AuditRecord[];
  /** Parts of the segment, `BLOCK_RECORDS` records each. */
  readonly blocks: readonly SealBlock[];
  /** The blocks in which a subject, or a member of a chain, occurs. */
  readonly subjects: Postings;
  /** The same of objects; `*` are the blocks with records whose list of objects was cut. */
  readonly objects: Postings;
}

export interface SealBlock {
  /** Byte offset in the segment. */
  readonly at: number;
  /** Seq of its first record. */
  readonly seq: number;
  /** Least and greatest time, whichever way the clock went. */
  readonly since: string;
  readonly until: string;
  /** Four bytes of a hash of each request id that occurs in it, in base64; absent in indexes of older versions. */
  readonly requests?: string;
}

const REQUEST_BYTES = 4;

/** True if a record of the request may stand in the block. */
export function mayHaveRequest({ requests }: SealBlock, requestId: string): boolean {
  if (requests === undefined) return true;
  const known = Buffer.from(requests, 'base64');
  const wanted = requestHash(requestId);
  for (let at = 0; at < known.length; at += REQUEST_BYTES) if (known.readUInt32BE(at) === wanted) return true;
  return false;
}

/** False for an index that an older version made, which says nothing of requests. */
export function hasRequests({ blocks }: Seal): boolean {
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
/** Stands for objects that the records left out. */
export const OMITTED = '*';

/** File beside a segment; may be deleted at any time. */
export function sealName(segment: number): string {
  return segmentName(segment).replace(/\.log$/, '.index');
}

/**
 * Of the bytes of a complete segment.
 *
 * @param before what stands before it
 * @param open allowed decisions before it that have no outcome yet
 * @returns null where the segment does not hold by itself, or does not follow `before`
 */
export function sealOf(bytes: Buffer, before: LogBase, open: readonly AuditRecord[]): Seal | null {
  const decoded = decodeHeader(bytes);
  if (decoded === null) return null;
  const { header, end: start } = decoded;
  if (header.firstSeq !== before.seq || !header.chain.equals(before.chain)) return null;
  const made = new SealMaker(before, open);
  const end = usedEnd(bytes);
  for (let at = start; at < end; ) {
    const frame = frameAt(bytes, at, end);
    if (frame === null) return null;
    const leaf = leafHash(frame.leafInput);
    if (!made.follows(chainHash(made.chain, leaf), frame.chain)) return null;
    made.take(at, JSON.parse(frame.record.toString()) as AuditRecord, leaf); // the chain has proved whose format it is
    at = frame.next;
  }
  const { writer, epoch, segment } = header;
  return { format: 1, segment, writer, epoch, first: header.firstSeq, ...made.rest() };
}

/** A block in the making. */
interface BlockDraft {
  readonly at: number;
  readonly seq: number;
  since: string;
  until: string;
  /** Of its request ids. */
  readonly hashes: Set<number>;
}

class SealMaker {
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

/** The place after a sealed segment. @throws RangeError where the seal contradicts itself */
export function baseOf({ segment, epoch, end, chain, frontier }: Seal): LogBase {
  const roots = frontier.map((root) => Buffer.from(root, 'hex').toString('latin1'));
  return { segment, epoch, seq: end, chain: Buffer.from(chain, 'hex'), frontier: Frontier.of(end, roots) };
}

/** A seal as it was stored, or null where the bytes are none. */
export function parseSeal(text: string): Seal | null {
  try {
    const seal: unknown = JSON.parse(text);
    // Told by its format; what it says is judged against the records wherever it is used.
    return typeof seal === 'object' && seal !== null && Reflect.get(seal, 'format') === 1
      ? (seal as Seal)
      : null;
  } catch {
    return null;
  }
}
