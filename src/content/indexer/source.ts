import { quoteIdentifier } from 'osl-compiler';
import { tableSql } from '../../base/table-sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type { Facet } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { htmlText } from './html-text.js';

/** A row of the facet's source; every value as Postgres writes it, the text without the markup of its format. */
export interface SourceDocument {
  readonly id: string;
  readonly key: string | null;
  readonly text: string;
  /** In the order of `facet.metadata`. */
  readonly metadata: readonly (string | null)[];
}

/**
 * How many documents the source has.
 *
 * @throws ContentError `documentIds` where an id is NULL or stands twice: paging by id would lose rows
 */
export async function countDocuments(system: SystemQueries, facet: Facet): Promise<number> {
  const id = quoteIdentifier(facet.documentId.physical);
  const [row] = await system.query(
    `select pg_catalog.count(*) as n, pg_catalog.count(distinct ${id}) as d from ${tableSql(facet)}`,
  );
  const [count, distinct] = [Number(row?.['n']), Number(row?.['d'])];
  if (count === distinct) return count;
  throw new ContentError(
    'documentIds',
    `column \`${facet.documentId.name}\` of facet \`${facet.name}\` does not identify its rows`,
    `${count} rows have ${distinct} different ids`,
  );
}

/** The rows in the order of their ids, `size` at a time. */
export async function* documentPages(
  system: SystemQueries,
  facet: Facet,
  size: number,
): AsyncGenerator<readonly SourceDocument[]> {
  let last: string | null = null;
  for (;;) {
    const rows: Record<string, unknown>[] = await system.query(
      pageSql(facet, last !== null),
      last === null ? [size] : [size, last],
    );
    if (rows.length === 0) return;
    const page = rows.map((row) => documentOf(row, facet));
    yield page;
    last = page.at(-1)?.id ?? null;
    if (rows.length < size) return;
  }
}

/** Some rows, chosen by a hash of their ids. */
export async function someDocuments(
  system: SystemQueries,
  facet: Facet,
  most: number,
): Promise<readonly SourceDocument[]> {
  const id = quoteIdentifier(facet.documentId.physical);
  const rows = await system.query(
    `select ${columnsSql(facet)} from ${tableSql(facet)}
      order by pg_catalog.md5(${id}::pg_catalog.text), ${id} limit $1::int4`,
    [most],
  );
  return rows.map((row) => documentOf(row, facet));
}

function pageSql(facet: Facet, after: boolean): string {
  const id = quoteIdentifier(facet.documentId.physical);
  const where = after ? ` where ${id} > $2::${facet.documentId.type}` : '';
  return `select ${columnsSql(facet)} from ${tableSql(facet)}${where} order by ${id} limit $1::int4`;
}

function columnsSql(facet: Facet): string {
  const id = quoteIdentifier(facet.documentId.physical);
  const text = (name: string): string => `${quoteIdentifier(name)}::pg_catalog.text`;
  const columns = [
    `${id}::pg_catalog.text as d`,
    `${text(facet.entityKey.physical)} as k`,
    `${text(facet.text.physical)} as t`,
    ...facet.metadata.map((m, i) => `${text(m.physical)} as m${i}`),
  ];
  return columns.join(', ');
}

function documentOf(row: Record<string, unknown>, { metadata, format }: Facet): SourceDocument {
  const text = textOrNull(row['t']) ?? '';
  return {
    id: String(row['d']),
    key: textOrNull(row['k']),
    text: format === 'html' ? htmlText(text) : text,
    metadata: Array.from({ length: metadata.length }, (_, i) => textOrNull(row[`m${i}`])),
  };
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
