import {
  AsyncByteQueue,
  Binary,
  Bool,
  Data,
  DateDay,
  Decimal,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  IntervalMonthDayNano,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimeMicrosecond,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import {
  type ArrowForm,
  type ColumnForm,
  decimalOf,
  elementOf,
  type GovernedPlan,
  InternalError,
  isArray,
  type OutputColumn,
  type ScalarType,
  type TypeName,
  typeRow,
} from 'osl-compiler';
import type { QueryAnswer } from '../../../ask/index.js';
import { columnsOf, type IssuedReceipt } from '../../../ask/receipts/receipt-request.js';
import { DataRowReader } from '../../../engine/index.js';
import { type AnswerHead, ARROW_STREAM, type RowEncoding, trailerOf } from '../answer.js';
import { PORTION_BYTES } from '../json-values.js';
import type { ProblemDocument } from '../problem.js';
import type { ArrowBytes, ArrowColumn } from './buffers.js';
import {
  addBinaryElements,
  addTextElements,
  BoolColumn,
  BytesColumn,
  copyBytes,
  FixedColumn,
  ListColumn,
  reverseBytes,
  type ValueLayout,
  type WriteFixed,
  writeDate,
  writeInterval,
  writeTime,
  writeTimestamp,
  writeVerbatim,
} from './column-writers.js';

/** A record batch ends when it reaches either of these limits, so that memory does not grow with the answer. */
const BATCH_ROWS = 8_192;
const BATCH_BYTES = 1_048_576;

/**
 * Arrow IPC stream: schema, batches of rows, then an empty batch with the trailer in its metadata. A failed answer
 * ends with an empty batch that has the problem in its metadata, without the end-of-stream marker.
 */
export class ArrowAnswer implements RowEncoding {
  readonly contentType = ARROW_STREAM;
  /** One copy is in the column and one in the batch. */
  readonly copies = 2;
  readonly #sink = new Chunks();
  readonly #writer = new RecordBatchStreamWriter();
  #output: Buffer[] = [];
  #pending = 0;
  #schema = new Schema();
  #columns: readonly ArrowColumn[] = [];
  #rows = 0;
  #bytes = 0;

  get pending(): number {
    return this.#pending;
  }

  formats({ outputs }: GovernedPlan): readonly (0 | 1)[] {
    return outputs.map(({ type }) => formatOf(type));
  }

  begin({ requestId, plan, versions, redacted }: AnswerHead): void {
    const outputs = columnsOf(plan).map((output) => ({ output, column: columnOf(output) }));
    this.#columns = outputs.map(({ column }) => column);
    const fields: Field[] = outputs.map(({ output, column }, i) =>
      fieldOf(output, redacted[i] === true, column),
    );
    const metadata = new Map([
      ['osl.request_id', requestId],
      ['osl.form', plan.form],
      ['osl.versions', JSON.stringify(versions)],
    ]);
    this.#schema = new Schema(fields, metadata);
    this.#writer.reset(this.#sink, this.#schema);
    this.#collect();
  }

  rows(dataRows: Uint8Array): void {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      for (const column of this.#columns) {
        if (rows.value()) column.addValue(rows.source, rows.start, rows.end);
        else column.addNull();
      }
      this.#endRow(rows);
    }
  }

  *portions(dataRows: Uint8Array): Generator<void> {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      let nextYield = rows.rowStart + PORTION_BYTES;
      for (const column of this.#columns) {
        if (!rows.value()) column.addNull();
        else if (column.addInPortions !== undefined && rows.end - rows.start > PORTION_BYTES)
          yield* column.addInPortions(rows.source, rows.start, rows.end);
        else column.addValue(rows.source, rows.start, rows.end);
        if (rows.end < nextYield) continue;
        nextYield = rows.end + PORTION_BYTES;
        yield;
      }
      this.#endRow(rows);
    }
  }

  #endRow({ rowLength }: DataRowReader): void {
    this.#rows += 1;
    this.#bytes += rowLength;
    if (this.#rows >= BATCH_ROWS || this.#bytes >= BATCH_BYTES) this.#writeBatch();
  }

  end(answer: QueryAnswer, receipt: IssuedReceipt | null): void {
    if (this.#rows > 0) this.#writeBatch();
    const head = { request_id: answer.requestId, form: answer.plan.form };
    this.#writeBatch(new Map([['osl.trailer', JSON.stringify({ ...head, ...trailerOf(answer, receipt) })]]));
    this.#writer.finish();
    this.#collect();
  }

  fail(problem: ProblemDocument): 'cut' {
    this.#clear();
    this.#writeBatch(new Map([['osl.problem', JSON.stringify(problem)]]));
    return 'cut';
  }

  take(): Buffer {
    const [first, ...others] = this.#output;
    const bytes = first !== undefined && others.length === 0 ? first : Buffer.concat(this.#output);
    this.#output = [];
    this.#pending = 0;
    return bytes;
  }

  #writeBatch(metadata?: Map<string, string>): void {
    const children = this.#columns.map((column) => column.data());
    const data = new Data(new Struct(this.#schema.fields), 0, this.#rows, 0, undefined, children);
    this.#writer.write(new RecordBatch(this.#schema, data, metadata));
    this.#collect();
    this.#clear();
  }

  #clear(): void {
    for (const column of this.#columns) column.clear();
    this.#rows = 0;
    this.#bytes = 0;
  }

  /** Copies the chunks written so far, which are views of buffers that the next batch overwrites. */
  #collect(): void {
    const bytes = Buffer.concat(this.#sink.drain());
    this.#pending += bytes.length;
    this.#output.push(bytes);
  }
}

/** Collects the Arrow library's output, since its own queue can only be read later. */
class Chunks extends AsyncByteQueue {
  #chunks: Uint8Array[] = [];

  override write(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  drain(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }
}

/** Maximum digits of Arrow's 128-bit and 256-bit decimals. */
const MAX_DIGITS_128 = 38;
const MAX_DIGITS_256 = 76;

/**
 * Returns the layout of an Arrow decimal for a column declared as `numeric(p,s)`; null for other columns and if no
 * Arrow decimal fits. When written, NaN and numbers with more digits than declared are refused: nothing is rounded.
 */
function decimalLayout(form: ColumnForm | null): ValueLayout | null {
  const declared = decimalOf(form);
  if (declared === null) return null;
  const { precision, scale } = declared;
  if (precision > MAX_DIGITS_256 || scale < 0 || scale > precision) return null;
  const bits = precision <= MAX_DIGITS_128 ? 128 : 256;
  return {
    type: new Decimal(scale, precision, bits),
    width: bits / 8,
    view: Uint32Array,
    write: decimalWriter(bits / 64, scale, 10n ** BigInt(precision)),
  };
}

const NEGATIVE = 0x4000;
const HEADER_BYTES = 8;
const DIGITS_PER_GROUP = 4;
/** Limits that every numeric of 76 digits meets: weight of its first group, and number of groups. */
const MAX_WEIGHT = 19;
const MAX_GROUPS = 21;

/**
 * Returns a function that writes a numeric as an Arrow decimal. Postgres' binary format has groups of four decimal
 * digits; the first group is multiplied by 10000 to the power of `weight`.
 */
function decimalWriter(words: number, scale: number, limit: bigint): WriteFixed {
  return (source, start, target, at) => {
    const groups = source.readUInt16BE(start);
    const weight = source.readInt16BE(start + 2);
    const sign = source.readUInt16BE(start + 4);
    if (sign !== 0 && sign !== NEGATIVE) return 'a numeric that is not a number';
    if (weight > MAX_WEIGHT || groups > MAX_GROUPS) return 'a numeric of more digits than are declared';
    let digits = 0n;
    for (let n = 0; n < groups; n++)
      digits = digits * 10_000n + BigInt(source.readUInt16BE(start + HEADER_BYTES + 2 * n));
    const shift = scale + DIGITS_PER_GROUP * (weight - groups + 1);
    const unit = 10n ** BigInt(Math.abs(shift));
    if (shift < 0 && digits % unit !== 0n) return 'a numeric of a greater scale than is declared';
    const value = shift < 0 ? digits / unit : digits * unit;
    if (value >= limit) return 'a numeric of more digits than are declared';
    let remaining = sign === NEGATIVE ? -value : value;
    for (let word = 0; word < words; word++) {
      target.writeBigUInt64LE(BigInt.asUintN(64, remaining), at + 8 * word);
      remaining >>= 64n;
    }
    return undefined;
  };
}

/** Returns the Arrow field of an answer's column, with model type, source and redaction as metadata. */
function fieldOf({ name, type, source }: OutputColumn, redacted: boolean, column: ArrowColumn): Field {
  const metadata = new Map([
    ['osl.type', type],
    ['osl.redacted', String(redacted)],
    ...(source === null ? [] : [['osl.source', source] as const]),
    ...extensionOf(type),
  ]);
  return new Field(name, column.type, true, metadata);
}

function extensionOf(type: TypeName): readonly (readonly [string, string])[] {
  const name = type === 'uuid' ? 'arrow.uuid' : type === 'jsonb' || type === 'json' ? 'arrow.json' : null;
  if (name === null) return [];
  return [
    ['ARROW:extension:name', name],
    ['ARROW:extension:metadata', ''],
  ];
}

/**
 * Creates the column for an output. A numeric with declared precision becomes a decimal; other numerics become text,
 * since they are unbounded and must not be rounded.
 */
function columnOf({ type, name, form }: OutputColumn): ArrowColumn {
  const decimal = decimalLayout(form);
  if (decimal !== null) return new FixedColumn(decimal, name);
  if (!isArray(type)) return scalarColumn(type, name);
  const element = elementOf(type);
  const items = scalarColumn(element, name);
  return new ListColumn(items, name, isSentAsText(element) ? addTextElements : addBinaryElements);
}

/** True for types without an Arrow equivalent, which become strings in Postgres' text format. */
function isSentAsText(type: ScalarType): boolean {
  return typeRow(type).arrow === 'text';
}

/** Returns the wire format in which values of `type` are requested: 0 text, 1 binary. */
function formatOf(type: TypeName): 0 | 1 {
  return isSentAsText(isArray(type) ? elementOf(type) : type) ? 0 : 1;
}

function scalarColumn(type: ScalarType, name: string): ArrowColumn {
  return COLUMNS[typeRow(type).arrow](name);
}

const fixedColumn =
  (layout: () => ValueLayout) =>
  (name: string): ArrowColumn =>
    new FixedColumn(layout(), name);
const utf8Column = () => new BytesColumn(new Utf8(), writeVerbatim());

const COLUMNS: Readonly<Record<ArrowForm, (name: string) => ArrowColumn>> = {
  text: utf8Column,
  utf8: utf8Column,
  bool: () => new BoolColumn(new Bool()),
  numeric: () =>
    new BytesColumn(new Utf8(), (source, start, _end, out) => writeNumericText(source, start, out)),
  jsonb: () => new BytesColumn(new Utf8(), writeVerbatim(1)), // skips the version byte
  binary: () => new BytesColumn(new Binary(), writeVerbatim()),
  int16: fixedColumn(() => ({ type: new Int16(), width: 2, view: Int16Array, write: reverseBytes(2) })),
  int32: fixedColumn(() => ({ type: new Int32(), width: 4, view: Int32Array, write: reverseBytes(4) })),
  int64: fixedColumn(() => ({ type: new Int64(), width: 8, view: BigInt64Array, write: reverseBytes(8) })),
  float32: fixedColumn(() => ({ type: new Float32(), width: 4, view: Float32Array, write: reverseBytes(4) })),
  float64: fixedColumn(() => ({ type: new Float64(), width: 8, view: Float64Array, write: reverseBytes(8) })),
  uuid: fixedColumn(() => ({
    type: new FixedSizeBinary(16),
    width: 16,
    view: Uint8Array,
    write: copyBytes(16),
  })),
  date: fixedColumn(() => ({ type: new DateDay(), width: 4, view: Int32Array, write: writeDate })),
  time: fixedColumn(() => ({ type: new TimeMicrosecond(), width: 8, view: BigInt64Array, write: writeTime })),
  timestamp: fixedColumn(() => timestampLayout(null)),
  timestamptz: fixedColumn(() => timestampLayout('UTC')),
  interval: fixedColumn(() => ({
    type: new IntervalMonthDayNano(),
    width: 16,
    view: Int32Array,
    write: writeInterval,
  })),
};

function timestampLayout(zone: string | null): ValueLayout {
  return { type: new TimestampMicrosecond(zone), width: 8, view: BigInt64Array, write: writeTimestamp };
}

const SPECIAL_VALUES: ReadonlyMap<number, Buffer> = new Map([
  [0xc000, Buffer.from('NaN')],
  [0xd000, Buffer.from('Infinity')],
  [0xf000, Buffer.from('-Infinity')],
]);
const ZERO = 0x30;
const MINUS = 0x2d;
const POINT = 0x2e;

/**
 * Converts a numeric at `source[start …)` from Postgres' binary format (groups of four decimal digits) to its text
 * form, with all digits of its scale and no exponent.
 */
function writeNumericText(source: Buffer, start: number, out: ArrowBytes): void {
  const groups = source.readUInt16BE(start);
  const weight = source.readInt16BE(start + 2);
  const sign = source.readUInt16BE(start + 4);
  const scale = source.readUInt16BE(start + 6);
  const special = SPECIAL_VALUES.get(sign);
  if (special !== undefined) {
    out.reserve(special.length);
    out.length += special.copy(out.bytes, out.length);
    return;
  }
  if (sign !== 0 && sign !== NEGATIVE) throw new InternalError('a numeric has no known sign');
  const group = (n: number): number =>
    n >= 0 && n < groups ? source.readUInt16BE(start + HEADER_BYTES + 2 * n) : 0;
  out.reserve(4 * (Math.max(weight, 0) + 1) + scale + 8);
  const { bytes } = out;
  let at = out.length;
  if (sign === NEGATIVE) bytes[at++] = MINUS;
  at = weight < 0 ? writeDigits(0, bytes, at, 1) : writeDigits(group(0), bytes, at, widthOf(group(0)));
  for (let n = 1; n <= weight; n++) at = writeDigits(group(n), bytes, at, 4);
  if (scale > 0) {
    bytes[at++] = POINT;
    const end = at + scale;
    for (let n = weight + 1; at < end; n++) at = writeDigits(group(n), bytes, at, 4);
    at = end; // the last group may extend beyond the scale
  }
  out.length = at;
}

function widthOf(group: number): number {
  return group < 10 ? 1 : group < 100 ? 2 : group < 1_000 ? 3 : 4;
}

/** Writes the last `width` digits of a group of four. */
function writeDigits(group: number, bytes: Buffer, at: number, width: number): number {
  let remaining = group;
  for (let n = width - 1; n >= 0; n--) {
    bytes[at + n] = ZERO + (remaining % 10);
    remaining = Math.floor(remaining / 10);
  }
  return at + width;
}
