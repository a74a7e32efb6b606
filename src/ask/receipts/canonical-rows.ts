import { elementOf, isArray, type OutputColumn, queryError } from 'osl-compiler';
import { DataRowReader, GrowingBytes } from '../../engine/index.js';
import { elementsIn, TextTooLong, toTextOf } from './binary-text.js';

/**
 * Converts the rows of an answer to the form that receipts digest: Postgres DataRow messages with values in text
 * format. As in an answer over REST, a json value has no line breaks or surrounding blanks, and a JSON null is NULL.
 */
export class CanonicalRows {
  readonly #columns: readonly CanonicalColumn[];
  /** True if no row needs to be converted. */
  readonly unchanged: boolean;
  readonly #out = new RowBytes(4_096);

  /**
   * @param formats formats of the columns (0 text, 1 binary): one each, one for all, or none if all are text
   * @throws QueryError E1001 if a column arrives in binary format and its type has no conversion
   */
  constructor(outputs: readonly OutputColumn[], formats: readonly (0 | 1)[]) {
    this.#columns = outputs.map((output, i) =>
      columnOf(output, formats.length === 1 ? formats[0] : formats[i]),
    );
    this.unchanged = this.#columns.every(({ convert }) => convert === null);
  }

  /**
   * Yields the bytes of the rows in pieces. Each piece is a view of `dataRows`, or of a buffer that the next piece
   * overwrites.
   *
   * @throws QueryError E1001 if a row needs to be converted and is too large
   */
  *pieces(dataRows: Uint8Array): Generator<Uint8Array> {
    if (this.unchanged) {
      yield* slices(dataRows);
      return;
    }
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      yield* this.#row(rows);
      if (this.#out.length > CONVERTED_PIECE) yield this.#out.take();
    }
    if (this.#out.length > 0) yield this.#out.take();
  }

  /** Yields each row as a whole. @throws QueryError E1001 */
  *rows(dataRows: Uint8Array): Generator<Uint8Array> {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      if (this.unchanged) yield rows.source.subarray(rows.rowStart, rows.skip());
      else {
        const parts = [...this.#row(rows)];
        yield parts.length === 0 ? this.#out.take() : Buffer.concat([...parts, this.#out.take()]);
      }
    }
  }

  /** Writes a row to `#out`. For a large value, yields the bytes written so far and then the value in pieces. */
  *#row(rows: DataRowReader): Generator<Uint8Array> {
    const values = this.#convert(rows);
    const out = this.#out;
    out.head(values);
    for (const value of values) {
      out.size(value === null ? -1 : value.length);
      if (value === null) continue;
      if (typeof value === 'string') out.ascii(value);
      else if (value.length <= LARGE) out.copy(value);
      else {
        yield Buffer.from(out.take());
        yield* slices(value);
      }
    }
  }

  #convert(rows: DataRowReader): readonly (string | Buffer | null)[] {
    let elements = 0;
    let converted = 0;
    return this.#columns.map(({ name, convert, isBinaryArray, isCopied }) => {
      if (!rows.value()) return null;
      const { source, start, end } = rows;
      if (convert === null) return source.subarray(start, end);
      if (isBinaryArray) elements += elementsIn(source, start);
      if (elements > MOST_ELEMENTS || (!isCopied && end - start > MOST_CONVERTED)) throw tooLarge(name);
      const text = textOrRefusal(name, () => convert(source, start, end));
      if (!isCopied) converted += text?.length ?? 0;
      if (converted > MOST_CONVERTED) throw tooLarge(name);
      return text;
    });
  }
}

/** Maximum size of a piece in bytes; other requests get their turn between two pieces. */
const PIECE = 262_144;
const CONVERTED_PIECE = 16_384;
/** Values larger than this, in bytes, are not copied. */
const LARGE = 65_536;
/** Maximum size in bytes, and number of array elements, of the values of a row that are converted in one turn. */
const MOST_CONVERTED = 1_048_576;
const MOST_ELEMENTS = 4_096;
const DATA_ROW = 0x44;

/** Buffer for converted rows. */
class RowBytes extends GrowingBytes {
  /** Begins a DataRow message: type, length, number of columns. */
  head(values: readonly (string | Uint8Array | null)[]): void {
    this.byte(DATA_ROW);
    this.size(values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), 6));
    this.reserve(2);
    this.at = this.bytes.writeInt16BE(values.length, this.at);
  }

  size(length: number): void {
    this.reserve(4);
    this.at = this.bytes.writeInt32BE(length, this.at);
  }

  ascii(text: string): void {
    this.reserve(text.length);
    this.at += this.bytes.write(text, this.at, 'latin1');
  }

  /** Returns the bytes written so far. The next write overwrites them. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.at);
    this.at = 0;
    return taken;
  }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

/** Converts a value to canonical text; returns null for NULL. */
type Conversion = (source: Buffer, start: number, end: number) => string | Buffer | null;

interface CanonicalColumn {
  readonly name: string;
  /** Null if values need no conversion. */
  readonly convert: Conversion | null;
  readonly isBinaryArray: boolean;
  /** True if the conversion copies the value and inspects at most a few bytes of it. */
  readonly isCopied: boolean;
}

const COPIED: ReadonlySet<string> = new Set(['text', 'bpchar', 'jsonb']);

function columnOf(output: OutputColumn, format: 0 | 1 | undefined): CanonicalColumn {
  const { name, type } = output;
  const isBinaryArray = format === 1 && isArray(type);
  return { name, convert: conversionOf(output, format), isBinaryArray, isCopied: COPIED.has(type) };
}

function conversionOf({ name, type }: OutputColumn, format: 0 | 1 | undefined): Conversion | null {
  const asInJson = isArray(type) ? JSON_LISTS[elementOf(type)] : JSON_VALUES[type];
  if (format !== 1) return asInJson ?? null;
  const toText = toTextOf(type);
  if (toText === null)
    throw queryError('unresolvable', {
      detail: `a receipt is made of texts, and the values of column \`${name}\` (${type}) are sent in binary format`,
      hint: 'ask for this column in text format, or without a receipt',
    });
  if (asInJson === undefined) return toText;
  return (source, start, end) => {
    const text = Buffer.from(toText(source, start, end));
    return asInJson(text, 0, text.length);
  };
}

function textOrRefusal<T>(name: string, convert: () => T): T {
  try {
    return convert();
  } catch (error) {
    throw error instanceof TextTooLong ? tooLarge(name) : error;
  }
}

function tooLarge(name: string): Error {
  return queryError('unresolvable', {
    detail: `a receipt converts at most 1 MiB and 4,096 elements of arrays in a row, and with column \`${name}\` it is more`,
    hint: 'ask for it in text format, or without a receipt',
  });
}

type ToBytes = (source: Buffer, start: number, end: number) => Buffer;

const isNull = (source: Buffer, start: number, end: number): boolean =>
  end - start === 4 && source.toString('latin1', start, end) === 'null';

const onOneLine: ToBytes = (source, start, end) => {
  const text = Buffer.from(source.subarray(start, end));
  for (let at = 0; at < text.length; at++) if (text[at] === 0x0a || text[at] === 0x0d) text[at] = 0x20;
  return text;
};

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;

const jsonText: Conversion = (source, start, end) => {
  let [from, to] = [start, end];
  while (from < to && isBlank(source[from])) from += 1;
  while (from < to && isBlank(source[to - 1])) to -= 1;
  return isNull(source, from, to) ? null : onOneLine(source, from, to);
};

/** Replaces JSON nulls among the elements with NULL. Other elements never match, since their quotes are escaped. */
const withoutNulls: ToBytes = (source, start, end) =>
  Buffer.from(source.toString('utf8', start, end).replace(/(?<=[{,])"null"(?=[,}])/g, 'NULL'));

const JSON_VALUES: Readonly<Record<string, Conversion | undefined>> = {
  json: jsonText,
  jsonb: (source, start, end) => (isNull(source, start, end) ? null : source.subarray(start, end)),
};

const JSON_LISTS: Readonly<Record<string, ToBytes | undefined>> = {
  json: (source, start, end) => {
    const text = onOneLine(source, start, end);
    return withoutNulls(text, 0, text.length);
  },
  jsonb: withoutNulls,
};
