/**
 * The closed set of value types that a model may expose and that OSL-SQL computes with.
 *
 * A name is Postgres' own short name, so that it can be emitted as a cast target without translation. `bpchar` is
 * `char(n)`: blanks at its end count neither in comparisons nor as text.
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
  'jsonb',
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
  jsonb: { oid: 3802, arrayOid: 3807, length: -1 },
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
]);

/** Every spelling of a scalar type. */
export const TYPE_SPELLINGS: readonly string[] = Object.freeze([...ALIASES.keys()]);

const BY_OID: ReadonlyMap<number, TypeName> = new Map(
  SCALAR_TYPES.flatMap((t): [number, TypeName][] => [
    [FACTS[t].oid, t],
    [FACTS[t].arrayOid, `${t}[]`],
  ]),
);

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
