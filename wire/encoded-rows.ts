import { isAscii } from 'node:buffer';
import { error } from './errors.js';
import type { Awaitable, ColumnDescription, CopyFormat, FormatCode, RowWriter } from './handler.js';
import { inPart, sized, textPart } from './recode.js';
import type { TextEncoding } from './text-encoding.js';

const DATA_ROW = 0x44;
const HEADER = 5;
/** The values of a run in the other encoding, and the messages made of them. */
const COPIES = 2;

/** Columns and formats of one result. */
export interface ResultShape {
  readonly columns: readonly ColumnDescription[];
  /** One for each column; none: text. */
  readonly formats: readonly FormatCode[];
  readonly copy: CopyFormat | null;
}

/**
 * Writes the rows of a result to `rows` with their texts in `encoding`. A binary COPY has no place for an encoding in its
 * messages. @throws WireError 0A000, and 22P05 with the first row that cannot be written
 */
export function encodedRows(
  rows: RowWriter,
  { columns, formats, copy }: ResultShape,
  encoding: TextEncoding,
): RowWriter {
  if (copy?.format === 1)
    throw error('0A000', `COPY in binary is not supported with client_encoding ${encoding.name}`, {
      hint: 'set client_encoding to UTF8, or copy in text',
    });
  const parts = columns.map(({ typeOid }, i) => textPart(typeOid, formats[i] ?? 0));
  const encoded = (utf8: Buffer): Promise<Buffer> => encoding.encode(utf8);
  const row = async (body: Buffer): Promise<readonly Buffer[]> => {
    const pieces = [body.subarray(0, 2)];
    for (let i = 0, at = 2; i < body.readUInt16BE(0); i++) {
      const length = body.readInt32BE(at);
      const end = at + 4 + Math.max(0, length);
      if (length < 0) pieces.push(body.subarray(at, end));
      else pieces.push(...sized(await inPart(body.subarray(at + 4, end), parts[i] ?? 'none', encoded)));
      at = end;
    }
    return pieces;
  };
  const run = async (bytes: Buffer): Promise<void> => {
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + bytes.readInt32BE(at + 1);
      const body = bytes.subarray(at + HEADER, end);
      const type = bytes[at] ?? 0;
      const pieces = type === DATA_ROW ? await row(body) : [await inPart(body, 'whole', encoded)];
      out.push(header(type, pieces), ...pieces);
      at = end;
    }
    await rows.write(Buffer.concat(out));
  };
  return {
    copies: (rows.copies ?? 0) + COPIES,
    write: (messages): Awaitable<void> => {
      const bytes = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
      return isAscii(bytes) ? rows.write(messages) : run(bytes);
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
