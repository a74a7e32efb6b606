import {
  arrayOf,
  isComparable,
  lengthOf,
  type ModifierKind,
  oidOf,
  type ScalarType,
  type TypeName,
  typeNamed,
  typeRow,
} from './types.js';

/**
 * The database type of a column, where it is more specific than its model type: `varchar(20)` for `text`,
 * `numeric(12,2)` for `numeric`. In text and in binary format, values of both types have the same bytes.
 */
export interface ColumnForm {
  /** The type in SQL. */
  readonly sql: string;
  readonly oid: number;
  /** `typlen` on the wire. */
  readonly length: number;
  /** `atttypmod` in Postgres; -1 if there is none. */
  readonly modifier: number;
}

/** The type of a column as spelled in a manifest. */
export interface DeclaredColumn {
  readonly type: TypeName;
  /** Null if `type` describes the column completely. */
  readonly form: ColumnForm | null;
}

const SPELLED =
  /^([a-z0-9_ ]*?[a-z0-9_]) *\( *(\d{1,8}) *(?:, *(-?\d{1,4}) *)?\)((?: with(?:out)? time zone)?)(\[\])?$/;

/** Returns the column declared as `name` (`varchar(20)`, `numeric(12,2)[]`); null if unknown or read as text. */
export function declaredColumn(name: string): DeclaredColumn | null {
  const lower = name.trim().toLowerCase();
  const match = SPELLED.exec(lower);
  if (match === null && BIT.test(lower)) return bits([1], lower.endsWith('[]'));
  if (match === null) return isVarchar(lower) ? varchar(null, lower.endsWith('[]')) : plain(lower);
  const [, word = '', first = '', second, zone = '', brackets] = match;
  const numbers = [Number(first), ...(second === undefined ? [] : [Number(second)])];
  const array = brackets !== undefined;
  if (isVarchar(word)) return zone === '' ? varchar(numbers, array) : null;
  if (BIT.test(word)) return zone === '' ? bits(numbers, array) : null;
  const type = typeNamed(`${word}${zone}`);
  return type === null || type.endsWith('[]') ? null : modified(type as ScalarType, numbers, array);
}

/** Returns a column without modifier; null if its type is unknown, or read as text for lack of equality. */
function plain(name: string): DeclaredColumn | null {
  const type = typeNamed(name);
  return type === null || type.startsWith('tsquery') || !isComparable(type) ? null : { type, form: null };
}

function isVarchar(word: string): boolean {
  return /^(?:varchar|character varying)(?:\[\])?$/.test(word);
}

const VARCHAR = { oid: 1043, arrayOid: 1015 } as const;

function varchar(numbers: readonly number[] | null, array: boolean): DeclaredColumn | null {
  const modifier = numbers === null ? -1 : modifierOf('characters', numbers);
  if (modifier === null) return null;
  const sql = `varchar${numbers === null ? '' : `(${numbers.join()})`}${array ? '[]' : ''}`;
  const oid = array ? VARCHAR.arrayOid : VARCHAR.oid;
  return { type: array ? 'text[]' : 'text', form: Object.freeze({ sql, oid, length: -1, modifier }) };
}

const BIT = /^bit(?:\[\])?$/;
const BITS = { oid: 1560, arrayOid: 1561 } as const;

/** Returns a `bit(n)` column, whose type in the model is `varbit`; null if the length is invalid. */
function bits(numbers: readonly number[], array: boolean): DeclaredColumn | null {
  const modifier = modifierOf('bits', numbers);
  if (modifier === null) return null;
  const sql = `bit(${numbers.join()})${array ? '[]' : ''}`;
  const oid = array ? BITS.arrayOid : BITS.oid;
  return { type: array ? 'varbit[]' : 'varbit', form: Object.freeze({ sql, oid, length: -1, modifier }) };
}

function modified(element: ScalarType, numbers: readonly number[], array: boolean): DeclaredColumn | null {
  const modifier = modifierOf(typeRow(element).modifier, numbers);
  if (modifier === null) return null;
  const type = array ? arrayOf(element) : element;
  const sql = `${element}(${numbers.join()})${array ? '[]' : ''}`;
  return { type, form: Object.freeze({ sql, oid: oidOf(type), length: lengthOf(type), modifier }) };
}

/** Header bytes that Postgres counts in the modifiers of strings and numerics. */
const HEADER = 4;
/** Maximum number of characters of `varchar(n)` and `char(n)`. */
const MAX_CHARACTERS = 10_485_760;
/** Maximum number of bits of `bit(n)` and `varbit(n)`. */
const MAX_BITS = 83_886_080;
/** The bit mask for all fields of an interval. */
const ALL_FIELDS = 0x7fff;

/** Returns the `atttypmod` of a type with `numbers` in parentheses; null if the type does not accept these numbers. */
function modifierOf(kind: ModifierKind | null, numbers: readonly number[]): number | null {
  const [first = -1, second, ...more] = numbers;
  if (more.length > 0 || (second !== undefined && kind !== 'decimal')) return null;
  switch (kind) {
    case 'characters':
      return first >= 1 && first <= MAX_CHARACTERS ? first + HEADER : null;
    case 'bits':
      return first >= 1 && first <= MAX_BITS ? first : null;
    case 'decimal': {
      const scale = second ?? 0;
      if (first < 1 || first > 1000 || scale < -1000 || scale > 1000) return null;
      return ((first << 16) | (scale & 0x7ff)) + HEADER;
    }
    case 'seconds':
      return first <= 6 ? first : null;
    case 'interval':
      return first <= 6 ? (ALL_FIELDS << 16) | first : null;
    case null:
      return null;
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

/** Returns the manifest's spelling of a column of type `oid` with `modifier`; `type` if none is more specific. */
export function spelledColumn(type: TypeName, oid: number, modifier: number): string {
  const array = type.endsWith('[]');
  const brackets = array ? '[]' : '';
  if (oid === VARCHAR.oid || oid === VARCHAR.arrayOid)
    return `varchar${modifier < HEADER ? '' : `(${modifier - HEADER})`}${brackets}`;
  if ((oid === BITS.oid || oid === BITS.arrayOid) && modifier > 0) return `bit(${modifier})${brackets}`;
  if (oid !== oidOf(type) || modifier < 0) return type;
  const element = array ? type.slice(0, -2) : type;
  const spelled = `${element}(${numbersOf(element, modifier).join()})${brackets}`;
  return declaredColumn(spelled)?.form?.modifier === modifier ? spelled : type;
}

/** Returns the numbers in parentheses that `modifier` encodes, without validating them. */
function numbersOf(element: string, modifier: number): readonly number[] {
  if (element === 'bpchar') return [modifier - HEADER];
  if (element === 'interval') return [modifier & 0xffff];
  if (element !== 'numeric') return [modifier];
  const scale = (modifier - HEADER) & 0x7ff;
  return [((modifier - HEADER) >> 16) & 0xffff, (scale ^ 0x400) - 0x400];
}

/** Returns precision and scale of `numeric(p,s)`; null for any other form. */
export function decimalOf(
  form: ColumnForm | null,
): { readonly precision: number; readonly scale: number } | null {
  if (form === null || form.oid !== oidOf('numeric') || form.modifier < HEADER) return null;
  const [precision = 0, scale = 0] = numbersOf('numeric', form.modifier);
  return { precision, scale };
}

/** Returns the maximum number of characters of `varchar(n)`; null for any other form. */
export function charactersOf(form: ColumnForm | null): number | null {
  return form === null || form.oid !== VARCHAR.oid || form.modifier < HEADER ? null : form.modifier - HEADER;
}

/**
 * The type of a database column with no equivalent type in the model: `inet`, `app.mood[]`, `enum app.mood`. Such a
 * column is read as text: above its scan, its type is `text`, or `text[]` for an array.
 *
 * Written as by Postgres' `quote_ident`, with the schema unless it is `pg_catalog`. `enum` before the name means that
 * equality with a value may be tested in the enum type itself, so that an index on the column is usable.
 */
export interface StoredType {
  /** True for an enum whose labels may be read: its schema is accessible to the gateway's role. */
  readonly isEnum: boolean;
  readonly isArray: boolean;
  /** The type in SQL, without the brackets of an array. */
  readonly sql: string;
}

const NAME = '(?:"(?:[^"\\u0000]|""){1,126}"|[a-z_][a-z0-9_]{0,62})';

/** The JSON Schema pattern for `stored` in a manifest. */
export const STORED_PATTERN = `^(?:(?:${NAME}\\.)?${NAME}(?:\\[\\])?|enum ${NAME}\\.${NAME})$`;

const STORED = new RegExp(STORED_PATTERN);

/** Returns the type that `stored` names; null if it is not a type name. */
export function storedType(stored: string): StoredType | null {
  if (!STORED.test(stored)) return null;
  const isEnum = stored.startsWith('enum ');
  const isArray = stored.endsWith('[]');
  return { isEnum, isArray, sql: isEnum ? stored.slice(5) : isArray ? stored.slice(0, -2) : stored };
}

/** Returns the name of an enum within its schema: `mood` for `enum app.mood`, `a.b` for `enum app."a.b"`. */
export function enumName(stored: string): string {
  const quoted = /"((?:[^"]|"")*)"$/.exec(stored)?.[1];
  return quoted?.replaceAll('""', '"') ?? stored.slice(stored.lastIndexOf('.') + 1);
}

/** Built-in types whose text form does not depend on session settings. */
const SETTINGS_FREE: ReadonlySet<string> = new Set([
  ...['inet', 'cidr', 'macaddr', 'macaddr8', 'bit', 'varbit', 'json', 'tsvector', 'tsquery', 'oid', '"char"'],
  ...['int4range', 'int8range', 'numrange', 'int4multirange', 'int8multirange', 'nummultirange', 'pg_lsn'],
]);

/**
 * True if the text form of a value is the same in every session, as for enums and some built-in types. False for
 * timestamp ranges, money, composites and all other types.
 */
export function isSettingsFreeType(stored: string): boolean {
  const type = storedType(stored);
  return type !== null && (type.isEnum || SETTINGS_FREE.has(type.sql));
}
