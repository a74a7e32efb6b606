import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  chainHash,
  decodeHeader,
  encodeFrame,
  encodeHeader,
  frameAt,
  leafHash,
  segmentName,
  usedEnd,
} from '../../audit/format.js';
import type { LogSource } from '../../audit/index.js';

/** A log taken apart, whichever store it was in: what an owner of the store can change piece by piece. */
export interface StoredLog {
  key: string | null;
  /** Checkpoints that stay, each without its empty line, and the newest. */
  lasting: string[];
  latest: string | null;
  segments: StoredSegment[];
}

export interface StoredSegment {
  number: number;
  writer: string;
  epoch: number;
  firstSeq: number;
  chain: Buffer;
  records: StoredRecord[];
}

export interface StoredRecord {
  text: string;
  chain: Buffer;
  /** True if it is the first of its group commit. */
  begins: boolean;
}

export async function takenApart(source: LogSource): Promise<StoredLog> {
  const segments: StoredSegment[] = [];
  for (const number of await source.segments()) {
    const bytes = await source.segment(number, false);
    const decoded = decodeHeader(bytes);
    if (decoded === null) throw new Error(`segment ${number} has no header`);
    const records: StoredRecord[] = [];
    const end = usedEnd(bytes);
    for (let frame = frameAt(bytes, decoded.end, end); frame; frame = frameAt(bytes, frame.next, end)) {
      records.push({
        text: frame.record.toString(),
        chain: Buffer.from(frame.chain),
        begins: frame.back === 0,
      });
    }
    const { writer, epoch, firstSeq, chain } = decoded.header;
    segments.push({ number, writer, epoch, firstSeq, chain, records });
  }
  const notes = (file: Buffer): string[] =>
    file
      .toString()
      .split(/(?<=\n\n\u2014 [^\n]+\n)\n/)
      .filter((note) => note !== '');
  return {
    key: await source.verifierKey(),
    lasting: notes(await source.checkpoints()),
    latest: notes(await source.latest())[0] ?? null,
    segments,
  };
}

/** Chains everything anew, as whoever has no signing key can. */
export function rechained(log: StoredLog): void {
  let chain: Buffer = Buffer.from(log.segments[0]?.chain ?? Buffer.alloc(32));
  for (const segment of log.segments) {
    segment.chain = chain;
    for (const record of segment.records) {
      chain = linked(chain, record.text);
      record.chain = chain;
    }
  }
}

export function linked(chain: Buffer, text: string): Buffer {
  return chainHash(chain, leafHash(Buffer.concat([Buffer.alloc(1), Buffer.from(text)])));
}

/** As segment files. */
export function intoDirectory(log: StoredLog, dir: string): void {
  mkdirSync(dir, { recursive: true });
  if (log.key !== null) writeFileSync(join(dir, 'checkpoint.vkey'), log.key);
  writeFileSync(join(dir, 'checkpoints'), log.lasting.map((note) => `${note}\n`).join(''));
  if (log.latest !== null) writeFileSync(join(dir, 'checkpoint.latest'), `${log.latest}\n`);
  for (const { number, records, ...header } of log.segments) {
    const parts: Buffer[] = [encodeHeader({ ...header, segment: number })];
    let back = 0;
    for (const { text, chain, begins } of records) {
      if (begins) back = 0;
      const frame = encodeFrame(text, back, chain);
      parts.push(frame);
      back += frame.length;
    }
    writeFileSync(join(dir, segmentName(number)), Buffer.concat(parts));
  }
}

type Owner = (sql: string, values?: readonly unknown[]) => Promise<unknown>;

/** As rows, in the place of all that is in the table; by its owner, whom no key of the table stops. */
export async function intoTable(log: StoredLog, writer: string, owner: Owner): Promise<void> {
  await owner('DELETE FROM osl_audit.record');
  await owner('DELETE FROM osl_audit.segment');
  await owner('DELETE FROM osl_audit.checkpoint');
  await owner('UPDATE osl_audit.writer SET vkey = $2 WHERE writer = $1', [writer, log.key ?? '']);
  for (const [kind, notes] of [
    ['lasting', log.lasting],
    ['newest', log.latest === null ? [] : [log.latest]],
  ] as const) {
    for (const [at, note] of notes.entries()) {
      const size = Number(/\n(\d+)\n/.exec(note)?.[1] ?? at);
      await owner('INSERT INTO osl_audit.checkpoint (writer, size, kind, note) VALUES ($1, $2, $3, $4)', [
        writer,
        size,
        kind,
        note,
      ]);
    }
  }
  for (const { number, epoch, firstSeq, chain, records } of log.segments) {
    await owner(
      `INSERT INTO osl_audit.segment (writer, segment, epoch, first_seq, chain, frontier, unanswered) VALUES ($1, $2, $3, $4, $5, '', '[]')`,
      [writer, number, epoch, firstSeq, chain],
    );
    const rows = rowsOf(records, number);
    await owner(
      `INSERT INTO osl_audit.record (day, writer, segment, seq, first_of_group, previous, chain, record)
       SELECT (now() AT TIME ZONE 'UTC')::date, $1, $2, seq, grp, decode(previous, 'hex'), decode(chain, 'hex'), record
         FROM jsonb_to_recordset($3::jsonb) AS r (seq bigint, grp bigint, previous text, chain text, record text)`,
      [writer, number, JSON.stringify(rows)],
    );
  }
}

/** They are read in the order of `seq`: whoever moves rows renumbers them. What stands in `previous` nobody reads. */
function rowsOf(records: readonly StoredRecord[], segment: number) {
  let group = 0;
  return records.map(({ text, chain, begins }, at) => {
    const seq = segment * 100_000 + at;
    if (begins || at === 0) group = seq;
    return {
      seq,
      grp: group,
      previous: hash('sha256', String(seq)),
      chain: chain.toString('hex'),
      record: text,
    };
  });
}
