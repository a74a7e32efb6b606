/**
 * The closed set of value types that a model may expose and that OSL-SQL computes with.
 *
 * A name is Postgres' own short name, so that it can be emitted as a cast target without translation. `bpchar` is
 * `char(n)`: blanks at its end count neither in comparisons nor as text. Bits are `varbit`, of whatever length they are. `json` has no equality and no order, and is the
 * type of values alone: a column of it is read as its text.
 */
export const SCALAR_TYPES = [
  'bool',
  'int2',
  'int4',
  'int8',
  'float4',
  'float8',
  'numeric',
  'text',
  'bpchar',
  'uuid',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'interval',
  'bytea',
  'varbit',
  'jsonb',
  'inet',
  'cidr',
  'macaddr',
  'macaddr8',
  'money',
  'timetz',
  'tsvector',
  'tsquery',
  'int4range',
  'int8range',
  'numrange',
  'daterange',
  'tsrange',
  'tstzrange',
  'int4multirange',
  'int8multirange',
  'nummultirange',
  'datemultirange',
  'tsmultirange',
  'tstzmultirange',
  'json',
] as const;

export type ScalarType = (typeof SCALAR_TYPES)[number];
export type ArrayType = `${ScalarType}[]`;
export type TypeName = ScalarType | ArrayType;

interface TypeFacts {
  readonly oid: number;
  readonly arrayOid: number;
  /** Wire `typlen`: bytes of a fixed-width value, -1 for variable width. */
  readonly length: number;
}

const FACTS: Readonly<Record<ScalarType, TypeFacts>> = {
  bool: { oid: 16, arrayOid: 1000, length: 1 },
  int2: { oid: 21, arrayOid: 1005, length: 2 },
  int4: { oid: 23, arrayOid: 1007, length: 4 },
  int8: { oid: 20, arrayOid: 1016, length: 8 },
  float4: { oid: 700, arrayOid: 1021, length: 4 },
  float8: { oid: 701, arrayOid: 1022, length: 8 },
  numeric: { oid: 1700, arrayOid: 1231, length: -1 },
  text: { oid: 25, arrayOid: 1009, length: -1 },
  bpchar: { oid: 1042, arrayOid: 1014, length: -1 },
  uuid: { oid: 2950, arrayOid: 2951, length: 16 },
  date: { oid: 1082, arrayOid: 1182, length: 4 },
  time: { oid: 1083, arrayOid: 1183, length: 8 },
  timestamp: { oid: 1114, arrayOid: 1115, length: 8 },
  timestamptz: { oid: 1184, arrayOid: 1185, length: 8 },
  interval: { oid: 1186, arrayOid: 1187, length: 16 },
  bytea: { oid: 17, arrayOid: 1001, length: -1 },
  varbit: { oid: 1562, arrayOid: 1563, length: -1 },
  jsonb: { oid: 3802, arrayOid: 3807, length: -1 },
  inet: { oid: 869, arrayOid: 1041, length: -1 },
  cidr: { oid: 650, arrayOid: 651, length: -1 },
  macaddr: { oid: 829, arrayOid: 1040, length: 6 },
  macaddr8: { oid: 774, arrayOid: 775, length: 8 },
  money: { oid: 790, arrayOid: 791, length: 8 },
  timetz: { oid: 1266, arrayOid: 1270, length: 12 },
  tsvector: { oid: 3614, arrayOid: 3643, length: -1 },
  tsquery: { oid: 3615, arrayOid: 3645, length: -1 },
  int4range: { oid: 3904, arrayOid: 3905, length: -1 },
  int8range: { oid: 3926, arrayOid: 3927, length: -1 },
  numrange: { oid: 3906, arrayOid: 3907, length: -1 },
  daterange: { oid: 3912, arrayOid: 3913, length: -1 },
  tsrange: { oid: 3908, arrayOid: 3909, length: -1 },
  tstzrange: { oid: 3910, arrayOid: 3911, length: -1 },
  int4multirange: { oid: 4451, arrayOid: 6150, length: -1 },
  int8multirange: { oid: 4536, arrayOid: 6157, length: -1 },
  nummultirange: { oid: 4532, arrayOid: 6151, length: -1 },
  datemultirange: { oid: 4535, arrayOid: 6155, length: -1 },
  tsmultirange: { oid: 4533, arrayOid: 6152, length: -1 },
  tstzmultirange: { oid: 4534, arrayOid: 6153, length: -1 },
  json: { oid: 114, arrayOid: 199, length: -1 },
};

/** Spellings that a query or a manifest may use for a type, all lower case. */
const ALIASES: ReadonlyMap<string, ScalarType> = new Map<string, ScalarType>([
  ...SCALAR_TYPES.map((t): [string, ScalarType] => [t, t]),
  ['boolean', 'bool'],
  ['smallint', 'int2'],
  ['integer', 'int4'],
  ['int', 'int4'],
  ['bigint', 'int8'],
  ['real', 'float4'],
  ['double precision', 'float8'],
  ['double', 'float8'],
  ['float', 'float8'],
  ['decimal', 'numeric'],
  ['varchar', 'text'],
  ['char', 'bpchar'],
  ['character', 'bpchar'],
  ['string', 'text'],
  ['character varying', 'text'],
  ['timestamp without time zone', 'timestamp'],
  ['timestamp with time zone', 'timestamptz'],
  ['time without time zone', 'time'],
  ['time with time zone', 'timetz'],
  ['bit varying', 'varbit'],
]);

/** Every spelling of a scalar type. */
export const TYPE_SPELLINGS: readonly string[] = Object.freeze([...ALIASES.keys()]);

const BY_OID: ReadonlyMap<number, TypeName> = new Map(
  SCALAR_TYPES.flatMap((t): [number, TypeName][] => [
    [FACTS[t].oid, t],
    [FACTS[t].arrayOid, `${t}[]`],
  ]),
);

/** Names in SQL of the types that Postgres calls otherwise than the model does. */
const SQL_NAMES: ReadonlyMap<ScalarType, string> = new Map<ScalarType, string>([
  ['bool', 'boolean'],
  ['int2', 'smallint'],
  ['int4', 'integer'],
  ['int8', 'bigint'],
  ['float4', 'real'],
  ['float8', 'double precision'],
  ['bpchar', 'character'],
  ['time', 'time without time zone'],
  ['timetz', 'time with time zone'],
  ['timestamp', 'timestamp without time zone'],
  ['timestamptz', 'timestamp with time zone'],
  ['varbit', 'bit varying'],
]);

/** `type` as Postgres' `format_type` writes it: `timestamp with time zone[]`. */
export function sqlNameOf(type: TypeName): string {
  if (isArray(type)) return `${sqlNameOf(elementOf(type))}[]`;
  return SQL_NAMES.get(type) ?? type;
}

/** Whether values of `type` can be compared, grouped and ordered. */
export function isComparable(type: TypeName): boolean {
  return type !== 'json' && type !== 'json[]';
}

/** The model type that `name` spells (`integer`, `int4[]`, …), or null where it spells none. */
export function typeNamed(name: string): TypeName | null {
  const lower = name.trim().toLowerCase();
  if (lower.endsWith('[]')) {
    const element = ALIASES.get(lower.slice(0, -2));
    return element === undefined ? null : `${element}[]`;
  }
  return ALIASES.get(lower) ?? null;
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

/** The Postgres OID of `type`, the same on every server. */
export function oidOf(type: TypeName): number {
  return isArray(type) ? FACTS[elementOf(type)].arrayOid : FACTS[type].oid;
}

export function typeOfOid(oid: number): TypeName | null {
  return BY_OID.get(oid) ?? null;
}

/** Wire `typlen` of `type`. */
export function lengthOf(type: TypeName): number {
  return isArray(type) ? -1 : FACTS[type].length;
}

/** The types whose values are ranges, with what these are ranges of and what holds several of them. */
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

/** What `type` is the range of, or null where it is none. */
export function familyOfRange(type: string): RangeFamily | null {
  return BY_RANGE.get(type) ?? null;
}

export function familyOfMultirange(type: string): RangeFamily | null {
  return BY_MULTIRANGE.get(type) ?? null;
}

export const RANGE_TYPES: readonly RangeType[] = Object.freeze(RANGES.map((f) => f.range));
export const MULTIRANGE_TYPES: readonly MultirangeType[] = Object.freeze(RANGES.map((f) => f.multirange));
