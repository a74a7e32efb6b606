import type { ColumnDescription, CopyFormat, Format } from '../handler.js';
import { MessageWriter } from '../message-writer.js';
import { Backend } from './types.js';

/** Written once where all columns are text: statements of one shape share their columns. */
const ALL_TEXT = new WeakMap<readonly ColumnDescription[], Uint8Array>();

export function rowDescription(
  out: MessageWriter,
  columns: readonly ColumnDescription[],
  formats: readonly Format[],
): void {
  if (formats.some((format) => format !== 0)) {
    describe(out, columns, formats);
    return;
  }
  let written = ALL_TEXT.get(columns);
  if (written === undefined) {
    const once = new MessageWriter();
    describe(once, columns, []);
    written = Buffer.concat(once.take());
    ALL_TEXT.set(columns, written);
  }
  out.finished(written);
}

/** Table OID and attribute number are always 0: a physical table behind a column is nobody's business. */
function describe(
  out: MessageWriter,
  columns: readonly ColumnDescription[],
  formats: readonly Format[],
): void {
  out.begin(Backend.rowDescription);
  out.int16(columns.length);
  columns.forEach((column, i) => {
    out.cstring(column.name);
    out.int32(0);
    out.int16(0);
    out.uint32(column.typeOid);
    out.int16(column.typeLength);
    out.int32(column.typeModifier);
    out.int16(formats[i] ?? 0);
  });
  out.end();
}

export function noData(out: MessageWriter): void {
  out.begin(Backend.noData);
  out.end();
}

export function commandComplete(out: MessageWriter, tag: string): void {
  out.begin(Backend.commandComplete);
  out.cstring(tag);
  out.end();
}

export function emptyQueryResponse(out: MessageWriter): void {
  out.begin(Backend.emptyQueryResponse);
  out.end();
}

export function portalSuspended(out: MessageWriter): void {
  out.begin(Backend.portalSuspended);
  out.end();
}

export function copyOutResponse(out: MessageWriter, copy: CopyFormat): void {
  out.begin(Backend.copyOutResponse);
  out.byte(copy.format);
  out.int16(copy.columns);
  for (let i = 0; i < copy.columns; i++) out.int16(copy.format);
  out.end();
}

export function copyDone(out: MessageWriter): void {
  out.begin(Backend.copyDone);
  out.end();
}
