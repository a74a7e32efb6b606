import { once } from 'node:events';
import { type Data, DataType, type Field, Precision, type RecordBatch, TimeUnit, Utf8 } from 'apache-arrow';
import type { SchemaElement } from 'hyparquet';
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import { version } from '../src/base/package-root.js';
import {
  type AnswerNotes,
  answerNotes,
  bodyBytes,
  openArrow,
  type QueryCall,
  readBatches,
  refuseTerminal,
} from './answer.js';
import { failure } from './exit.js';
import { note } from './output.js';

/** Arrow batches per row group, which bounds memory use: a batch has at most 8,192 rows or one megabyte. */
const GROUP_BATCHES = 8;

/**
 * Requests an answer in Arrow and writes it to standard output as a Parquet file, one row group at a time. The trailer
 * is stored in the file's metadata as `osl.trailer`. If the stream breaks off, no footer is written, so the file is
 * unreadable rather than incomplete.
 *
 * @throws Failure if the query is refused, the stream breaks off, or standard output is a terminal
 */
export async function printParquet(asking: QueryCall): Promise<AnswerNotes> {
  refuseTerminal('parquet');
  const response = await openArrow(asking);
  const file = new ParquetOutput();
  const answer = await readBatches(bodyBytes(response), asking, (batch) => file.add(batch));
  await file.end(answer);
  for (const line of answerNotes(answer)) note(line);
  return answer;
}

class ParquetOutput {
  readonly #out = new StandardOutput();
  #columns: readonly ParquetField[] = [];
  #writer: ParquetWriter | null = null;
  #held: RecordBatch[] = [];

  async add(batch: RecordBatch): Promise<void> {
    this.#writer ??= this.#begin(batch);
    if (batch.numRows > 0) this.#held.push(batch);
    if (this.#held.length >= GROUP_BATCHES) await this.#writeGroup(this.#writer);
  }

  /** Ends the file. Every answer has at least one batch, so the writer exists. */
  async end(answer: AnswerNotes): Promise<void> {
    if (this.#writer === null) return;
    await this.#writeGroup(this.#writer);
    this.#writer.kvMetadata = [{ key: 'osl.trailer', value: JSON.stringify(answer) }];
    await this.#writer.finish();
  }

  #begin({ schema: { fields } }: RecordBatch): ParquetWriter {
    this.#columns = fields.map(parquetColumn);
    const root = { name: 'schema', num_children: fields.length };
    return new ParquetWriter({
      writer: this.#out,
      schema: [root, ...this.#columns.flatMap(({ schema }) => schema)],
      createdBy: `osl-gateway version ${version()}`,
    });
  }

  async #writeGroup(writer: ParquetWriter): Promise<void> {
    const batches = this.#held;
    this.#held = [];
    const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
    if (rows === 0) return;
    const columnData = this.#columns.map(
      ({ name, value }, i): ColumnSource => ({ name, data: valuesOf(batches, i, value) }),
    );
    await writer.write({ columnData, rowGroupSize: rows });
  }
}

function valuesOf(batches: readonly RecordBatch[], column: number, value: ParquetField['value']): unknown[] {
  return batches.flatMap((batch) => {
    const data = batch.data.children[column];
    return Array.from({ length: batch.numRows }, (_, row) => (data === undefined ? null : value(data, row)));
  });
}

class StandardOutput extends ByteWriter {
  async flush(): Promise<void> {
    const chunk = Buffer.from(this.buffer.slice(0, this.index));
    this.index = 0;
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
  }

  override finish(): Promise<void> {
    return this.flush();
  }
}

export interface ParquetField {
  readonly name: string;
  /** Schema element of the column, followed by the elements nested in it. */
  readonly schema: readonly SchemaElement[];
  /** Returns the value in a row as the Parquet writer expects it; null for NULL. */
  readonly value: (data: Data, row: number) => unknown;
}

type ParquetElement = Omit<SchemaElement, 'name' | 'repetition_type'>;
type ReadValue = (data: Data, row: number) => unknown;

/**
 * Parquet column for an Arrow field, without loss of digits. Intervals become ISO 8601 text, because Parquet's
 * intervals have only milliseconds and no sign.
 *
 * @throws Failure for a type that answers do not contain
 */
export function parquetColumn({ name, type, metadata }: Field): ParquetField {
  if (!DataType.isList(type)) {
    const { leaf, read } = scalar(type, metadata);
    return { name, schema: [{ name, ...OPTIONAL, ...leaf }], value: nullable(read) };
  }
  const [item] = type.children;
  const { leaf, read } = scalar(item?.type ?? new Utf8(), metadata);
  const element = nullable(read);
  return {
    name,
    schema: [
      { name, ...OPTIONAL, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', ...OPTIONAL, ...leaf },
    ],
    value: nullable((data, row) => elementsOf(data, row, element)),
  };
}

const OPTIONAL = { repetition_type: 'OPTIONAL' } as const;

function nullable(read: ReadValue): ReadValue {
  return (data, row) => (data.getValid(row) ? read(data, row) : null);
}

function elementsOf(data: Data, row: number, element: ReadValue): readonly unknown[] {
  const [items] = data.children;
  const [from = 0, to = 0] = [data.valueOffsets[row], data.valueOffsets[row + 1]];
  if (items === undefined) return [];
  return Array.from({ length: to - from }, (_, i) => element(items, from + i));
}

function scalar(
  type: DataType,
  metadata: ReadonlyMap<string, string>,
): { readonly leaf: ParquetElement; readonly read: ReadValue } {
  if (DataType.isBool(type)) return { leaf: { type: 'BOOLEAN' }, read: bit };
  if (DataType.isInt(type)) return wholeNumber(type.bitWidth);
  if (DataType.isFloat(type))
    return { leaf: { type: type.precision === Precision.DOUBLE ? 'DOUBLE' : 'FLOAT' }, read: plain };
  if (DataType.isDecimal(type)) return decimal(type.precision, type.scale, type.bitWidth);
  if (DataType.isUtf8(type)) return { leaf: textLeaf(metadata), read: text };
  if (DataType.isBinary(type)) return { leaf: { type: 'BYTE_ARRAY' }, read: bytes };
  if (DataType.isFixedSizeBinary(type) && type.byteWidth === 16)
    return {
      leaf: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
      read: (data, row) => Uint8Array.from(data.values.subarray(16 * row, 16 * row + 16)),
    };
  if (DataType.isDate(type))
    return { leaf: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } }, read: plain };
  if (DataType.isTime(type) && type.unit === TimeUnit.MICROSECOND) return { leaf: TIME, read: plain };
  if (DataType.isTimestamp(type) && type.unit === TimeUnit.MICROSECOND)
    return { leaf: moment(type.timezone), read: plain };
  if (DataType.isInterval(type)) return { leaf: TEXT, read: duration };
  throw failure(`--format parquet does not know ${type.toString()}`);
}

const TEXT: ParquetElement = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
const TIME: ParquetElement = {
  type: 'INT64',
  converted_type: 'TIME_MICROS',
  logical_type: { type: 'TIME', isAdjustedToUTC: false, unit: 'MICROS' },
};

function textLeaf(metadata: ReadonlyMap<string, string>): ParquetElement {
  if (metadata.get('ARROW:extension:name') !== 'arrow.json') return TEXT;
  return { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } };
}

/** A timestamp with a time zone is stored as UTC; one without has no converted type. */
function moment(zone: string | null | undefined): ParquetElement {
  const logical_type = { type: 'TIMESTAMP', isAdjustedToUTC: Boolean(zone), unit: 'MICROS' } as const;
  return zone
    ? { type: 'INT64', converted_type: 'TIMESTAMP_MICROS', logical_type }
    : { type: 'INT64', logical_type };
}

function wholeNumber(bitWidth: number): { readonly leaf: ParquetElement; readonly read: ReadValue } {
  if (bitWidth === 64) return { leaf: { type: 'INT64' }, read: plain };
  if (bitWidth === 32) return { leaf: { type: 'INT32' }, read: plain };
  const logical_type = { type: 'INTEGER', bitWidth, isSigned: true } as const;
  return { leaf: { type: 'INT32', converted_type: 'INT_16', logical_type }, read: plain };
}

function decimal(
  precision: number,
  scale: number,
  bitWidth: number,
): { readonly leaf: ParquetElement; readonly read: ReadValue } {
  const words = bitWidth / 32;
  return {
    leaf: {
      type: 'FIXED_LEN_BYTE_ARRAY',
      type_length: bytesFor(precision),
      converted_type: 'DECIMAL',
      logical_type: { type: 'DECIMAL', precision, scale },
      precision,
      scale,
    },
    read: ({ values }, row) => {
      let units = 0n;
      for (let word = words - 1; word >= 0; word--)
        units = (units << 32n) | BigInt(values[row * words + word]);
      return BigInt.asIntN(bitWidth, units);
    },
  };
}

function bytesFor(precision: number): number {
  const bits = (10n ** BigInt(precision) - 1n).toString(2).length + 1;
  return Math.ceil(bits / 8);
}

function plain({ values }: Data, row: number): unknown {
  return values[row];
}

function bit({ values, offset }: Data, row: number): boolean {
  const at = offset + row;
  return ((values[at >> 3] >> (at & 7)) & 1) === 1;
}

function bytes({ values, valueOffsets }: Data, row: number): Uint8Array {
  return Uint8Array.from(values.subarray(valueOffsets[row], valueOffsets[row + 1]));
}

function text({ values, valueOffsets }: Data, row: number): string {
  return UTF8.decode(values.subarray(valueOffsets[row], valueOffsets[row + 1]));
}

const UTF8 = new TextDecoder();

/** Formats an interval, such as `P1Y2M3DT4H5M6.5S`; each part has its own sign, as in Postgres. */
function duration({ values }: Data, row: number): string {
  const [months = 0, days = 0, low = 0, high = 0]: readonly number[] = values.subarray(4 * row, 4 * row + 4);
  const ns = (BigInt(high) << 32n) | BigInt(low >>> 0);
  const us = ns / 1_000n;
  const parts = [
    [Math.trunc(months / 12), 'Y'],
    [months % 12, 'M'],
    [days, 'D'],
  ] as const;
  const date = parts.map(([n, unit]) => (n === 0 ? '' : `${n}${unit}`)).join('');
  const time = clock(us);
  return date === '' && time === '' ? 'PT0S' : `P${date}${time === '' ? '' : `T${time}`}`;
}

function clock(us: bigint): string {
  const hours = us / 3_600_000_000n;
  const minutes = (us / 60_000_000n) % 60n;
  const rest = us % 60_000_000n;
  const sign = rest < 0n ? '-' : '';
  const whole = (rest < 0n ? -rest : rest).toString().padStart(7, '0');
  const seconds = `${sign}${whole.slice(0, -6)}.${whole.slice(-6)}`.replace(/\.?0+$/, '');
  return [
    hours === 0n ? '' : `${hours}H`,
    minutes === 0n ? '' : `${minutes}M`,
    rest === 0n ? '' : `${seconds}S`,
  ].join('');
}
