import type { WireError } from '../errors.js';
import type { ColumnDescription, CopyFormat, FormatCode, TransactionStatus, WireNotice } from '../handler.js';
import { encodeOnce, type MessageFields, MessageReader, type MessageWriter } from '../message-fields.js';
import { Backend } from './types.js';

/**
 * Cache of encoded RowDescriptions (UTF-8, all columns in text format) by list of columns, which statements of the same
 * shape share.
 */
const TEXT_ROW_DESCRIPTIONS = new WeakMap<readonly ColumnDescription[], Uint8Array>();

export function rowDescription(
  out: MessageWriter,
  columns: readonly ColumnDescription[],
  formats: readonly FormatCode[],
): void {
  if (out.encoding !== null || formats.some((format) => format !== 0)) {
    describe(out, columns, formats);
    return;
  }
  let encoded = TEXT_ROW_DESCRIPTIONS.get(columns);
  if (encoded === undefined) {
    encoded = encodeOnce((once) => describe(once, columns, []));
    TEXT_ROW_DESCRIPTIONS.set(columns, encoded);
  }
  out.append(encoded);
}

/** Writes a RowDescription. Table OID and attribute number are 0, because physical tables are not disclosed. */
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
  const cached = TAGS.get(tag);
  if (cached !== undefined) {
    out.append(cached);
    return;
  }
  const write = (to: MessageWriter): void =>
    to.message(Backend.commandComplete, (fields) => fields.cstring(tag));
  if (TAGS.size < MAX_TAGS) TAGS.set(tag, encodeOnce(write));
  write(out);
}

/** Cache of encoded CommandComplete messages by tag. */
const TAGS = new Map<string, Uint8Array>();
const MAX_TAGS = 1_000;

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

export function decodeQuery(body: Buffer): string {
  const reader = new MessageReader(body);
  const text = reader.cstring();
  reader.end();
  return text;
}

export function readyForQuery(out: MessageWriter, status: TransactionStatus): void {
  out.append(READY[status]);
}

const READY: Readonly<Record<TransactionStatus, Uint8Array>> = {
  I: encodeReady('I'),
  T: encodeReady('T'),
  E: encodeReady('E'),
};

function encodeReady(status: TransactionStatus): Uint8Array {
  return encodeOnce((out) =>
    out.message(Backend.readyForQuery, (fields) => fields.byte(status.charCodeAt(0))),
  );
}

export function errorResponse(out: MessageWriter, error: WireError): void {
  out.message(Backend.errorResponse, (fields) => {
    report(fields, error);
    if (error.position !== undefined) field(fields, 'P', String(error.position));
    if (error.routine !== undefined) field(fields, 'R', error.routine);
    fields.byte(0);
  });
}

export function noticeResponse(out: MessageWriter, notice: WireNotice): void {
  out.message(Backend.noticeResponse, (fields) => {
    report(fields, notice);
    fields.byte(0);
  });
}

/** @param processId process id of the notifying session */
export function notificationResponse(
  out: MessageWriter,
  processId: number,
  channel: string,
  payload: string,
): void {
  out.message(Backend.notificationResponse, (fields) => {
    fields.int32(processId);
    fields.cstring(channel);
    fields.cstring(payload);
  });
}

/** Writes the fields of an error or notice. S is the severity for display (localized in Postgres), V for programs. */
function report(fields: MessageFields, content: WireError | WireNotice): void {
  field(fields, 'S', content.severity);
  field(fields, 'V', content.severity);
  field(fields, 'C', content.sqlstate);
  field(fields, 'M', content.message);
  if (content.detail !== undefined) field(fields, 'D', content.detail);
  if (content.hint !== undefined) field(fields, 'H', content.hint);
}

function field(fields: MessageFields, code: string, value: string): void {
  fields.byte(code.charCodeAt(0));
  fields.cstring(value);
}
