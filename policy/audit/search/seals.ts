import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BEGINNING, type LogBase } from '../base.js';
import { decodeHeader, type SegmentHeader, segmentName, segmentNumber } from '../format.js';
import { baseOf, parseSeal, type Seal, sealName, sealOf } from './seal.js';

/** Numbers of the segments in a directory, ascending. */
export async function segmentsIn(dir: string): Promise<readonly number[]> {
  const numbers = (await readdir(dir)).map(segmentNumber).filter((number) => number !== null);
  return numbers.sort((a, b) => a - b);
}

/** The seal of a complete segment as it lies there, if it fits the segment and the one after it; else null. */
export async function storedSeal(dir: string, segment: number): Promise<Seal | null> {
  const text = await readFile(join(dir, sealName(segment)), 'utf8').catch(() => null);
  const seal = text === null ? null : parseSeal(text);
  if (seal === null || seal.segment !== segment) return null;
  const [own, next] = await Promise.all([headerOf(dir, segment), headerOf(dir, segment + 1)]);
  if (own === null || next === null) return null;
  const fits = own.writer === seal.writer && own.firstSeq === seal.first && next.firstSeq === seal.end;
  return fits && next.chain.toString('hex') === seal.chain ? seal : null;
}

/**
 * Seals of all complete segments, made where they are missing, one after another. Ends before a segment that does not
 * hold: judging it is the verifier's.
 */
export async function* sealsOf(dir: string): AsyncGenerator<Seal, void, void> {
  const segments = await segmentsIn(dir);
  let before: { base: LogBase; open: Seal['open'] } = { base: BEGINNING, open: [] };
  for (const segment of segments.slice(0, -1)) {
    const seal = (await storedSeal(dir, segment)) ?? (await madeSeal(dir, segment, before));
    if (seal === null) return;
    yield seal;
    before = { base: baseOf(seal), open: seal.open };
  }
}

async function madeSeal(
  dir: string,
  segment: number,
  { base, open: unanswered }: { readonly base: LogBase; readonly open: Seal['open'] },
): Promise<Seal | null> {
  const seal = sealOf(await readFile(join(dir, segmentName(segment))), base, unanswered);
  // A directory that cannot be written to is read without.
  if (seal !== null) await keep(dir, seal).catch(() => undefined);
  return seal;
}

/** Several processes may make the same one at once: each writes a file of its own and puts it there whole. */
async function keep(dir: string, seal: Seal): Promise<void> {
  const path = join(dir, sealName(seal.segment));
  const making = `${path}.${randomBytes(4).toString('hex')}.new`;
  try {
    await writeFile(making, JSON.stringify(seal), { mode: 0o600 });
    await rename(making, path);
  } catch (error) {
    await rm(making, { force: true });
    throw error;
  }
}

async function headerOf(dir: string, segment: number): Promise<SegmentHeader | null> {
  const handle = await open(join(dir, segmentName(segment)), 'r').catch(() => null);
  if (handle === null) return null;
  try {
    const head = Buffer.alloc(256);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    return decodeHeader(head.subarray(0, bytesRead))?.header ?? null;
  } finally {
    await handle.close();
  }
}
