import { arrayOf, oidOf, SCALAR_TYPES, type TypeName, typeOfOid } from './types.js';

/**
 * A type that a client declares for `$n` by its Postgres OID. The client sends values of that type, in text or binary
 * form, and only Postgres converts them.
 */
export type DeclaredType =
  /** A type that the model has. */
  | { readonly kind: 'model'; readonly oid: number; readonly type: TypeName }
  /** Treated as the model type `type` everywhere. `sql` is the SQL name of the declared type. */
  | { readonly kind: 'converted'; readonly oid: number; readonly sql: string; readonly type: TypeName }
  /** Usable only through an explicit cast to one of `casts`. */
  | {
      readonly kind: 'foreign';
      readonly oid: number;
      readonly sql: string;
      readonly casts: readonly TypeName[];
    };

/** OID of `unknown`. Postgres treats a parameter of this type as untyped. */
const UNKNOWN = 705;

/** Returns the type that `oid` declares; null if it leaves the choice to the compiler. */
export function declaredType(oid: number): DeclaredType | null {
  if (oid === 0 || oid === UNKNOWN) return null;
  const type = typeOfOid(oid);
  if (type !== null) return { kind: 'model', oid, type };
  return OTHERS.get(oid) ?? { kind: 'foreign', oid, sql: `OID ${oid}`, casts: [] };
}

/** Postgres types that the compiler treats as `text` or `int8`. Their arrays are treated as `text[]` or `int8[]`. */
const CONVERTED: readonly (readonly [oid: number, arrayOid: number, sql: string, type: 'text' | 'int8'])[] = [
  [18, 1002, '"char"', 'text'],
  [19, 1003, 'name', 'text'],
  [26, 1028, 'oid', 'int8'],
  [1043, 1015, 'varchar', 'text'],
];

const TEXT: readonly TypeName[] = ['text'];

/** Types for which the model has no operators. Array OID 0 means that there is no array type. */
const FOREIGN: readonly (readonly [
  oid: number,
  arrayOid: number,
  sql: string,
  casts: readonly TypeName[],
])[] = [
  [22, 1006, 'int2vector', []],
  [24, 1008, 'regproc', []],
  [27, 1010, 'tid', []],
  [28, 1011, 'xid', []],
  [29, 1012, 'cid', []],
  [30, 1013, 'oidvector', []],
  [142, 143, 'xml', TEXT],
  [600, 1017, 'point', TEXT],
  [601, 1018, 'lseg', TEXT],
  [602, 1019, 'path', TEXT],
  [603, 1020, 'box', TEXT],
  [604, 1027, 'polygon', TEXT],
  [628, 629, 'line', TEXT],
  [718, 719, 'circle', TEXT],
  [1033, 1034, 'aclitem', []],
  // In the grammar, a bare `bit` is `bit(1)`.
  [1560, 1561, '"bit"', TEXT],
  [1562, 1563, 'varbit', TEXT],
  [1790, 2201, 'refcursor', []],
  [2202, 2207, 'regprocedure', []],
  [2203, 2208, 'regoper', []],
  [2204, 2209, 'regoperator', []],
  [2205, 2210, 'regclass', []],
  [2206, 2211, 'regtype', []],
  [2249, 2287, 'record', []],
  [2275, 1263, 'cstring', []],
  [2278, 0, 'void', []],
  [2970, 2949, 'txid_snapshot', []],
  [3220, 3221, 'pg_lsn', []],
  [3642, 3644, 'gtsvector', []],
  [3734, 3735, 'regconfig', []],
  [3769, 3770, 'regdictionary', []],
  [4072, 4073, 'jsonpath', TEXT],
  [4089, 4090, 'regnamespace', []],
  [4096, 4097, 'regrole', []],
  [4191, 4192, 'regcollation', []],
  [5038, 5039, 'pg_snapshot', []],
  [5069, 271, 'xid8', []],
];

const OTHERS: ReadonlyMap<number, DeclaredType> = new Map(
  [
    ...CONVERTED.flatMap(([oid, arrayOid, sql, type]): DeclaredType[] => [
      { kind: 'converted', oid, sql, type },
      { kind: 'converted', oid: arrayOid, sql: `${sql}[]`, type: `${type}[]` },
    ]),
    ...FOREIGN.flatMap(([oid, arrayOid, sql, casts]): DeclaredType[] => {
      const type: DeclaredType = { kind: 'foreign', oid, sql, casts };
      return arrayOid === 0 ? [type] : [type, { kind: 'foreign', oid: arrayOid, sql: `${sql}[]`, casts: [] }];
    }),
  ].map((declared) => [declared.oid, Object.freeze(declared)]),
);

/** Returns the element OID of array type `oid`; null if it is not a known array type. */
export function elementOid(oid: number): number | null {
  return ELEMENT_OIDS.get(oid) ?? null;
}

const ELEMENT_OIDS: ReadonlyMap<number, number> = new Map([
  ...SCALAR_TYPES.map((t): [number, number] => [oidOf(arrayOf(t)), oidOf(t)]),
  ...[...CONVERTED, ...FOREIGN]
    .filter(([, arrayOid]) => arrayOid !== 0)
    .map(([oid, arrayOid]): [number, number] => [arrayOid, oid]),
]);

/**
 * Returns the OID of the Postgres type `name`, or of the array of that type. Aliases need not be known here, since the
 * grammar replaces them by this name. Returns 0 for `unknown`, and null if the type is unknown to the gateway.
 */
export function declaredOid(name: string, array: boolean): number | null {
  if (name === 'unknown' && !array) return 0;
  return BY_NAME.get(array ? `${name}[]` : name) ?? null;
}

const BY_NAME: ReadonlyMap<string, number> = new Map([
  ...SCALAR_TYPES.flatMap((t): [string, number][] => [
    [t, oidOf(t)],
    [`${t}[]`, oidOf(arrayOf(t))],
  ]),
  ...[...OTHERS.values()].flatMap((t): [string, number][] =>
    t.kind === 'model' ? [] : [[t.sql.replaceAll('"', ''), t.oid]],
  ),
]);
