/**
 * The type of a column of the database where the model has none like it: `inet`, `app.mood[]`, `enum app.mood`. Such a
 * column is read as its text, and is `text` (of an array `text[]`) to everything above the scan that reads it.
 *
 * Written as Postgres' `quote_ident` writes names, with the schema unless it is `pg_catalog`. `enum` before the name
 * says that equality with a value may be asked of the type itself, so that an index on the column serves.
 */
export interface StoredType {
  /** Whether its labels may be asked for: its schema is one that the gateway's role may use. */
  readonly isEnum: boolean;
  readonly isArray: boolean;
  /** As SQL writes it, without the brackets of an array. */
  readonly sql: string;
}

const NAME = '(?:"(?:[^"\\u0000]|""){1,126}"|[a-z_][a-z0-9_]{0,62})';

/** What `stored` of a manifest must match, as JSON Schema takes it. */
export const STORED_PATTERN = `^(?:(?:${NAME}\\.)?${NAME}(?:\\[\\])?|enum ${NAME}\\.${NAME})$`;

const STORED = new RegExp(STORED_PATTERN);

/** What `stored` says, or null where it is no name of a type. */
export function storedType(stored: string): StoredType | null {
  if (!STORED.test(stored)) return null;
  const isEnum = stored.startsWith('enum ');
  const isArray = stored.endsWith('[]');
  return { isEnum, isArray, sql: isEnum ? stored.slice(5) : isArray ? stored.slice(0, -2) : stored };
}

/** The name that an enum has in its schema: `mood` of `enum app.mood`, `a.b` of `enum app."a.b"`. */
export function enumName(stored: string): string {
  const quoted = /"((?:[^"]|"")*)"$/.exec(stored)?.[1];
  return quoted?.replaceAll('""', '"') ?? stored.slice(stored.lastIndexOf('.') + 1);
}

/** Types of Postgres' own whose text no setting of a session changes. */
const SETTINGS_FREE: ReadonlySet<string> = new Set([
  ...['inet', 'cidr', 'macaddr', 'macaddr8', 'bit', 'varbit', 'json', 'tsvector', 'tsquery', 'oid', '"char"'],
  ...['int4range', 'int8range', 'numrange', 'int4multirange', 'int8multirange', 'nummultirange', 'pg_lsn'],
]);

/**
 * Whether the text of a value is the same in every session. That of a range of moments, of money or of a composite is
 * not, and of a type that is not Postgres' own nobody knows.
 */
export function isSettingsFreeType(stored: string): boolean {
  const type = storedType(stored);
  return type !== null && (type.isEnum || SETTINGS_FREE.has(type.sql));
}
