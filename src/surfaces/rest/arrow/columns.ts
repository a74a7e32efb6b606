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
  type ArrowForm,
  elementOf,
  isArray,
  type OutputColumn,
  type ScalarType,
  type TypeName,
  typeRow,
} from 'osl-compiler';
import type { ArrowColumn } from './column.js';
import { decimalLayout } from './decimal.js';
import {
  copy,
  date,
  FixedColumn,
  interval,
  reverse,
  time,
  timestamp,
  type ValueLayout,
} from './fixed-column.js';
import { numericText } from './numeric-text.js';
import { BoolColumn, BytesColumn, ListColumn, TextListColumn, verbatim } from './variable-columns.js';

/** The field of an answer's column, with the model's type and masking as metadata. */
export function fieldOf({ name, type, source }: OutputColumn, redacted: boolean, column: ArrowColumn): Field {
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
export function columnOf({ type, name, form }: OutputColumn): ArrowColumn {
  const decimal = decimalLayout(form);
  if (decimal !== null) return new FixedColumn(decimal, name);
  if (!isArray(type)) return scalarColumn(type, name);
  const element = elementOf(type);
  const items = scalarColumn(element, name);
  return isAsText(element) ? new TextListColumn(items, name) : new ListColumn(items, name);
}

/** True for types that Arrow does not have: their values are strings here, and are requested as Postgres' text. */
function isAsText(type: ScalarType): boolean {
  return typeRow(type).arrow === 'text';
}

/** The format in which values of `type` are gathered: 0 Postgres' text, 1 its binary. */
export function formatOf(type: TypeName): 0 | 1 {
  return isAsText(isArray(type) ? elementOf(type) : type) ? 0 : 1;
}

function scalarColumn(type: ScalarType, name: string): ArrowColumn {
  return COLUMNS[typeRow(type).arrow](name);
}

const fixed =
  (layout: () => ValueLayout) =>
  (name: string): ArrowColumn =>
    new FixedColumn(layout(), name);
const utf8 = () => new BytesColumn(new Utf8(), verbatim());

const COLUMNS: Readonly<Record<ArrowForm, (name: string) => ArrowColumn>> = {
  text: utf8,
  utf8,
  bool: () => new BoolColumn(new Bool()),
  numeric: () => new BytesColumn(new Utf8(), (source, start, _end, out) => numericText(source, start, out)),
  jsonb: () => new BytesColumn(new Utf8(), verbatim(1)), // after the version byte
  binary: () => new BytesColumn(new Binary(), verbatim()),
  int16: fixed(() => ({ type: new Int16(), width: 2, view: Int16Array, write: reverse(2) })),
  int32: fixed(() => ({ type: new Int32(), width: 4, view: Int32Array, write: reverse(4) })),
  int64: fixed(() => ({ type: new Int64(), width: 8, view: BigInt64Array, write: reverse(8) })),
  float32: fixed(() => ({ type: new Float32(), width: 4, view: Float32Array, write: reverse(4) })),
  float64: fixed(() => ({ type: new Float64(), width: 8, view: Float64Array, write: reverse(8) })),
  uuid: fixed(() => ({ type: new FixedSizeBinary(16), width: 16, view: Uint8Array, write: copy(16) })),
  date: fixed(() => ({ type: new DateDay(), width: 4, view: Int32Array, write: date })),
  time: fixed(() => ({ type: new TimeMicrosecond(), width: 8, view: BigInt64Array, write: time })),
  timestamp: fixed(() => moment(null)),
  timestamptz: fixed(() => moment('UTC')),
  interval: fixed(() => ({ type: new IntervalMonthDayNano(), width: 16, view: Int32Array, write: interval })),
};

function moment(zone: string | null): ValueLayout {
  return { type: new TimestampMicrosecond(zone), width: 8, view: BigInt64Array, write: timestamp };
}
