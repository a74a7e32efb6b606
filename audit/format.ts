import { hash } from 'node:crypto';

/**
 * The binary format of segment files. Writer and verifier share only this file, `checkpoint.ts` and `source.ts`.
 *
 *     segment  header line, frames, zeros (preallocated space)
 *     header   osl-audit/1 <writer> <epoch> <segment> <first seq> <chain so far, hex> <check>\n
 *     frame    mark 0xF7 | back u24 | length u16 | check u16 | 0x00 | record | chain hash 32 B | \n
 *              (big endian)
 *
 * `back` is the distance to the first frame of the same group commit; the zero byte and the record are the RFC 6962
 * leaf input. The mark occurs in no UTF-8 text, and neither mark nor newline is zero, so a frame that lost bytes (they
 * read as zero) can be told apart from an altered frame.
 */

/** Maximum record length in UTF-8 bytes (the entry limit of C2SP tlog-tiles). */
export const MAX_RECORD_BYTES = 65_535;
export const HASH_BYTES = 32;
export const FRAME_HEAD = 9;
export const FRAME_TAIL = HASH_BYTES + 1;
/** Maximum size of a group commit in bytes; must fit the 24 bits of `back`. */
export const MAX_GROUP_BYTES = 8 * 1024 * 1024;
/** Chain hash before the first record. */
export const GENESIS: Buffer = Buffer.alloc(HASH_BYTES);

const MARK = 0xf7;
const NEWLINE = 0x0a;
const SECTOR = 512;
const HEADER_LINE =
  /^osl-audit\/1 ([\w.-]{1,64}) ([1-9]\d{0,14}) ([1-9]\d{0,7}) (0|[1-9]\d{0,14}) ([0-9a-f]{64}) ([0-9a-f]{16})\n/;

export interface SegmentHeader {
  readonly writer: string;
  readonly epoch: number;
  /** Segment number; numbers start at 1 and have no gaps. */
  readonly segment: number;
  readonly firstSeq: number;
  /** Chain hash of the record before `firstSeq`. */
  readonly chain: Buffer;
}

export interface RecordFrame {
  readonly at: number;
  readonly next: number;
  /** Distance from the first frame of the group to this frame, bytes. */
  readonly back: number;
  /** 0x00 and the record: the leaf input of RFC 6962. */
  readonly leafInput: Buffer;
  readonly record: Buffer;
  readonly chain: Buffer;
}

export function segmentName(segment: number): string {
  return `segment-${String(segment).padStart(8, '0')}.log`;
}

/** Name of the file with the HMAC key for a segment's fingerprints. */
export function keyName(segment: number): string {
  return `segment-${String(segment).padStart(8, '0')}.key`;
}

/** Segment number in a file name; null if the file is not a segment. */
export function segmentNumber(name: string): number | null {
  const match = /^segment-(\d{8})\.log$/.exec(name);
  return match ? Number(match[1]) : null;
}

/**
 * SHA-256 digest as latin1 characters. Allocating a digest buffer costs three times the hash itself, and the writer
 * computes three digests per record.
 */
export type Digest = string;

export function digest(data: Uint8Array): Digest {
  return hash('sha256', data, 'binary'); // 'binary' is an alias of latin1
}

export function putDigest(target: Buffer, at: number, value: Digest): void {
  target.write(value, at, HASH_BYTES, 'latin1');
}

/** Splits concatenated hashes. */
export function splitHashes(packed: Buffer): readonly Buffer[] {
  const count = Math.floor(packed.length / HASH_BYTES);
  return Array.from({ length: count }, (_, i) => packed.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
}

function sha256(data: Uint8Array): Buffer {
  return Buffer.from(digest(data), 'latin1');
}

export function leafHash(leafInput: Uint8Array): Buffer {
  return sha256(leafInput);
}

export function chainHash(previous: Uint8Array, leaf: Uint8Array): Buffer {
  return sha256(Buffer.concat([previous, leaf]));
}

export function encodeHeader(header: SegmentHeader): Buffer {
  const { writer, epoch, segment, firstSeq, chain } = header;
  const line = `osl-audit/1 ${writer} ${epoch} ${segment} ${firstSeq} ${chain.toString('hex')}`;
  return Buffer.from(`${line} ${headerCheck(line)}\n`);
}

/** Decodes a segment header, and returns it with the offset of the first frame; null if it is invalid. */
export function decodeHeader(segment: Buffer): { header: SegmentHeader; end: number } | null {
  const text = segment.toString('latin1', 0, 256);
  const match = HEADER_LINE.exec(text);
  if (!match) return null;
  const [line, writer = '', epoch, number, firstSeq, chain = '', check = ''] = match;
  if (headerCheck(line.slice(0, -check.length - 2)) !== check) return null;
  const header = {
    writer,
    epoch: Number(epoch),
    segment: Number(number),
    firstSeq: Number(firstSeq),
    chain: Buffer.from(chain, 'hex'),
  };
  return { header, end: line.length };
}

function headerCheck(line: string): string {
  return hash('sha256', line, 'hex').slice(0, 16);
}

/** Writes mark, back, length, check and zero byte before a record of `length` bytes at `at + FRAME_HEAD`. */
export function putFrameHead(target: Buffer, at: number, back: number, length: number): void {
  const check = headCheck(back, length);
  target[at] = MARK;
  target[at + 1] = back >>> 16;
  target[at + 2] = back >>> 8;
  target[at + 3] = back;
  target[at + 4] = length >>> 8;
  target[at + 5] = length;
  target[at + 6] = check >>> 8;
  target[at + 7] = check;
  target[at + 8] = 0;
}

/** Length of the record in the frame at `at`. */
export function frameLength(source: Buffer, at: number): number {
  return source.readUInt16BE(at + 4);
}

export function putFrameTail(target: Buffer, at: number, length: number, chain: Digest): void {
  putDigest(target, at + FRAME_HEAD + length, chain);
  target[at + FRAME_HEAD + length + HASH_BYTES] = NEWLINE;
}

export function encodeFrame(record: string, back: number, chain: Uint8Array): Buffer {
  const length = Buffer.byteLength(record);
  const frame = Buffer.alloc(FRAME_HEAD + length + FRAME_TAIL);
  putFrameHead(frame, 0, back, length);
  frame.write(record, FRAME_HEAD);
  frame.set(chain, FRAME_HEAD + length);
  frame[frame.length - 1] = NEWLINE;
  return frame;
}

export function framesOf(group: Buffer, length: number): readonly RecordFrame[] {
  const frames: RecordFrame[] = [];
  for (let frame = frameAt(group, 0, length); frame; frame = frameAt(group, frame.next, length))
    frames.push(frame);
  return frames;
}

/** Parity check that detects any single flipped bit of `back` or `length`. */
function headCheck(back: number, length: number): number {
  return (back & 0xffff) ^ (back >>> 16) ^ length ^ 0x4f53;
}

/** Returns the offset after the last non-zero byte; the space after it is unused. */
export function usedEnd(segment: Buffer): number {
  let end = segment.length;
  while (end > 0 && segment[end - 1] === 0) end -= 1;
  return end;
}

/** Decodes the frame at `at`; null if no complete frame starts there. Does not check the chain hash. */
export function frameAt(segment: Buffer, at: number, end: number): RecordFrame | null {
  const next = frameEnd(segment, at, end);
  if (next === null) return null;
  const length = next - at - FRAME_HEAD - FRAME_TAIL;
  return {
    at,
    next,
    back: segment.readUIntBE(at + 1, 3),
    leafInput: segment.subarray(at + FRAME_HEAD - 1, at + FRAME_HEAD + length),
    record: segment.subarray(at + FRAME_HEAD, at + FRAME_HEAD + length),
    chain: segment.subarray(at + FRAME_HEAD + length, next - 1),
  };
}

/** Returns the offset after the frame at `at`, without decoding it; null in the same cases as `frameAt`. */
export function frameEnd(segment: Buffer, at: number, end: number): number | null {
  const length = headLength(segment, at, end);
  if (length === null) return null;
  const next = at + FRAME_HEAD + length + FRAME_TAIL;
  return next > end || segment[next - 1] !== NEWLINE ? null : next;
}

function headLength(segment: Buffer, at: number, end: number): number | null {
  if (at + FRAME_HEAD > end || segment[at] !== MARK || segment[at + 8] !== 0) return null;
  const length = segment.readUInt16BE(at + 4);
  if (length === 0 || length > MAX_RECORD_BYTES) return null;
  return segment.readUInt16BE(at + 6) === headCheck(segment.readUIntBE(at + 1, 3), length) ? length : null;
}

/**
 * True if the invalid frame at `at` is the torn end of a write that was never finished, and so never acknowledged. Two
 * conditions must hold: bytes are *missing*, that is, the data ends inside the frame or the frame's bytes in one sector
 * are all zero (a lost sector reads as zero, an altered one does not); and no later group exists, because a group is
 * written only after the previous one is on disk.
 *
 * @param holes true if groups were not synced one by one: a later group may then exist, and the torn write may have
 * been acknowledged
 */
export function isTorn(segment: Buffer, at: number, end: number, holes: boolean): boolean {
  if (!holes && hasLaterGroup(segment, at, end)) return false;
  const length = headLength(segment, at, end);
  const frameEnd = length === null ? at + FRAME_HEAD : at + FRAME_HEAD + length + FRAME_TAIL;
  return frameEnd > end || hasZeroSector(segment, at, length === null ? at + FRAME_HEAD - 1 : frameEnd);
}

function hasLaterGroup(segment: Buffer, at: number, end: number): boolean {
  for (let i = segment.indexOf(MARK, at + 1); i !== -1 && i < end; i = segment.indexOf(MARK, i + 1)) {
    const frame = frameAt(segment, i, end);
    if (frame && frame.back === 0 && frame.record[0] === 0x7b && frame.record.at(-1) === 0x7d) return true;
  }
  return false;
}

/** True if the part of [from, to) in at least one sector is all zero. */
function hasZeroSector(segment: Buffer, from: number, to: number): boolean {
  for (let start = from; start < to; ) {
    const stop = Math.min(to, (Math.floor(start / SECTOR) + 1) * SECTOR);
    if (segment.subarray(start, stop).every((byte) => byte === 0)) return true;
    start = stop;
  }
  return false;
}
