import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeHeader, frameAt, segmentName, usedEnd } from '../format.js';
import { readFrames, recordIn } from '../read.js';
import { type AuditRecord, isPlain } from '../record.js';
import { type AuditFilter, matches, namesOf } from './filter.js';
import { mayHaveRequest, OMITTED, type Postings, type Seal, type SealBlock } from './seal.js';
import { sealsOf } from './seals.js';

/** Options of a search. */
export interface SearchOptions {
  /** Reads every record, whatever the indexes beside the segments say: they are files that somebody could have changed. */
  readonly everything?: boolean;
}

/**
 * The records of one chain that a filter describes, in their order. Complete segments are read where their index says
 * that something may stand; what it points at is judged like any other record.
 */
export async function* searchRecords(
  dir: string,
  filter: AuditFilter,
  { everything = false }: SearchOptions = {},
): AsyncGenerator<AuditRecord, void, void> {
  let from = 0;
  if (!everything) {
    for await (const seal of sealsOf(dir, filter.requestId !== undefined)) {
      yield* recordsIn(dir, seal, filter);
      from = seal.end;
    }
  }
  const { requestId } = filter;
  // A look at the bytes costs less than a parse; an id that a record has to escape is not looked for so.
  const needle = requestId !== undefined && isPlain(requestId) ? requestId : '';
  for await (const { frame } of readFrames(dir, { from })) {
    if (!frame.record.includes(needle)) continue;
    const record = recordIn(frame);
    if (matches(record, filter)) yield record;
  }
}

async function* recordsIn(
  dir: string,
  seal: Seal,
  filter: AuditFilter,
): AsyncGenerator<AuditRecord, void, void> {
  const wanted = candidates(seal, filter);
  if (wanted.length === 0) return;
  const path = join(dir, segmentName(seal.segment));
  const few = wanted.length <= seal.blocks.length / 2 ? await inBlocks(path, seal, wanted, filter) : null;
  yield* few ?? framesIn(await readFile(path)).records.filter((record) => matches(record, filter));
}

/** Matches in some blocks of a segment; null if the records are not where the index says. */
async function inBlocks(
  path: string,
  { blocks, end }: Seal,
  wanted: readonly number[],
  filter: AuditFilter,
): Promise<readonly AuditRecord[] | null> {
  const found: AuditRecord[] = [];
  const { size } = await stat(path);
  const handle = await open(path, 'r');
  try {
    for (const number of wanted) {
      const [block, next] = [blocks[number], blocks[number + 1]];
      const from = block?.at ?? 0;
      const bytes = Buffer.alloc(Math.max(0, Math.min(size, next?.at ?? size) - from));
      await handle.read(bytes, 0, bytes.length, from);
      const { records, whole } = framesIn(bytes, 0);
      const last = records.at(-1);
      if (!whole || records[0]?.seq !== block?.seq || last?.seq !== (next?.seq ?? end) - 1) return null;
      found.push(...records.filter((record) => matches(record, filter)));
    }
  } finally {
    await handle.close();
  }
  return found;
}

/** The blocks in which a record of the filter may stand, ascending. */
export function candidates(
  seal: Seal,
  { subject, object, since, until, requestId, fingerprints }: AuditFilter,
): readonly number[] {
  const inTime = ({ since: first, until: last }: SealBlock): boolean =>
    (since === undefined || last >= since) && (until === undefined || first < until);
  const ofSubject = subject === undefined ? null : blocksOf(seal.subjects, [subject]);
  const ofObject = object === undefined ? null : blocksOf(seal.objects, [...namesOf(object), OMITTED]);
  const ofName = fingerprints === undefined ? null : blocksOf(seal.objects, [...fingerprints, OMITTED]);
  const ofRequest = (block: SealBlock): boolean =>
    requestId === undefined || mayHaveRequest(block, requestId);
  return seal.blocks.flatMap((block, number) => {
    const posted = [ofSubject, ofObject, ofName].every((blocks) => blocks?.has(number) ?? true);
    return posted && inTime(block) && ofRequest(block) ? [number] : [];
  });
}

function blocksOf(postings: Postings, names: readonly string[]): ReadonlySet<number> {
  const wanted = new Set(names);
  return new Set(postings.flatMap(([name, blocks]) => (wanted.has(name) ? blocks : [])));
}

/** @param start of the first frame; default: after the header */
function framesIn(
  bytes: Buffer,
  start: number = decodeHeader(bytes)?.end ?? 0,
): { readonly records: readonly AuditRecord[]; readonly whole: boolean } {
  const records: AuditRecord[] = [];
  const end = usedEnd(bytes);
  let at = start;
  for (let frame = frameAt(bytes, at, end); frame; frame = frameAt(bytes, at, end)) {
    records.push(JSON.parse(frame.record.toString()) as AuditRecord); // the writer's format
    at = frame.next;
  }
  return { records, whole: at === end };
}

/** Records of several chains, each in its own order, the earliest first. */
export async function* byTime(
  chains: readonly AsyncGenerator<AuditRecord, void, void>[],
): AsyncGenerator<AuditRecord, void, void> {
  const heads = await Promise.all(chains.map(async (chain) => ({ chain, next: await chain.next() })));
  for (;;) {
    let first: (typeof heads)[number] | null = null;
    let earliest: AuditRecord | null = null;
    for (const head of heads) {
      if (head.next.done) continue;
      if (earliest === null || head.next.value.ts < earliest.ts) [first, earliest] = [head, head.next.value];
    }
    if (first === null || earliest === null) return;
    yield earliest;
    first.next = await first.chain.next();
  }
}
