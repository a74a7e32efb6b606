import { error, protocolViolation } from '../errors.js';
import type { FormatCode } from '../handler.js';
import { MessageReader, type MessageWriter } from '../message-fields.js';
import { Backend } from './types.js';

export interface Parse {
  readonly name: string;
  readonly text: string;
  /** The parameter type OIDs, 0 if unspecified. */
  readonly parameterTypes: readonly number[];
}

export function decodeParse(body: Buffer): Parse {
  const reader = new MessageReader(body);
  const name = reader.cstring();
  const text = reader.cstring();
  const parameterTypes = list(reader, 4, () => reader.uint32());
  reader.end();
  return { name, text, parameterTypes };
}

/** A Bind message with its formats as sent. Values are views of the body. */
export interface BindMessage {
  readonly portal: string;
  readonly statement: string;
  readonly parameterFormats: readonly FormatCode[];
  readonly values: readonly (Buffer | null)[];
  readonly resultFormats: readonly FormatCode[];
}

/**
 * Decodes a Bind body. Throws 08P01 for a count or length that exceeds the message, 22023 for a format other than 0 and
 * 1.
 */
export function decodeBind(body: Buffer): BindMessage {
  const reader = new MessageReader(body);
  const portal = reader.cstring();
  const statement = reader.cstring();
  const parameterFormats = list(reader, 2, () => format(reader));
  const values = list(reader, 4, () => value(reader));
  const resultFormats = list(reader, 2, () => format(reader));
  reader.end();
  return { portal, statement, parameterFormats, values, resultFormats };
}

export interface Execute {
  readonly portal: string;
  /** The maximum number of rows; 0 for all. */
  readonly maxRows: number;
}

export function decodeExecute(body: Buffer): Execute {
  const reader = new MessageReader(body);
  const portal = reader.cstring();
  const maxRows = Math.max(0, reader.int32());
  reader.end();
  return { portal, maxRows };
}

/** The target of Describe and Close. */
export interface StatementOrPortal {
  readonly kind: 'statement' | 'portal';
  readonly name: string;
}

export function decodeTarget(body: Buffer, message: 'DESCRIBE' | 'CLOSE'): StatementOrPortal {
  const reader = new MessageReader(body);
  const subtype = reader.byte();
  const name = reader.cstring();
  reader.end();
  if (subtype === 0x53) return { kind: 'statement', name };
  if (subtype === 0x50) return { kind: 'portal', name };
  throw protocolViolation(`invalid ${message} message subtype ${subtype}`);
}

export function decodeEmpty(body: Buffer): void {
  new MessageReader(body).end();
}

export function parseComplete(out: MessageWriter): void {
  out.message(Backend.parseComplete);
}

export function bindComplete(out: MessageWriter): void {
  out.message(Backend.bindComplete);
}

export function closeComplete(out: MessageWriter): void {
  out.message(Backend.closeComplete);
}

export function parameterDescription(out: MessageWriter, types: readonly number[]): void {
  out.message(Backend.parameterDescription, (fields) => {
    fields.uint16(types.length);
    for (const type of types) fields.uint32(type);
  });
}

function list<T>(reader: MessageReader, entryBytes: number, read: () => T): T[] {
  const count = reader.count(entryBytes);
  const entries: T[] = [];
  for (let i = 0; i < count; i++) entries.push(read());
  return entries;
}

function format(reader: MessageReader): FormatCode {
  const code = reader.int16();
  if (code === 0 || code === 1) return code;
  throw error('22023', `unsupported format code: ${code}`);
}

/**
 * Reads a length and a value. Length −1 is NULL; other negative lengths and values that extend beyond the message are
 * refused.
 */
function value(reader: MessageReader): Buffer | null {
  const length = reader.int32();
  if (length === -1) return null;
  if (length < -1) throw protocolViolation(`invalid parameter length ${length}`);
  return reader.bytes(length);
}
