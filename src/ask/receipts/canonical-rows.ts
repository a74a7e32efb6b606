import { elementOf, isArray, type OutputColumn, queryError } from 'osl-compiler';
import { DataRowReader, GrowingBytes } from '../../engine/index.js';
import { toTextOf } from './binary-text.js';

/**
 * The rows of an answer as receipts digest them: DataRow messages of the Postgres protocol with values in text format.
 * As in an answer over REST, line breaks in a value of type json are blanks, and a JSON null is NULL.
 */
export class CanonicalRows {
  /** How the values of each column are converted; null if they are text already. */
  readonly #conversions: readonly (Conversion | null)[];
  /** True if all rows are digested as they come. */
  readonly unchanged: boolean;
  readonly #out = new RowBytes(4_096);

  /**
   * @param formats formats of the columns, one for all, or none for text
   * @throws QueryError E1001 if a column arrives in binary format and its type has no conversion
   */
  constructor(outputs: readonly OutputColumn[], formats: readonly (0 | 1)[]) {
    this.#conversions = outputs.map((output, i) =>
      conversionOf(output, formats.length === 1 ? formats[0] : formats[i]),
    );
    this.unchanged = this.#conversions.every((conversion) => conversion === null);
  }

  /**
   * Yields the bytes of the rows in pieces of at most `PIECE` bytes, which are views: of `dataRows`, or of a buffer that
   * the next piece overwrites.
   */
  *pieces(dataRows: Uint8Array): Generator<Uint8Array> {
    if (this.unchanged) {
      yield* slices(dataRows);
      return;
    }
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      yield* this.#row(rows);
      if (this.#out.length > PIECE / 2) yield this.#out.take();
    }
    if (this.#out.length > 0) yield this.#out.take();
  }

  /** Yields the rows one by one, whole. */
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

  /** Writes a row to `#out`; yields what was written before a large value, and the value in pieces. */
  *#row(rows: DataRowReader): Generator<Uint8Array> {
    const values = this.#conversions.map((conversion) => {
      if (!rows.value()) return null;
      const { source, start, end } = rows;
      return conversion === null ? source.subarray(start, end) : conversion(source, start, end);
    });
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
}

/** Size of a piece, in bytes: others get their turn between two pieces. */
const PIECE = 262_144;
/** Values above this size are not copied. */
const LARGE = 65_536;
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

  /** What was written; the next write overwrites it. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.at);
    this.at = 0;
    return taken;
  }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

/** Converts a value to canonical text; null is NULL. */
type Conversion = (source: Buffer, start: number, end: number) => string | Buffer | null;

/** Largest value, in bytes, that is converted: a conversion runs in one turn of the event loop. */
const MOST_CONVERTED = 1_048_576;

/** Types whose values are only copied, or looked at where they begin. */
const COPIED: ReadonlySet<string> = new Set(['text', 'bpchar', 'jsonb']);

function conversionOf(output: OutputColumn, format: 0 | 1 | undefined): Conversion | null {
  const convert = conversionFor(output, format);
  if (convert === null || COPIED.has(output.type)) return convert;
  return (source, start, end) => {
    if (end - start > MOST_CONVERTED)
      throw queryError('unresolvable', {
        detail: `a receipt converts values of at most 1 MiB, and one of column \`${output.name}\` is larger`,
        hint: 'ask for it in text format, or without a receipt',
      });
    return convert(source, start, end);
  };
}

function conversionFor({ name, type }: OutputColumn, format: 0 | 1 | undefined): Conversion | null {
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

type ToBytes = (source: Buffer, start: number, end: number) => Buffer;

const isNull = (source: Buffer, start: number, end: number): boolean =>
  end - start === 4 && source.toString('latin1', start, end) === 'null';

const onOneLine: ToBytes = (source, start, end) => {
  const text = Buffer.from(source.subarray(start, end));
  for (let at = 0; at < text.length; at++) if (text[at] === 0x0a || text[at] === 0x0d) text[at] = 0x20;
  return text;
};

/** Writes NULL for the elements that are a JSON null. Quotes within other elements are escaped. */
const withoutNulls: ToBytes = (source, start, end) =>
  Buffer.from(source.toString('utf8', start, end).replace(/(?<=[{,])"null"(?=[,}])/g, 'NULL'));

const JSON_VALUES: Readonly<Record<string, Conversion | undefined>> = {
  json: (source, start, end) => (isNull(source, start, end) ? null : onOneLine(source, start, end)),
  jsonb: (source, start, end) => (isNull(source, start, end) ? null : source.subarray(start, end)),
};

const JSON_LISTS: Readonly<Record<string, ToBytes | undefined>> = {
  json: (source, start, end) => {
    const text = onOneLine(source, start, end);
    return withoutNulls(text, 0, text.length);
  },
  jsonb: withoutNulls,
};
