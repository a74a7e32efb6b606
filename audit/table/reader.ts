import { randomUUID } from 'node:crypto';
import { openSessionOnFirst, type PostgresSession, type ResultRow } from '../../src/base/postgres/index.js';
import {
  type AuditFilter,
  type AuditReadEvent,
  type AuditRecord,
  encodeFrame,
  encodeHeader,
  type KnownBoundary,
  type LeafRange,
  type LogIndex,
  type LogLeaf,
  type LogSource,
  matches,
  namesOf,
  type StoredRecord,
  splitHashes,
} from '../index.js';

const SEGMENT_PAGE = 5_000;

/** Log of one writer in tables, converted to the bytes of segment files so that the same verifier reads both. */
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
    index: tableIndex(session, writer),
    segment: (number: number) => segmentBytes(session, writer, number),
    strayRecord: () => strayRecord(session, writer),
  });
}

/**
 * Finds a row that `segmentBytes` does not read: on another day than its segment, or added to a segment that was signed
 * away. Reads in pages, because a statement over a whole log could exceed its timeout.
 */
async function strayRecord(session: TableSession, writer: string): Promise<number | null> {
  for (let [from, last] = [-1, 0]; from < last; ) {
    from = last;
    // Pages overlap by a seq, of which there may be another row on each day.
    const [page] = await session.query(STRAY_IN_PAGE, [writer, from]);
    const stray = page?.['stray'] ?? null;
    if (stray !== null) return Number(stray);
    last = Number(page?.['last'] ?? from);
  }
  return null;
}

const STRAY_IN_PAGE = `
SELECT max(seq) AS last, min(seq) FILTER (WHERE NOT is_in_segment OR is_late) AS stray
  FROM (SELECT seq,
               EXISTS (SELECT FROM osl_audit.segment s
                        WHERE s.writer = r.writer AND s.segment = r.segment AND s.day = r.day) AS is_in_segment,
               EXISTS (SELECT FROM osl_audit.checkpoint c
                        WHERE c.writer = r.writer AND c.kind = 'retained'
                          AND c.segment > r.segment AND c.size <= r.seq) AS is_late
          FROM osl_audit.record r WHERE writer = $1 AND seq >= $2 ORDER BY seq LIMIT 20000) AS page`;

/** Returns an index based on the table's own indexes; the database computes the leaf hashes. */
function tableIndex(session: TableSession, writer: string): LogIndex {
  return Object.freeze({
    recordsOf: async (requestId: string) => {
      const rows = await session.query(
        `${foundByRequest('$1')} SELECT seq, record FROM found WHERE writer = $2 ORDER BY seq`,
        [requestId, writer],
      );
      return rows.map(
        ({ seq, record }): StoredRecord => ({
          seq: Number(seq),
          record: Buffer.from(text(record)),
        }),
      );
    },
    places: async () => {
      const rows = await session.query(
        'SELECT first_seq, frontier FROM osl_audit.segment WHERE writer = $1 AND first_seq > 0 ORDER BY segment',
        [writer],
      );
      return rows.map(
        ({ first_seq: size, frontier }): KnownBoundary => ({
          size: Number(size),
          roots: splitHashes(bytes(frontier)),
        }),
      );
    },
    leaves: (ranges: readonly LeafRange[]) => leavesIn(session, writer, ranges),
  });
}

async function* leavesIn(
  session: TableSession,
  writer: string,
  ranges: readonly LeafRange[],
): AsyncGenerator<LogLeaf, void, void> {
  for (const { start, end } of ranges)
    for (let from = start; from < end; from += SEGMENT_PAGE) {
      const rows = await session.query(
        `SELECT seq, sha256('\\x00'::bytea || convert_to(record, 'UTF8')) AS leaf FROM osl_audit.record
          WHERE writer = $1 AND seq >= $2 AND seq < $3 ORDER BY seq`,
        [writer, from, Math.min(end, from + SEGMENT_PAGE)],
      );
      for (const { seq, leaf } of rows) yield { seq: Number(seq), hash: bytes(leaf).toString('latin1') };
    }
}

/** The CTE `found` with the rows of a request, materialized so that the planner uses the index on request_id. */
function foundByRequest(parameter: string): string {
  return `WITH found AS MATERIALIZED (SELECT * FROM osl_audit.record WHERE request_id = ${parameter})`;
}

/** Returns the writers in the table, oldest first. */
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
        WHERE writer = $1 AND segment = $2 AND seq > $3 AND day = $4::date ORDER BY seq LIMIT ${SEGMENT_PAGE}`,
      [writer, segment, after, head['day']],
    );
    for (const row of rows) {
      const first = Number(row['first_of_group']);
      if (first !== group) [group, back] = [first, 0];
      const frame = encodeFrame(text(row['record']), back, bytes(row['chain']));
      parts.push(frame);
      back += frame.length;
    }
    if (rows.length < SEGMENT_PAGE) return Buffer.concat(parts);
    after = Number(rows.at(-1)?.['seq']);
  }
}

export function text(value: ResultRow[string]): string {
  if (typeof value === 'string') return value;
  throw new TypeError('the table of the audit log has other columns than its schema says');
}

export function bytes(value: ResultRow[string]): Buffer {
  if (Buffer.isBuffer(value)) return value;
  throw new TypeError('the table of the audit log has other columns than its schema says');
}

export type { ResultRow };

/** Connection to the log's database. */
export type TableSession = Pick<PostgresSession, 'query' | 'open' | 'cut' | 'end'>;

/** Returns the connection URL. Called for each connection, because the password may change. */
export type TableUrl = () => string;

const CONNECT_MS = 5_000;
/** Extra time after the statement timeout, so that the server's own timeout error can arrive, ms. */
const GRACE_MS = 1_000;

/** Opens a connection. @throws errors of `pg` if the database does not respond or rejects the login */
export async function connectTable(url: TableUrl, statementMs: number): Promise<TableSession> {
  return openSessionOnFirst(url(), {
    application_name: 'osl audit',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    silenceMs: statementMs + GRACE_MS,
    // The search path excludes user-defined functions, and synchronous_commit makes acknowledged commits durable.
    options: '-c search_path=pg_catalog -c synchronous_commit=on -c client_encoding=UTF8',
  });
}

const SEARCH_PAGE = 2_000;

/** Sort key of the last row that was read. */
type SearchCursor = readonly [ts: string, writer: string, seq: string];

/** Yields matching records of all writers, earliest first. Rows that the SQL conditions select are checked again. */
export async function* searchTable(
  session: TableSession,
  filter: AuditFilter,
): AsyncGenerator<AuditRecord, void, void> {
  const where = conditionsOf(filter);
  let place: SearchCursor = ['', '', '-1'];
  for (;;) {
    const rows = await session.query(
      `${where.rows} WHERE (ts, writer, seq) > ($1, $2, $3::bigint)${where.text} ORDER BY ts, writer, seq LIMIT ${SEARCH_PAGE}`,
      [...place, ...where.values],
    );
    for (const row of rows) {
      const record = recordIn(row);
      if (matches(record, filter)) yield record;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < SEARCH_PAGE) return;
    place = [text(last['ts']), text(last['writer']), text(last['seq'])];
  }
}

/**
 * Returns the newest matching records of a tenant before `from` (null: the newest of all). Stops after about `ms` even
 * with fewer than `most` records. `next` is the position at which to continue; null if there are no more records.
 */
export async function newestInTable(
  session: TableSession,
  filter: AuditFilter,
  tenant: string,
  { from, most, ms }: { readonly from: SearchCursor | null; readonly most: number; readonly ms: number },
): Promise<{ readonly records: readonly AuditRecord[]; readonly next: SearchCursor | null }> {
  const where = conditionsOf(filter);
  const until = performance.now() + ms;
  const records: AuditRecord[] = [];
  let place: SearchCursor = from ?? NEWEST;
  for (;;) {
    const rows = await session.query(
      `${where.rows} WHERE (ts, writer, seq) < ($1, $2, $3::bigint)${where.text} ORDER BY ts DESC, writer DESC, seq DESC LIMIT ${NEWEST_PAGE}`,
      [...place, ...where.values],
    );
    for (const row of rows) {
      const record = recordIn(row);
      place = [text(row['ts']), text(row['writer']), text(row['seq'])];
      if (record.tenant === tenant && matches(record, filter)) records.push(record);
      if (records.length === most) return { records, next: place };
    }
    if (rows.length < NEWEST_PAGE) return { records, next: null };
    if (performance.now() > until) return { records, next: place };
  }
}

/** A position that sorts after every row. */
const NEWEST: SearchCursor = ['~', '~', '9223372036854775807'];
/** Page size; small, because most requests need few records. */
const NEWEST_PAGE = 500;

/** Returns the newest records in ascending order: those of one writer, or of all writers if `writer` is null. */
export async function tailTable(
  session: TableSession,
  count: number,
  writer: string | null = null,
): Promise<readonly AuditRecord[]> {
  const rows = await session.query(
    writer === null
      ? 'SELECT record FROM osl_audit.record ORDER BY ts DESC, writer DESC, seq DESC LIMIT $1'
      : 'SELECT record FROM osl_audit.record WHERE writer = $2 ORDER BY seq DESC LIMIT $1',
    writer === null ? [count] : [count, writer],
  );
  return rows.map(recordIn).reverse();
}

/** Returns the records of a writer after `seq`, `SEARCH_PAGE` at most. */
export async function recordsAfter(
  session: TableSession,
  writer: string,
  seq: number,
): Promise<readonly AuditRecord[]> {
  const rows = await session.query(
    `SELECT record FROM osl_audit.record WHERE writer = $1 AND seq > $2 ORDER BY seq LIMIT ${SEARCH_PAGE}`,
    [writer, seq],
  );
  return rows.map(recordIn);
}

/** Announces a read access for a gateway to record. @throws if that fails, in which case nothing should be read */
export async function announceTableRead(session: TableSession, reading: AuditReadEvent): Promise<void> {
  await session.query('INSERT INTO osl_audit.reading (id, reading) VALUES ($1, $2)', [
    randomUUID(),
    JSON.stringify(reading),
  ]);
}

function recordIn({ record }: ResultRow): AuditRecord {
  return JSON.parse(text(record)) as AuditRecord; // encoded by the writer
}

/** Translates the conditions that the table's indexes support to SQL. */
function conditionsOf({ subject, object, fingerprints, since, until, requestId }: AuditFilter): {
  readonly rows: string;
  readonly text: string;
  readonly values: readonly unknown[];
} {
  const values: unknown[] = [];
  const value = (given: unknown): string => `$${values.push(given) + 3}`;
  const rows =
    requestId === undefined
      ? 'SELECT ts, writer, seq, record FROM osl_audit.record'
      : `${foundByRequest(value(requestId))} SELECT ts, writer, seq, record FROM found`;
  const conditions = [
    ...(subject === undefined ? [] : [`parties @> ARRAY[${value(subject)}]::text[]`]),
    ...(object === undefined ? [] : [`(objects && ${value(namesOf(object))}::text[] OR objects_omitted)`]),
    ...(since === undefined ? [] : [`ts >= ${value(since)}`]),
    ...(until === undefined ? [] : [`ts < ${value(until)}`]),
    ...(fingerprints === undefined ? [] : [`(objects && ${value(fingerprints)}::text[] OR objects_omitted)`]),
  ];
  return { rows, text: conditions.map((condition) => ` AND ${condition}`).join(''), values };
}
