import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseVerifierKey } from '../checkpoint.js';
import { decodeHeader, type SegmentHeader, segmentName, segmentNumber } from '../format.js';
import { BEGINNING } from '../frontier.js';
import { beginningOf, type RecoverBase } from '../recover.js';
import { directorySource } from '../source.js';
import { baseOf, hasRequests, parseSeal, type Seal, sealName, sealOf } from './seal.js';

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
  return fits && next.chain.toString('hex') === seal.chain && holdsTogether(seal) ? seal : null;
}

function holdsTogether(seal: Seal): boolean {
  try {
    return baseOf(seal).seq === seal.end;
  } catch (error) {
    if (error instanceof RangeError) return false; // it contradicts itself
    throw error;
  }
}

/**
 * Seals of all complete segments, made where they are missing, one after another. Ends before a segment that does not
 * hold: judging it is the verifier's.
 *
 * @param requests whether they must say where requests stand: those of older versions are made anew then
 */
export async function* sealsOf(dir: string, requests = false): AsyncGenerator<Seal, void, void> {
  const segments = await segmentsIn(dir);
  let before = await startOf(dir);
  for (const segment of segments.slice(0, -1)) {
    const stored = await storedSeal(dir, segment);
    const serves = stored !== null && (!requests || hasRequests(stored));
    const seal = serves ? stored : await madeSeal(dir, segment, before);
    if (seal === null) return;
    yield seal;
    before = { base: baseOf(seal), open: seal.open };
  }
}

/**
 * The seals that are missing behind the newest one there is, or behind the first segment, made one after another.
 *
 * @returns the newest one, and null where no complete segment holds
 */
export async function sealMissing(dir: string): Promise<Seal | null> {
  const complete = (await segmentsIn(dir)).slice(0, -1);
  let newest: Seal | null = null;
  let at = complete.length;
  while (newest === null && at > 0) {
    at -= 1;
    newest = await storedSeal(dir, complete[at] ?? 0);
  }
  let before = newest === null ? await startOf(dir) : { base: baseOf(newest), open: newest.open };
  for (const segment of complete.slice(newest === null ? 0 : at + 1)) {
    const seal = await madeSeal(dir, segment, before);
    if (seal === null) return newest;
    newest = seal;
    before = { base: baseOf(seal), open: seal.open };
  }
  return newest;
}

/** The place before the first segment that is kept. */
async function startOf(dir: string): Promise<RecoverBase> {
  const source = directorySource(dir);
  const key = await source.verifierKey();
  return key === null ? { base: BEGINNING, open: [] } : beginningOf(source, parseVerifierKey(key));
}

/**
 * The newest sealed place of which a tree of `size` records, which is signed, is the later one; null where there is
 * none, or a segment is missing before it.
 */
export async function sealedBefore(dir: string, first: number, size: number): Promise<RecoverBase | null> {
  const segments = (await segmentsIn(dir)).filter((segment) => segment >= first);
  if (segments.some((segment, i) => segment !== first + i)) return null;
  for (const segment of segments.slice(0, -1).reverse()) {
    const seal = await storedSeal(dir, segment);
    if (seal !== null && seal.end <= size) return { base: baseOf(seal), open: seal.open };
  }
  return null;
}

async function madeSeal(
  dir: string,
  segment: number,
  { base, open: unanswered }: RecoverBase,
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
