import { type Sql, sql, sqlJoin, sqlName, sqlNumber, sqlTable, sqlType } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type { Facet } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { htmlText } from './html-text.js';
import { type PdfFault, PdfThread } from './pdf/pdf-thread.js';

/** A row of the facet's source: values in Postgres text format, and the text without markup. */
export interface SourceRow {
  readonly id: string;
  readonly key: string | null;
  readonly text: string;
  /** Metadata values, in the order of `facet.metadata`. */
  readonly metadata: readonly (string | null)[];
}

/** A document that is left out because it has no readable text. */
export interface UnreadableDocument {
  readonly id: string;
  readonly reason: PdfFault | 'too large';
}

export type OnUnreadable = (document: UnreadableDocument) => void;

const MOST_PDF_BYTES = 33_554_432;
const PDF_PAGE = 4;
/** Maximum number of PDFs in a sample: each costs far more to read than a text. */
const SOME_PDFS = 40;

/** PDF reader of the whole process; an idle thread does not keep the process alive. */
const pdfs = new PdfThread();

/**
 * Number of documents in the source.
 *
 * @throws ContentError `documentIds` if an id is NULL or not unique, because paging by id would then lose rows
 */
export async function countDocuments(system: SystemQueries, facet: Facet): Promise<number> {
  const id = sqlName(facet.documentId.physical);
  const [row] = await system.query(
    sql`select pg_catalog.count(*) as n, pg_catalog.count(distinct ${id}) as d from ${sqlTable(facet)}`,
  );
  const [count, distinct] = [Number(row?.['n']), Number(row?.['d'])];
  if (count === distinct) return count;
  throw new ContentError(
    'documentIds',
    `column \`${facet.documentId.name}\` of facet \`${facet.name}\` does not identify its rows`,
    `${count} rows have ${distinct} different ids`,
  );
}

/**
 * Rows ordered by id, in pages of at most `most` rows.
 *
 * @throws ContentError `notInstalled`
 */
export async function* documentPages(
  system: SystemQueries,
  facet: Facet,
  most: number,
  onUnreadable: OnUnreadable = () => undefined,
): AsyncGenerator<readonly SourceRow[]> {
  const size = facet.format === 'pdf' ? Math.min(most, PDF_PAGE) : most;
  let last: string | null = null;
  for (;;) {
    const rows: Record<string, unknown>[] = await system.query(
      pageSql(facet, last !== null),
      last === null ? [size] : [size, last],
    );
    if (rows.length === 0) return;
    last = String(rows.at(-1)?.['d']);
    yield await documentsOf(rows, facet, onUnreadable);
    if (rows.length < size) return;
  }
}

/** A sample of rows, chosen by a hash of their ids. */
export async function someDocuments(
  system: SystemQueries,
  facet: Facet,
  most: number,
): Promise<readonly SourceRow[]> {
  const id = sqlName(facet.documentId.physical);
  const [wanted, size] = facet.format === 'pdf' ? [Math.min(most, SOME_PDFS), PDF_PAGE] : [most, most];
  const documents: SourceRow[] = [];
  for (let from = 0; from < wanted; from += size) {
    const rows = await system.query(
      sql`select ${columnsSql(facet)} from ${sqlTable(facet)}
        order by pg_catalog.md5(${id}::pg_catalog.text), ${id} limit $1::int4 offset $2::int4`,
      [size, from],
    );
    documents.push(...(await documentsOf(rows, facet, () => undefined)));
    if (rows.length < size) break;
  }
  return documents;
}

function pageSql(facet: Facet, after: boolean): Sql {
  const id = sqlName(facet.documentId.physical);
  const where = after ? sql` where ${id} > $2::${sqlType(facet.documentId.type)}` : sql``;
  return sql`select ${columnsSql(facet)} from ${sqlTable(facet)}${where} order by ${id} limit $1::int4`;
}

function columnsSql(facet: Facet): Sql {
  const id = sqlName(facet.documentId.physical);
  const text = (name: string): Sql => sql`${sqlName(name)}::pg_catalog.text`;
  const columns = [
    sql`${id}::pg_catalog.text as d`,
    sql`${text(facet.entityKey.physical)} as k`,
    ...textSql(facet),
    ...facet.metadata.map((m, i) => sql`${text(m.physical)} as ${sqlName(`m${i}`)}`),
  ];
  return sqlJoin(columns);
}

/** Column `t`: the text, or a PDF in base64, which is null if the PDF is too large. Column `n`: the size of the PDF. */
function textSql({ text, format }: Facet): readonly Sql[] {
  const column = sqlName(text.physical);
  if (format !== 'pdf') return [sql`${column}::pg_catalog.text as t`];
  const [size, base64] =
    text.type === 'bytea'
      ? [sql`pg_catalog.octet_length(${column})`, sql`pg_catalog.encode(${column}, 'base64')`]
      : [sql`(pg_catalog.octet_length(${column}) / 4 * 3)`, sql`${column}::pg_catalog.text`];
  return [sql`case when ${size} <= ${sqlNumber(MOST_PDF_BYTES)} then ${base64} end as t`, sql`${size} as n`];
}

async function documentsOf(
  rows: readonly Record<string, unknown>[],
  facet: Facet,
  onUnreadable: OnUnreadable,
): Promise<readonly SourceRow[]> {
  const documents: SourceRow[] = [];
  for (const row of rows) {
    const id = String(row['d']);
    const read = await textOf(row, facet);
    if ('fault' in read) onUnreadable({ id, reason: read.fault });
    else {
      const metadata = facet.metadata.map((_, i) => textOrNull(row[`m${i}`]));
      documents.push({ id, key: textOrNull(row['k']), text: read.text, metadata });
    }
  }
  return documents;
}

type ExtractedText = { readonly text: string } | { readonly fault: UnreadableDocument['reason'] };

function textOf(row: Record<string, unknown>, { format }: Facet): ExtractedText | Promise<ExtractedText> {
  const text = textOrNull(row['t']);
  switch (format) {
    case 'text':
    case 'markdown':
      return { text: text ?? '' };
    case 'html':
      return { text: htmlText(text ?? '') };
    case 'pdf':
      if (text !== null) return pdfs.read(Buffer.from(text, 'base64'));
      return textOrNull(row['n']) === null ? { text: '' } : { fault: 'too large' };
  }
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
