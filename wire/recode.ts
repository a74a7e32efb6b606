import { isAscii } from 'node:buffer';
import type { FormatCode, WireStatement } from './handler.js';
import { MessageReader } from './message-reader.js';
import { Frontend } from './messages/types.js';
import type { TextEncoding } from './text-encoding.js';

/** OIDs of the types whose binary form is their text: "char", name, text, json, xml, unknown, char(n), varchar, cstring. */
const TEXT_IN_BINARY: ReadonlySet<number> = new Set([18, 19, 25, 114, 142, 705, 1042, 1043, 2275]);
/** jsonb in binary is a version and its text. */
const JSONB = 3802;

/** Place of text in a value's bytes: whole, behind one byte, or not at all. */
export type TextPart = 'whole' | 'behind a byte' | 'none';

export function textPart(typeOid: number, format: FormatCode): TextPart {
  if (format === 0 || TEXT_IN_BINARY.has(typeOid)) return 'whole';
  return typeOid === JSONB ? 'behind a byte' : 'none';
}

/**
 * The body of a message that a client wrote in `encoding`, as it would be in UTF-8. `typesOf` tells the parameter types of
 * a prepared statement, for values in binary.
 *
 * @throws WireError 22021, and 08P01 where the message is broken
 */
export async function recoded(
  type: number,
  body: Buffer,
  encoding: TextEncoding,
  typesOf: (statement: string) => Pick<WireStatement, 'parameterTypes'> | undefined,
): Promise<Buffer> {
  if (isAscii(body)) return body;
  const reader = new MessageReader(body);
  const name = async (): Promise<Buffer> => Buffer.from(`${await encoding.decode(reader.untilNul())}\0`);
  switch (type) {
    case Frontend.query:
    case Frontend.execute:
      return Buffer.concat([await name(), reader.bytes(reader.left)]);
    case Frontend.parse:
      return Buffer.concat([await name(), await name(), reader.bytes(reader.left)]);
    case Frontend.describe:
    case Frontend.close:
      return Buffer.concat([reader.bytes(1), await name(), reader.bytes(reader.left)]);
    case Frontend.bind: {
      const portal = await name();
      const statement = await name();
      const types = typesOf(statement.toString('utf8', 0, statement.length - 1))?.parameterTypes ?? [];
      return Buffer.concat([
        portal,
        statement,
        ...(await recodedValues(reader, types, encoding)),
        reader.bytes(reader.left),
      ]);
    }
    default:
      return body;
  }
}

/** The formats and values of a Bind. */
async function recodedValues(
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
  const inUtf8 = async (bytes: Buffer): Promise<Buffer> => Buffer.from(await encoding.decode(bytes));
  const pieces = [formats, codes, count];
  for (let i = 0; i < count.readUInt16BE(); i++) {
    const head = reader.bytes(4);
    const length = head.readInt32BE();
    if (length < 0) pieces.push(head);
    else {
      const part = textPart(types[i] ?? 0, formatOf(i));
      pieces.push(...sized(await inPart(reader.bytes(length), part, inUtf8)));
    }
  }
  return pieces;
}

/** `value` with the text in it converted. */
export async function inPart(
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

/** A value behind its length. */
export function sized(value: Buffer): readonly [Buffer, Buffer] {
  const head = Buffer.alloc(4);
  head.writeInt32BE(value.length);
  return [head, value];
}
