/** `pg_type.typcategory` of value types: boolean, date, network, number, range, string, timespan, other, bits. */
export type ValueCategory = 'B' | 'D' | 'I' | 'N' | 'R' | 'S' | 'T' | 'U' | 'V';

/**
 * Representation of a value in JSON: `number`, `float` (NaN and infinities are strings), `bool`, `json` and `jsonb`
 * (unchanged), a string that needs no escape (`plain`) or may need one (`string`), `base64`, RFC 3339 timestamps.
 */
export type JsonForm =
  | ('bool' | 'number' | 'float' | 'json' | 'jsonb')
  | ('plain' | 'string' | 'base64' | 'timestamp' | 'timestamptz');

/** Representation of a value in Arrow. `text`: Postgres' text form, for types that Arrow does not have. */
export type ArrowForm =
  | ('bool' | 'int16' | 'int32' | 'int64' | 'float32' | 'float64' | 'numeric' | 'utf8' | 'text' | 'binary')
  | ('uuid' | 'jsonb' | 'date' | 'time' | 'timestamp' | 'timestamptz' | 'interval');

/** The numbers a type takes in parentheses: `bpchar(n)`, `varbit(n)`, `numeric(p,s)`, `time(n)`, `interval(n)`. */
export type ModifierKind = 'characters' | 'bits' | 'decimal' | 'seconds' | 'interval';

interface TypeRow {
  readonly oid: number;
  readonly arrayOid: number;
  /** `typlen` on the wire: bytes of a fixed-width value, -1 for variable width. */
  readonly length: number;
  readonly category: ValueCategory;
  readonly json: JsonForm;
  readonly arrow: ArrowForm;
  /** A literal of the type, used as an example in hints. */
  readonly example: string;
  /** True if Postgres prefers the type within its category. */
  readonly isPreferred: boolean;
  /** The name that Postgres' `format_type` returns; null if it equals the model's name for the type. */
  readonly sqlName: string | null;
  /** Other spellings that a query or a manifest may use, all in lower case. */
  readonly aliases: readonly string[];
  readonly modifier: ModifierKind | null;
  /** The range of an integer type, in words; null for other types. */
  readonly bounds: string | null;
}

function row(
  [oid, arrayOid, length]: readonly [oid: number, arrayOid: number, length: number],
  category: ValueCategory,
  json: JsonForm,
  arrow: ArrowForm,
  example: string,
  more: Partial<TypeRow> = {},
): TypeRow {
  const defaults = { isPreferred: false, sqlName: null, aliases: [], modifier: null, bounds: null };
  return Object.freeze({ ...defaults, oid, arrayOid, length, category, json, arrow, example, ...more });
}

/**
 * The closed set of value types that a model may expose and that OSL-SQL can compute with, one row each.
 *
 * The names are Postgres' own short names, so that they can be emitted as cast targets. `bpchar` is `char(n)`: trailing
 * blanks are ignored in comparisons and conversions to text. Bit strings of any length are `varbit`. `json`, without
 * equality or order, is a type of values only: json columns are read as text.
 */
const TYPES = {
  bool: row([16, 1000, 1], 'B', 'bool', 'bool', 'true', { isPreferred: true, sqlName: 'boolean' }),
  int2: row([21, 1005, 2], 'N', 'number', 'int16', '100', {
    sqlName: 'smallint',
    bounds: 'from -32768 to 32767',
  }),
  int4: row([23, 1007, 4], 'N', 'number', 'int32', '100', {
    sqlName: 'integer',
    aliases: ['int'],
    bounds: 'from -2147483648 to 2147483647',
  }),
  int8: row([20, 1016, 8], 'N', 'plain', 'int64', '100', {
    sqlName: 'bigint',
    bounds: 'from -9223372036854775808 to 9223372036854775807',
  }),
  float4: row([700, 1021, 4], 'N', 'float', 'float32', '1.5', { sqlName: 'real' }),
  float8: row([701, 1022, 8], 'N', 'float', 'float64', '1.5', {
    isPreferred: true,
    sqlName: 'double precision',
    aliases: ['double', 'float'],
  }),
  numeric: row([1700, 1231, -1], 'N', 'plain', 'numeric', '1.5', {
    aliases: ['decimal'],
    modifier: 'decimal',
  }),
  text: row([25, 1009, -1], 'S', 'string', 'utf8', 'text', {
    isPreferred: true,
    aliases: ['varchar', 'string', 'character varying'],
  }),
  bpchar: row([1042, 1014, -1], 'S', 'string', 'utf8', 'text', {
    sqlName: 'character',
    aliases: ['char'],
    modifier: 'characters',
  }),
  uuid: row([2950, 2951, 16], 'U', 'plain', 'uuid', '123e4567-e89b-12d3-a456-426614174000'),
  date: row([1082, 1182, 4], 'D', 'plain', 'date', '2026-01-31'),
  time: row([1083, 1183, 8], 'D', 'plain', 'time', '10:30:00', {
    sqlName: 'time without time zone',
    modifier: 'seconds',
  }),
  timestamp: row([1114, 1115, 8], 'D', 'timestamp', 'timestamp', '2026-01-31 10:30:00', {
    sqlName: 'timestamp without time zone',
    modifier: 'seconds',
  }),
  timestamptz: row([1184, 1185, 8], 'D', 'timestamptz', 'timestamptz', '2026-01-31 10:30:00+00', {
    isPreferred: true,
    sqlName: 'timestamp with time zone',
    modifier: 'seconds',
  }),
  interval: row([1186, 1187, 16], 'T', 'plain', 'interval', '3 days 04:05:06', {
    isPreferred: true,
    modifier: 'interval',
  }),
  bytea: row([17, 1001, -1], 'U', 'base64', 'binary', '\\xdeadbeef'),
  varbit: row([1562, 1563, -1], 'V', 'plain', 'text', '101', {
    isPreferred: true,
    sqlName: 'bit varying',
    modifier: 'bits',
  }),
  jsonb: row([3802, 3807, -1], 'U', 'jsonb', 'jsonb', '{"a": 1}'),
  inet: row([869, 1041, -1], 'I', 'plain', 'text', '192.0.2.1', { isPreferred: true }),
  cidr: row([650, 651, -1], 'I', 'plain', 'text', '192.0.2.0/24'),
  macaddr: row([829, 1040, 6], 'U', 'plain', 'text', '08:00:2b:01:02:03'),
  macaddr8: row([774, 775, 8], 'U', 'plain', 'text', '08:00:2b:01:02:03:04:05'),
  money: row([790, 791, 8], 'N', 'string', 'text', '12.50'),
  timetz: row([1266, 1270, 12], 'D', 'plain', 'text', '10:30:00+00', {
    sqlName: 'time with time zone',
    modifier: 'seconds',
  }),
  tsvector: row([3614, 3643, -1], 'U', 'string', 'text', 'open source'),
  tsquery: row([3615, 3645, -1], 'U', 'string', 'text', 'open & source'),
  int4range: row([3904, 3905, -1], 'R', 'string', 'text', '[1,5)'),
  int8range: row([3926, 3927, -1], 'R', 'string', 'text', '[1,5)'),
  numrange: row([3906, 3907, -1], 'R', 'string', 'text', '[1.5,2.5)'),
  daterange: row([3912, 3913, -1], 'R', 'string', 'text', '[2026-01-01,2026-02-01)'),
  tsrange: row([3908, 3909, -1], 'R', 'string', 'text', '[2026-01-01 00:00,2026-02-01 00:00)'),
  tstzrange: row([3910, 3911, -1], 'R', 'string', 'text', '[2026-01-01 00:00+00,2026-02-01 00:00+00)'),
  int4multirange: row([4451, 6150, -1], 'R', 'string', 'text', '{[1,5),[7,9)}'),
  int8multirange: row([4536, 6157, -1], 'R', 'string', 'text', '{[1,5),[7,9)}'),
  nummultirange: row([4532, 6151, -1], 'R', 'string', 'text', '{[1.5,2.5)}'),
  datemultirange: row([4535, 6155, -1], 'R', 'string', 'text', '{[2026-01-01,2026-02-01)}'),
  tsmultirange: row([4533, 6152, -1], 'R', 'string', 'text', '{[2026-01-01 00:00,2026-02-01 00:00)}'),
  tstzmultirange: row([4534, 6153, -1], 'R', 'string', 'text', '{[2026-01-01 00:00+00,2026-02-01 00:00+00)}'),
  json: row([114, 199, -1], 'U', 'json', 'utf8', '{"a": 1}'),
};

export type ScalarType = keyof typeof TYPES;
export type ArrayType = `${ScalarType}[]`;
export type TypeName = ScalarType | ArrayType;

export const SCALAR_TYPES = Object.freeze(Object.keys(TYPES)) as readonly ScalarType[]; // these are the keys of TYPES

export function typeRow(type: ScalarType): TypeRow {
  return TYPES[type];
}

const SPELLINGS: ReadonlyMap<string, ScalarType> = new Map([
  ...SCALAR_TYPES.map((t): [string, ScalarType] => [t, t]),
  ...SCALAR_TYPES.flatMap((t) => {
    const { sqlName, aliases } = TYPES[t];
    return [...(sqlName === null ? [] : [sqlName]), ...aliases].map((name): [string, ScalarType] => [
      name,
      t,
    ]);
  }),
]);

/** All spellings of scalar types. */
export const TYPE_SPELLINGS: readonly string[] = Object.freeze([...SPELLINGS.keys()]);

const BY_OID: ReadonlyMap<number, TypeName> = new Map(
  SCALAR_TYPES.flatMap((t): [number, TypeName][] => [
    [TYPES[t].oid, t],
    [TYPES[t].arrayOid, `${t}[]`],
  ]),
);

/** Families of types, narrowest first: operators and functions have one overload for each member. */
export const INTEGERS = ['int2', 'int4', 'int8'] as const;
export const FLOATS = ['float4', 'float8'] as const;
export const NUMBERS = [...INTEGERS, ...FLOATS, 'numeric'] as const;
export const MOMENTS = ['date', 'timestamp', 'timestamptz'] as const;

const INTEGER_SET: ReadonlySet<string> = new Set(INTEGERS);
const NUMBER_SET: ReadonlySet<string> = new Set(NUMBERS);
const MOMENT_SET: ReadonlySet<string> = new Set(MOMENTS);

export function isInteger(type: string): boolean {
  return INTEGER_SET.has(type);
}

export function isNumber(type: string): boolean {
  return NUMBER_SET.has(type);
}

export function isMoment(type: string): boolean {
  return MOMENT_SET.has(type);
}

/** Returns `type` as Postgres' `format_type` writes it: `timestamp with time zone[]`. */
export function sqlNameOf(type: TypeName): string {
  if (isArray(type)) return `${sqlNameOf(elementOf(type))}[]`;
  return TYPES[type].sqlName ?? type;
}

/** True if Postgres' type, or that of its elements, may have a modifier, as `numeric(8,2)` and `varchar(20)` do. */
export function takesModifier(type: TypeName): boolean {
  const element = isArray(type) ? elementOf(type) : type;
  return element === 'text' || TYPES[element].modifier !== null;
}

/** True if values of `type` can be compared, grouped and ordered. */
export function isComparable(type: TypeName): boolean {
  return type !== 'json' && type !== 'json[]';
}

/** Returns the model type that `name` spells (`integer`, `int4[]`, …); null if there is none. */
export function typeNamed(name: string): TypeName | null {
  const lower = name.trim().toLowerCase();
  if (lower.endsWith('[]')) {
    const element = SPELLINGS.get(lower.slice(0, -2));
    return element === undefined ? null : `${element}[]`;
  }
  return SPELLINGS.get(lower) ?? null;
}

export function isArray(type: TypeName): type is ArrayType {
  return type.endsWith('[]');
}

export function elementOf(type: ArrayType): ScalarType {
  return type.slice(0, -2) as ScalarType; // an ArrayType is a ScalarType followed by []
}

export function arrayOf(type: ScalarType): ArrayType {
  return `${type}[]`;
}

/** Returns the Postgres OID of `type`, the same on every server. */
export function oidOf(type: TypeName): number {
  return isArray(type) ? TYPES[elementOf(type)].arrayOid : TYPES[type].oid;
}

export function typeOfOid(oid: number): TypeName | null {
  return BY_OID.get(oid) ?? null;
}

/** Returns the `typlen` of `type` on the wire; -1 for variable width. */
export function lengthOf(type: TypeName): number {
  return isArray(type) ? -1 : TYPES[type].length;
}

/** The range types, each with the type of its bounds and its multirange. */
export const RANGES = [
  { range: 'int4range', element: 'int4', multirange: 'int4multirange' },
  { range: 'int8range', element: 'int8', multirange: 'int8multirange' },
  { range: 'numrange', element: 'numeric', multirange: 'nummultirange' },
  { range: 'daterange', element: 'date', multirange: 'datemultirange' },
  { range: 'tsrange', element: 'timestamp', multirange: 'tsmultirange' },
  { range: 'tstzrange', element: 'timestamptz', multirange: 'tstzmultirange' },
] as const;

export type RangeFamily = (typeof RANGES)[number];
type RangeType = RangeFamily['range'];
type MultirangeType = RangeFamily['multirange'];

const BY_RANGE: ReadonlyMap<string, RangeFamily> = new Map(RANGES.map((f) => [f.range, f]));
const BY_MULTIRANGE: ReadonlyMap<string, RangeFamily> = new Map(RANGES.map((f) => [f.multirange, f]));

/** Returns the family of a range type; null for any other type. */
export function familyOfRange(type: string): RangeFamily | null {
  return BY_RANGE.get(type) ?? null;
}

export function familyOfMultirange(type: string): RangeFamily | null {
  return BY_MULTIRANGE.get(type) ?? null;
}

export const RANGE_TYPES: readonly RangeType[] = Object.freeze(RANGES.map((f) => f.range));
export const MULTIRANGE_TYPES: readonly MultirangeType[] = Object.freeze(RANGES.map((f) => f.multirange));
