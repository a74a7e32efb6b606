import { encodeFrame, encodeHeader, type LogSource } from '../../policy/audit/index.js';
import type { Row, TableSession } from './session.js';

/** Rows asked for at a time. */
const PAGE = 5_000;

/**
 * The log of one writer as rows: the bytes of the segments that they would be on disk, so that whoever checks those
 * checks these.
 */
export function tableSource(session: TableSession, writer: string): LogSource {
  const notes = async (where: string): Promise<Buffer> => {
    const rows = await session.query(`SELECT note FROM osl_audit.checkpoint WHERE writer = $1 AND ${where}`, [
      writer,
    ]);
    return Buffer.from(rows.map(({ note }) => `${text(note)}\n`).join(''));
  };
  return Object.freeze({
    place: `osl_audit, writer ${writer}`,
    dir: null,
    mayTear: false,
    verifierKey: async () => {
      const [row] = await session.query('SELECT vkey FROM osl_audit.writer WHERE writer = $1', [writer]);
      return row === undefined ? null : text(row['vkey']);
    },
    checkpoints: () => notes(`kind = 'lasting' ORDER BY number`),
    latest: () => notes(`kind = 'newest' ORDER BY size DESC, number DESC LIMIT 1`),
    retained: () => notes(`kind = 'retained' ORDER BY size DESC, number DESC LIMIT 1`),
    segments: async () => {
      const rows = await session.query(
        'SELECT segment FROM osl_audit.segment WHERE writer = $1 ORDER BY segment',
        [writer],
      );
      return rows.map(({ segment }) => Number(segment));
    },
    segment: (number: number) => segmentBytes(session, writer, number),
  });
}

/** Writers of the table, the oldest first. */
export async function writersIn(session: TableSession): Promise<readonly string[]> {
  const rows = await session.query('SELECT writer FROM osl_audit.writer ORDER BY since, writer');
  return rows.map(({ writer }) => text(writer));
}

async function segmentBytes(session: TableSession, writer: string, segment: number): Promise<Buffer> {
  const [head] = await session.query(
    'SELECT epoch, first_seq, chain, day::text AS day FROM osl_audit.segment WHERE writer = $1 AND segment = $2',
    [writer, segment],
  );
  if (head === undefined) return Buffer.alloc(0);
  const firstSeq = Number(head['first_seq']);
  const epoch = Number(head['epoch']);
  const parts = [encodeHeader({ writer, epoch, segment, firstSeq, chain: bytes(head['chain']) })];
  let [group, back] = [-1, 0];
  for (let after = -1; ; ) {
    const rows = await session.query(
      `SELECT seq, first_of_group, chain, record FROM osl_audit.record
        WHERE writer = $1 AND segment = $2 AND seq > $3 AND day = $4::date ORDER BY seq LIMIT ${PAGE}`,
      [writer, segment, after, head['day']],
    );
    for (const row of rows) {
      const first = Number(row['first_of_group']);
      if (first !== group) [group, back] = [first, 0];
      const frame = encodeFrame(text(row['record']), back, bytes(row['chain']));
      parts.push(frame);
      back += frame.length;
    }
    if (rows.length < PAGE) return Buffer.concat(parts);
    after = Number(rows.at(-1)?.['seq']);
  }
}

export function text(value: Row[string]): string {
  if (typeof value === 'string') return value;
  throw new TypeError('the table of the audit log has other columns than its schema says');
}

export function bytes(value: Row[string]): Buffer {
  if (Buffer.isBuffer(value)) return value;
  throw new TypeError('the table of the audit log has other columns than its schema says');
}
