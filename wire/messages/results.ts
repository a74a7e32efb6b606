import type { ColumnDescription, CopyFormat, FormatCode } from '../handler.js';
import { type MessageWriter, writtenOnce } from '../message-writer.js';
import { Backend } from './types.js';

/** Written once, in UTF-8, where all columns are text: statements of one shape share their columns. */
const ALL_TEXT = new WeakMap<readonly ColumnDescription[], Uint8Array>();

export function rowDescription(
  out: MessageWriter,
  columns: readonly ColumnDescription[],
  formats: readonly FormatCode[],
): void {
  if (out.encoding !== null || formats.some((format) => format !== 0)) {
    describe(out, columns, formats);
    return;
  }
  let written = ALL_TEXT.get(columns);
  if (written === undefined) {
    written = writtenOnce((once) => describe(once, columns, []));
    ALL_TEXT.set(columns, written);
  }
  out.finished(written);
}

/** Table OID and attribute number are always 0: a physical table behind a column is nobody's business. */
function describe(
  out: MessageWriter,
  columns: readonly ColumnDescription[],
  formats: readonly FormatCode[],
): void {
  out.message(Backend.rowDescription, (fields) => {
    fields.uint16(columns.length);
    columns.forEach((column, i) => {
      fields.cstring(column.name);
      fields.int32(0);
      fields.int16(0);
      fields.uint32(column.typeOid);
      fields.int16(column.typeLength);
      fields.int32(column.typeModifier);
      fields.int16(formats[i] ?? 0);
    });
  });
}

export function noData(out: MessageWriter): void {
  out.message(Backend.noData);
}

export function commandComplete(out: MessageWriter, tag: string): void {
  const known = TAGS.get(tag);
  if (known !== undefined) {
    out.finished(known);
    return;
  }
  const write = (to: MessageWriter): void =>
    to.message(Backend.commandComplete, (fields) => fields.cstring(tag));
  if (TAGS.size < MOST_TAGS) TAGS.set(tag, writtenOnce(write));
  write(out);
}

/** Tags that have been written before. */
const TAGS = new Map<string, Uint8Array>();
const MOST_TAGS = 1_000;

export function emptyQueryResponse(out: MessageWriter): void {
  out.message(Backend.emptyQueryResponse);
}

export function portalSuspended(out: MessageWriter): void {
  out.message(Backend.portalSuspended);
}

export function copyOutResponse(out: MessageWriter, copy: CopyFormat): void {
  out.message(Backend.copyOutResponse, (fields) => {
    fields.byte(copy.format);
    fields.uint16(copy.columns);
    for (let i = 0; i < copy.columns; i++) fields.int16(copy.format);
  });
}

export function copyDone(out: MessageWriter): void {
  out.message(Backend.copyDone);
}
