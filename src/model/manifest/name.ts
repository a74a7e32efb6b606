import type { Connector } from './manifest.js';

/** JSON Schema pattern for the names of tenants, connectors, roles and labels. */
export const NAME_PATTERN = '^(?!__)[A-Za-z_][A-Za-z0-9_]{0,62}$';

const NAME = new RegExp(NAME_PATTERN);

/** Maximum length of a Postgres identifier, in bytes. */
const LONGEST = 63;

/** True if `text` is a valid name of a tenant, connector or role. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Turns `text` into a valid name of a tenant, connector or role; invalid characters become underscores. */
export function nameFrom(text: string): string {
  const plain = text.replace(/[^A-Za-z0-9_]/g, '_').replace(/^_{2,}/, '_');
  return (/^[A-Za-z_]/.test(plain) ? plain : `t_${plain}`).slice(0, LONGEST);
}

const CHARACTERS = '\\p{L}\\p{M}\\p{N}_';

/** Pattern for names in the semantic model: words of letters, digits and underscores, separated by single spaces. */
export const MODEL_NAME = `(?!__)[\\p{L}_][${CHARACTERS}]*(?: [${CHARACTERS}]+)*`;

/** JSON Schema pattern for names in the semantic model, of at most 63 characters. */
export const MODEL_NAME_PATTERN = `^(?=.{1,63}$)${MODEL_NAME}$`;

const ENCODER = new TextEncoder();
const OF_MODEL = new RegExp(MODEL_NAME_PATTERN, 'u');

/**
 * True if `text` is a valid name in the semantic model: it matches the pattern, has at most 63 bytes of UTF-8, and is
 * in NFC.
 */
export function isModelName(text: string): boolean {
  return OF_MODEL.test(text) && utf8Length(text) <= LONGEST && text.normalize('NFC') === text;
}

/** True if Postgres would truncate `text` as an identifier, so that different names could be one. */
export function isTruncated(text: string): boolean {
  return utf8Length(text) > LONGEST;
}

/** Returns the length of `text` in UTF-8 bytes. Does not use `Buffer`, which browsers do not have. */
function utf8Length(text: string): number {
  return ENCODER.encode(text).length;
}

const FOREIGN = new RegExp(`[^${CHARACTERS} ]`, 'gu');

/**
 * Turns `text` into a name in the model: NFC, truncated to 63 bytes, with underscores in place of invalid characters
 * and of leading, trailing and repeated spaces. Adds the prefix `t_` if the first character cannot begin a name.
 */
export function modelNameFrom(text: string): string {
  const plain = text
    .normalize('NFC')
    .replace(FOREIGN, '_')
    .replace(/^ +| +$| (?= )/g, (blanks) => '_'.repeat(blanks.length))
    .replace(/^_{2,}/, '_');
  return cut(/^[\p{L}_]/u.test(plain) ? plain : `t_${plain}`, LONGEST);
}

/** Appends the suffix `end` to `name`, which is truncated to fit. */
export function withSuffix(name: string, end: string): string {
  return `${cut(name, LONGEST - utf8Length(end))}${end}`;
}

function cut(name: string, bytes: number): string {
  let room = bytes;
  let kept = '';
  for (const character of name) {
    room -= utf8Length(character);
    if (room < 0) break;
    kept += character;
  }
  return kept.replace(/ $/, '_');
}

/** Environment variable with the URL for the governed role. */
export function urlVariable({ urlEnv }: Pick<Connector, 'urlEnv'>): string {
  return urlEnv ?? 'OSL_POSTGRES_URL';
}

/** Environment variable with the URL for the system role, which owns facet stores and reads the catalog. */
export function systemUrlVariable(connector: Pick<Connector, 'urlEnv'>): string {
  return `${urlVariable(connector)}_SYSTEM`;
}

interface TableAt {
  readonly schema: string;
  readonly table: string;
}

/**
 * `schema.table`, as in a manifest. A part that contains a dot or begins with a quote is quoted, as in SQL. Different
 * tables always have different names.
 */
export function tableName({ schema, table }: TableAt): string {
  return `${partText(schema)}.${partText(table)}`;
}

function partText(part: string): string {
  return part.includes('.') || part.startsWith('"') ? `"${part.replaceAll('"', '""')}"` : part;
}

/** Regular expression for one part of a table's name: the schema or the table. */
export const TABLE_PART = '(?:"(?:[^"\\u0000]|""){1,126}"|[^."\\u0000][^.\\u0000]{0,62})';

const QUALIFIED_NAME = new RegExp(`^(${TABLE_PART})\\.(${TABLE_PART})$`, 'u');

/** Parses a name that `tableName` produced. For any other text, the schema is empty and the table is the whole text. */
export function tableNamed(name: string): TableAt {
  const [, schema = '', table = name] = QUALIFIED_NAME.exec(name) ?? [];
  return { schema: plain(schema), table: plain(table) };
}

function plain(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
}
