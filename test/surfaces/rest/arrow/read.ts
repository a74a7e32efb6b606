import { DataType, type RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';

/** A stream as the library reads it. */
export interface ArrowStream {
  readonly schema: Schema;
  readonly batches: readonly RecordBatch[];
  /** `osl.trailer` of the last batch; null where there is none. */
  readonly trailer: Readonly<Record<string, unknown>> | null;
  readonly problem: Readonly<Record<string, unknown>> | null;
  /** True if the end-of-stream marker is there. */
  readonly ended: boolean;
}

const END = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

export function readArrow(bytes: Buffer): ArrowStream {
  const reader = RecordBatchReader.from(bytes).open();
  const { schema } = reader; // gone once all is read
  const batches = [...reader];
  const said = (key: string) => {
    const text = batches.at(-1)?.metadata.get(key);
    return text === undefined ? null : JSON.parse(text);
  };
  return {
    schema,
    batches,
    trailer: said('osl.trailer'),
    problem: said('osl.problem'),
    ended: bytes.subarray(-8).equals(END),
  };
}

/** The rows as `POST /osl/query` answers them in JSON, made from Arrow's own memory and not by the library's getters. */
export function asJson({ schema, batches }: ArrowStream): Record<string, unknown>[] {
  return batches.flatMap((batch) => {
    const columns = schema.fields.map((field, i) => {
      const data = batch.data.children[i];
      if (data === undefined) throw new Error(`no data of ${field.name}`);
      if (DataType.isDecimal(field.type)) return decimalsOf(field.type.scale, data);
      return valuesOf(field.metadata.get('osl.type') ?? '', data);
    });
    return Array.from({ length: batch.numRows }, (_, n) =>
      Object.fromEntries(schema.fields.map((field, i) => [field.name, columns[i]?.(n) ?? null])),
    );
  });
}

type Data = RecordBatch['data']['children'][number];

/** Words of 32 bits, the least first, as Postgres writes the number. */
function decimalsOf(scale: number, data: Data): (n: number) => unknown {
  const { values } = data;
  const words = DataType.isDecimal(data.type) ? data.type.bitWidth / 32 : 0;
  return (n) => {
    if (data.nullCount > 0 && ((data.nullBitmap[n >> 3] ?? 0) & (1 << (n & 7))) === 0) return null;
    let bits = 0n;
    for (let word = words - 1; word >= 0; word--) bits = (bits << 32n) | BigInt(values[n * words + word]);
    const value = BigInt.asIntN(32 * words, bits);
    const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
    const point = digits.length - scale;
    return `${value < 0n ? '-' : ''}${digits.slice(0, point)}${scale === 0 ? '' : `.${digits.slice(point)}`}`;
  };
}

function valuesOf(type: string, data: Data): (n: number) => unknown {
  const { values } = data;
  const offsets: Int32Array = data.valueOffsets;
  const element = type.endsWith('[]') ? valuesOf(type.slice(0, -2), data.children[0] as Data) : null;
  const value = element === null ? scalarOf(type, values, offsets) : null;
  return (n) => {
    if (data.nullCount > 0 && ((data.nullBitmap[n >> 3] ?? 0) & (1 << (n & 7))) === 0) return null;
    if (value !== null) return value(n);
    const [start, end] = [offsets[n] ?? 0, offsets[n + 1] ?? 0];
    return Array.from({ length: end - start }, (_, i) => element?.(start + i));
  };
}

type Values = Uint8Array | Int32Array | BigInt64Array | Float64Array;

function scalarOf(type: string, values: Values, offsets: Int32Array): (n: number) => unknown {
  const memory = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const bytes = (n: number) => memory.subarray(offsets[n], offsets[n + 1]);
  const big = (n: number) => memory.readBigInt64LE(8 * n);
  const numbers = (n: number) => Number(values[n]);
  switch (type) {
    case 'bool':
      return (n) => ((memory[n >> 3] ?? 0) & (1 << (n & 7))) !== 0;
    case 'int2':
    case 'int4':
      return numbers;
    case 'int8':
      return (n) => String(big(n));
    case 'float4':
    case 'float8':
      return (n) => (Number.isFinite(numbers(n)) ? numbers(n) : String(numbers(n)));
    case 'text':
    case 'numeric':
    case 'inet':
    case 'cidr':
    case 'macaddr':
    case 'money':
    case 'timetz':
    case 'varbit':
    case 'tsvector':
    case 'int4range':
    case 'tstzrange':
    case 'int4multirange':
      return (n) => bytes(n).toString('utf8');
    case 'jsonb':
      return (n) => JSON.parse(bytes(n).toString('utf8'));
    case 'bytea':
      return (n) => bytes(n).toString('base64');
    case 'uuid':
      return (n) =>
        memory
          .toString('hex', 16 * n, 16 * n + 16)
          .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    case 'date':
      return (n) => dayText(BigInt(numbers(n)));
    case 'time':
      return (n) => clockText(big(n));
    case 'timestamp':
      return (n) => momentText(big(n), '');
    case 'timestamptz':
      return (n) => momentText(big(n), 'Z');
    case 'interval':
      return (n) => [memory.readInt32LE(16 * n), memory.readInt32LE(16 * n + 4), big(2 * n + 1)].join(' ');
    default:
      throw new Error(`no reader for ${type}`);
  }
}

const DAY = 86_400_000_000n;

/** Days since 1970 by the civil calendar. Source of the method: days counted in eras of 400 years. */
export function dayText(days: bigint): string {
  const shifted = days + 719_468n;
  const era = (shifted >= 0n ? shifted : shifted - 146_096n) / 146_097n;
  const ofEra = shifted - era * 146_097n;
  const year = (ofEra - ofEra / 1_460n + ofEra / 36_524n - ofEra / 146_096n) / 365n;
  const ofYear = ofEra - (365n * year + year / 4n - year / 100n);
  const shiftedMonth = (5n * ofYear + 2n) / 153n;
  const day = ofYear - (153n * shiftedMonth + 2n) / 5n + 1n;
  const month = shiftedMonth < 10n ? shiftedMonth + 3n : shiftedMonth - 9n;
  const civil = year + era * 400n + (month <= 2n ? 1n : 0n);
  const shown = civil > 0n ? civil : 1n - civil;
  const two = (n: bigint) => String(n).padStart(2, '0');
  return `${String(shown).padStart(4, '0')}-${two(month)}-${two(day)}${civil > 0n ? '' : ' BC'}`;
}

export function clockText(us: bigint): string {
  const two = (n: bigint) => String(n).padStart(2, '0');
  const seconds = us / 1_000_000n;
  const fraction = String(us % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '');
  const clock = `${two(seconds / 3_600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}`;
  return fraction === '' ? clock : `${clock}.${fraction}`;
}

/** As the JSON answer has it: years beyond four digits and before Christ as Postgres writes them. */
export function momentText(us: bigint, zone: string): string {
  const days = us >= 0n ? us / DAY : -((-us + DAY - 1n) / DAY);
  const day = dayText(days);
  const clock = clockText(us - days * DAY);
  if (/^\d{4}-\d\d-\d\d$/.test(day)) return `${day}T${clock}${zone}`;
  const [date = '', era] = day.split(' ');
  return `${date} ${clock}${zone === '' ? '' : '+00'}${era === undefined ? '' : ` ${era}`}`;
}
