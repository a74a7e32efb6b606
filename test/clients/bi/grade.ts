import { parseSync } from 'libpg-query';
import pg from 'pg';

export type Grade = 'equal' | 'refused' | 'wrong';

/** Returns the outcome of a statement, as text that can be compared between servers. */
export type Outcome =
  | { readonly kind: 'rows'; readonly fields: string; readonly rows: readonly string[] }
  | { readonly kind: 'error'; readonly sqlstate: string; readonly message: string };

export async function outcomeOf(
  client: pg.Client,
  text: string,
  values: readonly (string | null)[] | null,
  compared: 'exact' | 'of a server' = 'of a server',
): Promise<Outcome> {
  try {
    const { fields, rows, command } = await client.query<unknown[]>({
      text,
      rowMode: 'array',
      types: { getTypeParser: () => (value: unknown) => value },
      ...(values === null ? {} : { values: [...values], queryMode: 'extended' }),
    });
    // Of a server's own tables lengths are of its version.
    const typeOf = (f: pg.FieldDef): readonly number[] =>
      compared === 'exact' ? [f.dataTypeID, f.dataTypeModifier] : [f.dataTypeID];
    const shape = JSON.stringify(fields.length > 0 ? fields.map((f) => [f.name, ...typeOf(f)]) : command);
    const shown = compared === 'exact' ? (json: string) => json : comparable;
    const cells = (row: readonly unknown[]): readonly unknown[] =>
      row.map((cell, i) => (fields[i]?.dataTypeID === JSON_OID ? withoutBlanks(cell) : cell));
    return { kind: 'rows', fields: shown(shape), rows: rows.map((r) => shown(JSON.stringify(cells(r)))) };
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { kind: 'error', sqlstate: error.code ?? '', message: error.message };
  }
}

const JSON_OID = 114;

/** Blanks between the tokens of a json value, which is text, say nothing. */
function withoutBlanks(cell: unknown): unknown {
  return typeof cell === 'string' ? cell.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1') : cell;
}

/** OIDs that a server gives out itself are all alike, also at the end of a name, and a superuser or database is called `osl`. */
function comparable(json: string): string {
  return json
    .replace(/\b(postgres|osl_test_[0-9a-f]+)\b/g, 'osl')
    .replace(/^\["\d+","osl"/, '["#","osl"')
    .replace(/(?<=_)\d{5,}(?=")/g, '#')
    .replace(/(?<![\w.])\d{5,}(?![\w.])/g, (n) => (Number(n) >= 10_000 ? '#' : n));
}

/** Rows count in their order only where the statement says one. An error of both is equal by its SQLSTATE. */
export function grade(sql: string, ours: Outcome, theirs: Outcome): Grade {
  if (ours.kind === 'error') {
    if (theirs.kind === 'rows') return 'refused';
    return ours.sqlstate === theirs.sqlstate ? 'equal' : 'refused';
  }
  if (theirs.kind === 'error' || ours.fields !== theirs.fields) return 'wrong';
  const ordered = isOrdered(sql);
  const lines = (rows: readonly string[]): string => (ordered ? [...rows] : [...rows].sort()).join('\n');
  return lines(ours.rows) === lines(theirs.rows) ? 'equal' : 'wrong';
}

/** asyncpg's types in order of their depth, of which several have the same. */
const TIES = /ORDER BY\s+depth DESC\s*$/;

function isOrdered(sql: string): boolean {
  if (TIES.test(sql)) return false;
  const node = parseSync(sql.replace(/<<\w+ [^>]+>>/g, '1')).stmts?.[0]?.stmt;
  return node !== undefined && 'SelectStmt' in node && (node.SelectStmt.sortClause?.length ?? 0) > 0;
}

/** `$1 …` written out, as a client in simple mode would. */
export function inline(sql: string, values: readonly (string | null)[]): string {
  return sql.replace(/\$(\d+)/g, (whole, n: string) => {
    const value = values[Number(n) - 1];
    if (value === undefined) return whole;
    return value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`;
  });
}

/** Returns the rows that only one of two answers has. */
export function difference(ours: Outcome, theirs: Outcome): Readonly<Record<'ours' | 'theirs', unknown>> {
  if (ours.kind === 'error' || theirs.kind === 'error') return { ours, theirs };
  const only = (a: readonly string[], b: readonly string[]): readonly string[] => {
    const known = new Set(b);
    return a.filter((row) => !known.has(row)).slice(0, 20);
  };
  const [a, b] = [
    [ours.fields, ...ours.rows],
    [theirs.fields, ...theirs.rows],
  ];
  return { ours: only(a, b), theirs: only(b, a) };
}
