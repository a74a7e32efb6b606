import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { SCALAR_TYPES, type ScalarType, typeRow } from 'osl-compiler/types';
import type { AnswerColumn } from '../../../../../clients/typescript/types.js';
import { type JsonValue, momentOf, textOf } from '../../../parts/rows/row-store.js';
import { answerWith } from '../../../parts/thread.js';

/** Number of cells per row group. It bounds the memory needed for writing. */
const GROUP_CELLS = 262_144;

/**
 * Writes a Parquet file with the types of `osl query --format parquet`, except that numeric and interval are text as in
 * JSON. The other members of the answer are in the file's metadata as `osl.trailer`.
 */
class ParquetAnswer {
  readonly #out = new FileParts();
  readonly #columns: readonly ConvertedColumn[];
  readonly #writer: ParquetWriter;
  #held: unknown[][];

  constructor(columns: readonly AnswerColumn[], trailer: object) {
    this.#columns = columns.map(({ name, type }) => parquetColumn(name, type));
    this.#held = columns.map(() => []);
    this.#writer = new ParquetWriter({
      writer: this.#out,
      schema: [
        { name: 'schema', num_children: columns.length },
        ...this.#columns.flatMap(({ elements }) => elements),
      ],
      createdBy: 'osl-console',
      kvMetadata: [{ key: 'osl.trailer', value: JSON.stringify(trailer) }],
    });
  }

  /** Adds rows, given column by column. @throws Error for a value that its Parquet type cannot represent */
  add(values: readonly (readonly JsonValue[])[]): void {
    for (const [i, { convert }] of this.#columns.entries())
      for (const value of values[i] ?? []) this.#held[i]?.push(convert(value));
    if ((this.#held[0]?.length ?? 0) * this.#columns.length >= GROUP_CELLS) this.#writeGroup();
  }

  end(): Blob {
    this.#writeGroup();
    this.#writer.finish();
    return new Blob(this.#out.parts, { type: 'application/vnd.apache.parquet' });
  }

  #writeGroup(): void {
    const rows = this.#held[0]?.length ?? 0;
    if (rows === 0) return;
    const columnData = this.#columns.map(({ name }, i) => ({ name, data: this.#held[i] ?? [] }));
    this.#writer.write({ columnData, rowGroupSize: rows });
    this.#held = this.#columns.map(() => []);
  }
}

/** Collects the file in pieces, so that no single buffer has to hold all of it. */
class FileParts extends ByteWriter {
  readonly parts: Uint8Array<ArrayBuffer>[] = [];

  flush(): void {
    this.parts.push(new Uint8Array(this.buffer.slice(0, this.index)));
    this.index = 0;
  }

  override finish(): void {
    this.flush();
  }
}

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];
type ScalarElement = Omit<SchemaElement, 'name' | 'repetition_type'>;

interface ConvertedColumn {
  readonly name: string;
  readonly elements: readonly SchemaElement[];
  /** Converts a value to the form that the Parquet writer expects. @throws Error if Parquet cannot represent it */
  readonly convert: (value: JsonValue) => unknown;
}

function unfit(column: string, value: NonNullable<JsonValue>): Error {
  const text = textOf(value).slice(0, 80);
  return new Error(`Column ${column} contains ${text}, which Parquet cannot represent: save CSV or JSON.`);
}

const OPTIONAL = { repetition_type: 'OPTIONAL' } as const;

function parquetColumn(name: string, type: string): ConvertedColumn {
  const isList = type.endsWith('[]');
  const { leaf, read } = scalarColumn(isList ? type.slice(0, -2) : type);
  const scalar = (value: JsonValue): unknown => {
    if (value === null) return null;
    const converted = read(value);
    if (converted === null) throw unfit(name, value);
    return converted;
  };
  if (!isList) return { name, elements: [{ name, ...OPTIONAL, ...leaf }], convert: scalar };
  return {
    name,
    elements: [
      { name, ...OPTIONAL, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', ...OPTIONAL, ...leaf },
    ],
    convert: (value) => {
      if (value === null) return null;
      if (!Array.isArray(value) || value.some(Array.isArray)) throw unfit(name, value);
      return value.map(scalar);
    },
  };
}

interface ScalarColumn {
  readonly leaf: ScalarElement;
  /** Converts a value that is not NULL; null if the type cannot represent it. */
  readonly read: (value: NonNullable<JsonValue>) => unknown;
}

const TEXT: ScalarColumn = {
  leaf: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  read: textOf,
};

function scalarColumn(name: string): ScalarColumn {
  const type: ScalarType | undefined = SCALAR_TYPES.find((known) => known === name);
  return type === undefined ? TEXT : FORMS[typeRow(type).arrow];
}

const UTF8 = new TextEncoder();

const FORMS: Readonly<Record<ReturnType<typeof typeRow>['arrow'], ScalarColumn>> = {
  bool: { leaf: { type: 'BOOLEAN' }, read: (value) => value },
  int16: {
    leaf: {
      type: 'INT32',
      converted_type: 'INT_16',
      logical_type: { type: 'INTEGER', bitWidth: 16, isSigned: true },
    },
    read: Number,
  },
  int32: { leaf: { type: 'INT32' }, read: Number },
  int64: { leaf: { type: 'INT64' }, read: (value) => BigInt(String(value)) },
  float32: { leaf: { type: 'FLOAT' }, read: Number },
  float64: { leaf: { type: 'DOUBLE' }, read: Number },
  binary: { leaf: { type: 'BYTE_ARRAY' }, read: (value) => bytesOf(String(value)) },
  uuid: {
    leaf: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
    read: (value) => value,
  },
  jsonb: {
    leaf: { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } },
    read: (value) => UTF8.encode(JSON.stringify(value)),
  },
  date: {
    leaf: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
    read: (value) => daysOf(String(value)),
  },
  time: {
    leaf: {
      type: 'INT64',
      converted_type: 'TIME_MICROS',
      logical_type: { type: 'TIME', isAdjustedToUTC: false, unit: 'MICROS' },
    },
    read: (value) => microsOf(`1970-01-01 ${String(value)}`, 86_400),
  },
  timestamp: {
    leaf: { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } },
    read: (value) => microsOf(String(value)),
  },
  timestamptz: {
    leaf: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MICROS',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
    },
    read: (value) => microsOf(String(value)),
  },
  numeric: TEXT,
  interval: TEXT,
  utf8: TEXT,
  text: TEXT,
};

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function daysOf(text: string): number | null {
  const moment = momentOf(text);
  return moment === null ? null : moment.seconds / 86_400;
}

/** Returns microseconds since 1970; null for infinities, and from `end` seconds on, as Parquet has no 24:00. */
function microsOf(text: string, end = Number.POSITIVE_INFINITY): bigint | null {
  const moment = momentOf(text);
  if (moment === null || moment.seconds >= end) return null;
  return BigInt(moment.seconds) * 1_000_000n + BigInt(moment.micros);
}

/** Requests to the worker thread that writes one file. */
export type ParquetQuestions = {
  readonly begin: {
    readonly ask: { readonly columns: readonly AnswerColumn[]; readonly trailer: object };
    readonly answer: undefined;
  };
  /** Adds rows, passed column by column. */
  readonly add: { readonly ask: readonly (readonly JsonValue[])[]; readonly answer: undefined };
  readonly end: { readonly ask: null; readonly answer: Blob };
};

let file = new ParquetAnswer([], {});

answerWith<ParquetQuestions>({
  begin: ({ columns, trailer }) => {
    file = new ParquetAnswer(columns, trailer);
    return undefined;
  },
  add: (values) => {
    file.add(values);
    return undefined;
  },
  end: () => file.end(),
});
