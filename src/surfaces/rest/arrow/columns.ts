import {
  Binary,
  Bool,
  DateDay,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  IntervalMonthDayNano,
  TimeMicrosecond,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import {
  elementOf,
  InternalError,
  isArray,
  MULTIRANGE_TYPES,
  type OutputColumn,
  RANGE_TYPES,
  type ScalarType,
  type TypeName,
} from 'osl-compiler';
import type { Column } from './column.js';
import { decimalLayout } from './decimal.js';
import { copy, FixedColumn, type Layout, reverse } from './fixed-column.js';
import { numericText } from './numeric-text.js';
import { TextListColumn } from './text-list-column.js';
import { date, interval, time, timestamp } from './time-values.js';
import { BoolColumn, BytesColumn, ListColumn, verbatim } from './variable-columns.js';

/** What the field of an answer's column says beside its name and Arrow type. */
export function fieldOf({ name, type, source }: OutputColumn, redacted: boolean, column: Column): Field {
  const metadata = new Map([
    ['osl.type', type],
    ['osl.redacted', String(redacted)],
    ...(source === null ? [] : [['osl.source', source] as const]),
    ...extensionOf(type),
  ]);
  return new Field(name, column.type, true, metadata);
}

/** Arrow's own names for what a reader may know better. Source: Arrow's canonical extension types. */
function extensionOf(type: TypeName): readonly (readonly [string, string])[] {
  const name = type === 'uuid' ? 'arrow.uuid' : type === 'jsonb' || type === 'json' ? 'arrow.json' : null;
  if (name === null) return [];
  return [
    ['ARROW:extension:name', name],
    ['ARROW:extension:metadata', ''],
  ];
}

/**
 * Gathers values for the column. Nothing is rounded: a numeric that is declared with its precision is a decimal, any
 * other is text, since it has no bound.
 */
export function columnOf({ type, name, form }: OutputColumn): Column {
  const decimal = decimalLayout(form);
  if (decimal !== null) return new FixedColumn(decimal, name);
  if (!isArray(type)) return scalarColumn(type, name);
  const element = elementOf(type);
  const items = scalarColumn(element, name);
  return isAsText(element) ? new TextListColumn(items, name) : new ListColumn(items, name);
}

/** Types whose values are strings here: Arrow has none like them. They are asked for as Postgres' text. */
const AS_TEXT = [
  'inet',
  'cidr',
  'macaddr',
  'macaddr8',
  'money',
  'timetz',
  'varbit',
  'tsvector',
  'tsquery',
  ...RANGE_TYPES,
  ...MULTIRANGE_TYPES,
] as const;

type AsText = (typeof AS_TEXT)[number];

const AS_TEXT_SET: ReadonlySet<ScalarType> = new Set(AS_TEXT);

function isAsText(type: ScalarType): type is AsText {
  return AS_TEXT_SET.has(type);
}

/** The format in which values of `type` are gathered: 0 Postgres' text, 1 its binary. */
export function formatOf(type: TypeName): 0 | 1 {
  return isAsText(isArray(type) ? elementOf(type) : type) ? 0 : 1;
}

function scalarColumn(type: ScalarType, name: string): Column {
  if (isAsText(type)) return new BytesColumn(new Utf8(), verbatim());
  switch (type) {
    case 'bool':
      return new BoolColumn(new Bool());
    case 'text':
    case 'bpchar':
    case 'json':
      return new BytesColumn(new Utf8(), verbatim());
    case 'numeric':
      return new BytesColumn(new Utf8(), (source, start, _end, out) => numericText(source, start, out));
    case 'jsonb': // after the byte that says how it is written
      return new BytesColumn(new Utf8(), verbatim(1));
    case 'bytea':
      return new BytesColumn(new Binary(), verbatim());
    case 'int2':
    case 'int4':
    case 'int8':
    case 'float4':
    case 'float8':
    case 'uuid':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'interval':
      return new FixedColumn(layoutOf(type), name);
    default: {
      const unknown: never = type;
      throw new InternalError(`no Arrow column for ${String(unknown)}`);
    }
  }
}

type FixedType = Exclude<
  ScalarType,
  'bool' | 'text' | 'bpchar' | 'numeric' | 'jsonb' | 'json' | 'bytea' | AsText
>;

function layoutOf(type: FixedType): Layout {
  switch (type) {
    case 'int2':
      return { type: new Int16(), width: 2, view: Int16Array, write: reverse(2) };
    case 'int4':
      return { type: new Int32(), width: 4, view: Int32Array, write: reverse(4) };
    case 'int8':
      return { type: new Int64(), width: 8, view: BigInt64Array, write: reverse(8) };
    case 'float4':
      return { type: new Float32(), width: 4, view: Float32Array, write: reverse(4) };
    case 'float8':
      return { type: new Float64(), width: 8, view: Float64Array, write: reverse(8) };
    case 'uuid':
      return { type: new FixedSizeBinary(16), width: 16, view: Uint8Array, write: copy(16) };
    case 'date':
      return { type: new DateDay(), width: 4, view: Int32Array, write: date };
    case 'time':
      return { type: new TimeMicrosecond(), width: 8, view: BigInt64Array, write: time };
    case 'timestamp':
      return { type: new TimestampMicrosecond(), width: 8, view: BigInt64Array, write: timestamp };
    case 'timestamptz':
      return { type: new TimestampMicrosecond('UTC'), width: 8, view: BigInt64Array, write: timestamp };
    case 'interval':
      return { type: new IntervalMonthDayNano(), width: 16, view: Int32Array, write: interval };
    default: {
      const unknown: never = type;
      throw new InternalError(`no Arrow layout for ${String(unknown)}`);
    }
  }
}
