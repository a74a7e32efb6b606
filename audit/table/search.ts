import { randomUUID } from 'node:crypto';
import { type AuditFilter, type AuditReadEvent, type AuditRecord, matches, namesOf } from '../index.js';
import type { ResultRow, TableSession } from './source.js';
import { foundByRequest, text } from './source.js';

const PAGE = 2_000;

/** Sort key of the last row that was read. */
type SearchCursor = readonly [ts: string, writer: string, seq: string];

/** Matching records of all writers, earliest first. Rows found through the index are checked again. */
export async function* searchTable(
  session: TableSession,
  filter: AuditFilter,
): AsyncGenerator<AuditRecord, void, void> {
  const where = conditionsOf(filter);
  let place: SearchCursor = ['', '', '-1'];
  for (;;) {
    const rows = await session.query(
      `${where.rows} WHERE (ts, writer, seq) > ($1, $2, $3::bigint)${where.text} ORDER BY ts, writer, seq LIMIT ${PAGE}`,
      [...place, ...where.values],
    );
    for (const row of rows) {
      const record = recordIn(row);
      if (matches(record, filter)) yield record;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    place = [text(last['ts']), text(last['writer']), text(last['seq'])];
  }
}

/**
 * Newest matching records of a tenant before `from`; `next` is null if there are no more. Stops after about `ms` even
 * with fewer than `most` records.
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

/** Newest records of one writer or of all, in ascending order. */
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

/** Records of a writer after `seq`, `PAGE` at most. */
export async function recordsAfter(
  session: TableSession,
  writer: string,
  seq: number,
): Promise<readonly AuditRecord[]> {
  const rows = await session.query(
    `SELECT record FROM osl_audit.record WHERE writer = $1 AND seq > $2 ORDER BY seq LIMIT ${PAGE}`,
    [writer, seq],
  );
  return rows.map(recordIn);
}

/** Announces a read access for a gateway to record. @throws if that fails; nothing should be read then */
export async function announceTableRead(session: TableSession, reading: AuditReadEvent): Promise<void> {
  await session.query('INSERT INTO osl_audit.reading (id, reading) VALUES ($1, $2)', [
    randomUUID(),
    JSON.stringify(reading),
  ]);
}

function recordIn({ record }: ResultRow): AuditRecord {
  return JSON.parse(text(record)) as AuditRecord; // in the writer's format
}

/** Conditions of a search that the indexes of the table support. */
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
