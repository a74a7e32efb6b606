import { InternalError } from '../errors/errors.js';

/** Quotes `name` as an SQL identifier. @throws InternalError if it contains NUL */
export function quoteIdentifier(name: string): string {
  if (name.includes('\0')) throw new InternalError('an identifier holds a NUL');
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Writes `name` as an SQL identifier, quoted only if needed. Use it for all SQL shown to people: examples, hints,
 * completions.
 *
 * @throws InternalError if it contains NUL
 */
export function identifier(name: string): string {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : quoteIdentifier(name);
}

/**
 * Quotes `text` as an SQL literal. Requires `standard_conforming_strings`, under which a backslash is an ordinary
 * character.
 *
 * @throws InternalError if it contains NUL
 */
export function quoteLiteral(text: string): string {
  if (text.includes('\0')) throw new InternalError('a literal holds a NUL');
  return `'${text.replaceAll("'", "''")}'`;
}

/** Formats an array as Postgres text, quoting all elements. Null becomes NULL. */
export function arrayText(items: readonly (string | null)[]): string {
  const quoted = items.map((i) => (i === null ? 'NULL' : `"${escapeElement(i)}"`));
  return `{${quoted.join(',')}}`;
}

/** Escapes quotes and backslashes. Searches first, because few of up to 100,000 list elements need it. */
function escapeElement(text: string): string {
  return text.includes('"') || text.includes('\\') ? text.replace(/["\\]/g, '\\$&') : text;
}

/** Parses a one-dimensional array in Postgres' text format. NULLs are omitted. */
export function arrayElements(text: string): readonly string[] {
  const items: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|((?:[^,{}"\\]|\\.)+)/gs;
  for (const [, quoted, bare] of text.slice(1, -1).matchAll(pattern)) {
    const word = quoted ?? bare?.trim() ?? '';
    const isLeftOut = quoted === undefined && (word === '' || word.toUpperCase() === 'NULL');
    if (!isLeftOut) items.push(word.replace(/\\(.)/gs, '$1'));
  }
  return items;
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** Keywords that `quote_ident` of Postgres quotes: all except the unreserved ones. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast ' +
    'char character check coalesce collate collation column concurrently constraint create cross current_catalog ' +
    'current_date current_role current_schema current_time current_timestamp current_user dec decimal default ' +
    'deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant ' +
    'greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join ' +
    'json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize ' +
    'json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national natural ' +
    'nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay placing ' +
    'position precision primary real references returning right row select session_user setof similar smallint some ' +
    'substring symmetric system_user table tablesample then time timestamp to trailing treat trim true union unique ' +
    'user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists ' +
    'xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable'
  ).split(' '),
);

/** Returns the quoted, schema-qualified name of a table. */
export function tableSql({ schema, table }: { readonly schema: string; readonly table: string }): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`;
}
