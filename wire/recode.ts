import { isAscii } from 'node:buffer';
import { error } from './errors.js';
import type { Awaitable, ColumnDescription, CopyFormat, FormatCode, RowWriter } from './handler.js';
import { MessageReader } from './message-fields.js';
import { Frontend } from './messages/types.js';
import type { TextEncoding } from './text-encoding.js';

const DATA_ROW = 0x44;
const HEADER = 5;
/** Number of copies made of each chunk of rows: the converted values, and the messages that contain them. */
const COPIES = 2;

export interface ResultShape {
  readonly columns: readonly ColumnDescription[];
  readonly formats: readonly FormatCode[];
  readonly copy: CopyFormat | null;
}

/**
 * Wraps `rows` to convert text to `encoding`. Not possible for binary COPY, whose message structure is unknown.
 *
 * @throws WireError 0A000, and 22P05 for a row that cannot be converted
 */
export function recodeRows(
  rows: RowWriter,
  { columns, formats, copy }: ResultShape,
  encoding: TextEncoding,
): RowWriter {
  if (copy?.format === 1)
    throw error('0A000', `COPY in binary is not supported with client_encoding ${encoding.name}`, {
      hint: 'set client_encoding to UTF8, or copy in text',
    });
  const parts = columns.map(({ typeOid }, i) => textPart(typeOid, formats[i] ?? 0));
  const encode = (utf8: Buffer): Promise<Buffer> => encoding.encode(utf8);
  const convertRow = async (body: Buffer): Promise<readonly Buffer[]> => {
    const pieces = [body.subarray(0, 2)];
    for (let i = 0, at = 2; i < body.readUInt16BE(0); i++) {
      const length = body.readInt32BE(at);
      const end = at + 4 + Math.max(0, length);
      if (length < 0) pieces.push(body.subarray(at, end));
      else
        pieces.push(...withLength(await convertPart(body.subarray(at + 4, end), parts[i] ?? 'none', encode)));
      at = end;
    }
    return pieces;
  };
  const recode = async (bytes: Buffer): Promise<void> => {
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + bytes.readInt32BE(at + 1);
      const body = bytes.subarray(at + HEADER, end);
      const type = bytes[at] ?? 0;
      const pieces = type === DATA_ROW ? await convertRow(body) : [await convertPart(body, 'whole', encode)];
      out.push(header(type, pieces), ...pieces);
      at = end;
    }
    await rows.write(Buffer.concat(out));
  };
  return {
    copies: (rows.copies ?? 0) + COPIES,
    write: (messages): Awaitable<void> => {
      const bytes = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
      return isAscii(bytes) ? rows.write(messages) : recode(bytes);
    },
  };
}

function header(type: number, body: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(HEADER);
  head[0] = type;
  head.writeInt32BE(
    body.reduce((sum, piece) => sum + piece.length, 4),
    1,
  );
  return head;
}

/** The types whose binary format is text: "char", name, text, json, xml, unknown, char(n), varchar, cstring. */
const TEXT_IN_BINARY: ReadonlySet<number> = new Set([18, 19, 25, 114, 142, 705, 1042, 1043, 2275]);
/** In binary format, jsonb is a version byte followed by text. */
const JSONB = 3802;

/** The part of a value's bytes that is text: all of it, all but the first byte (a version), or nothing. */
type TextPart = 'whole' | 'after first byte' | 'none';

function textPart(typeOid: number, format: FormatCode): TextPart {
  if (format === 0 || TEXT_IN_BINARY.has(typeOid)) return 'whole';
  return typeOid === JSONB ? 'after first byte' : 'none';
}

/**
 * Converts a message body from `encoding` to UTF-8. `typesOf` returns the parameter types of a prepared statement, for
 * binary values.
 *
 * @throws WireError 22021 or 22P05 for text that is invalid in `encoding`, 08P01 if the message is malformed, and any
 * error of `typesOf`
 */
export async function recodeMessage(
  type: number,
  body: Buffer,
  encoding: TextEncoding,
  typesOf: (statement: string) => Promise<readonly number[]>,
): Promise<Buffer> {
  if (isAscii(body)) return body;
  const reader = new MessageReader(body);
  const readName = async (): Promise<Buffer> => Buffer.from(`${await encoding.decode(reader.untilNul())}\0`);
  switch (type) {
    case Frontend.query:
    case Frontend.execute:
      return Buffer.concat([await readName(), reader.bytes(reader.remainingBytes)]);
    case Frontend.parse:
      return Buffer.concat([await readName(), await readName(), reader.bytes(reader.remainingBytes)]);
    case Frontend.describe:
    case Frontend.close:
      return Buffer.concat([reader.bytes(1), await readName(), reader.bytes(reader.remainingBytes)]);
    case Frontend.bind: {
      const portal = await readName();
      const statement = await readName();
      const types = await typesOf(statement.toString('utf8', 0, statement.length - 1));
      return Buffer.concat([
        portal,
        statement,
        ...(await recodeValues(reader, types, encoding)),
        reader.bytes(reader.remainingBytes),
      ]);
    }
    default:
      return body;
  }
}

async function recodeValues(
  reader: MessageReader,
  types: readonly number[],
  encoding: TextEncoding,
): Promise<readonly Buffer[]> {
  const formats = reader.bytes(2);
  const codes = reader.bytes(2 * formats.readUInt16BE());
  const formatOf = (i: number): FormatCode => {
    const at = codes.length === 2 ? 0 : 2 * i;
    return at < codes.length && codes.readInt16BE(at) === 1 ? 1 : 0;
  };
  const count = reader.bytes(2);
  const toUtf8 = async (bytes: Buffer): Promise<Buffer> => Buffer.from(await encoding.decode(bytes));
  const pieces = [formats, codes, count];
  for (let i = 0; i < count.readUInt16BE(); i++) {
    const head = reader.bytes(4);
    const length = head.readInt32BE();
    if (length < 0) pieces.push(head);
    else {
      const part = textPart(types[i] ?? 0, formatOf(i));
      pieces.push(...withLength(await convertPart(reader.bytes(length), part, toUtf8)));
    }
  }
  return pieces;
}

async function convertPart(
  value: Buffer,
  part: TextPart,
  convert: (text: Buffer) => Promise<Buffer>,
): Promise<Buffer> {
  if (part === 'none') return value;
  const from = part === 'whole' ? 0 : 1;
  const text = value.subarray(from);
  if (isAscii(text)) return value;
  const converted = await convert(text);
  return from === 0 ? converted : Buffer.concat([value.subarray(0, from), converted]);
}

function withLength(value: Buffer): readonly [Buffer, Buffer] {
  const head = Buffer.alloc(4);
  head.writeInt32BE(value.length);
  return [head, value];
}
