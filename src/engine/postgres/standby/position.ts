/** A position in the write-ahead log, in bytes. */
export type LogPosition = bigint;

const FORM = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;
const PAGE_BYTES = 8_192n;
const PAGE_HEADER_BYTES = 24n;
const SEGMENT_HEADER_BYTES = 40n;

/** Parses a `pg_lsn`, such as `16/B374D848`. Throws Error for anything else. */
export function logPosition(text: string): LogPosition {
  const [, high, low] = FORM.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`\`${text}\` is no position in the log`);
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/**
 * The end of the last record before an insert position. Where the next record begins a page, Postgres gives the
 * position behind the page's header, which a standby reaches only with that record: an idle standby would seem to lag.
 *
 * @param segmentBytes `wal_segment_size`
 */
export function lastRecordEnd(inserted: LogPosition, segmentBytes: bigint): LogPosition {
  if (inserted % segmentBytes === SEGMENT_HEADER_BYTES) return inserted - SEGMENT_HEADER_BYTES;
  return inserted % PAGE_BYTES === PAGE_HEADER_BYTES ? inserted - PAGE_HEADER_BYTES : inserted;
}
