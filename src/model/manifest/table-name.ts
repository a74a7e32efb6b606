export interface TableAt {
  readonly schema: string;
  readonly table: string;
}

/**
 * `schema.table`, as in a manifest: a part with a dot or a leading quote is quoted, as in SQL. Two tables never have
 * one name.
 */
export function tableName({ schema, table }: TableAt): string {
  return `${partText(schema)}.${partText(table)}`;
}

function partText(part: string): string {
  return part.includes('.') || part.startsWith('"') ? `"${part.replaceAll('"', '""')}"` : part;
}

/** Regular expression of a part of such a name. */
export const TABLE_PART = '(?:"(?:[^"\\u0000]|""){1,126}"|[^."\\u0000][^.\\u0000]{0,62})';

const NAME = new RegExp(`^(${TABLE_PART})\\.(${TABLE_PART})$`, 'u');

/** Parses a name that `tableName` wrote; any other text has no schema. */
export function tableNamed(name: string): TableAt {
  const [, schema = '', table = name] = NAME.exec(name) ?? [];
  return { schema: plain(schema), table: plain(table) };
}

function plain(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
}
