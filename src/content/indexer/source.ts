import { type Sql, sql, sqlJoin, sqlName, sqlNumber, sqlTable, sqlType } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type { Facet } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { type PdfFault, PdfThread } from './pdf/pdf-thread.js';

/** A row of the facet's source: values in Postgres text format, and the text (extracted from HTML or a PDF). */
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

/** PDF reader that the whole process shares. Its thread, when idle, does not keep the process alive. */
const pdfs = new PdfThread();

/**
 * Counts the documents in the source.
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
 * Yields the rows of the source ordered by id, in pages of at most `most` rows.
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

/** Reads a sample of the rows: the first ones in the order of a hash of their ids. */
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

/** SQL for column `t`, the text or a PDF in base64 (null if too large), and for PDFs column `n`, the size in bytes. */
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

/**
 * Extracts the text of an HTML document as a reader sees it: without tags, comments, scripts and styles, with headings
 * as Markdown and entities as characters. Runs before redaction, so that values split by markup are found. Takes time
 * linear in the length of the document.
 */
export function htmlText(html: string): string {
  const parts: string[] = [];
  const last = html.lastIndexOf('>');
  let at = 0;
  for (let open = html.indexOf('<'); open >= 0 && open < last; open = html.indexOf('<', at)) {
    if (!TAG_BEGINS.test(html.slice(open + 1, open + 3))) {
      parts.push(html.slice(at, open + 1));
      at = open + 1;
      continue;
    }
    parts.push(html.slice(at, open));
    const tag = tagAt(html, open);
    parts.push(tag.replacement);
    at = tag.end;
  }
  parts.push(html.slice(at));
  return collapseSpace(decodeEntities(parts.join('')));
}

const TAG_BEGINS = /^(?:[a-z!?]|\/[a-z])/i;
const NAME = /^\/?[a-z][a-z0-9]*/i;
const UNREAD: ReadonlySet<string> = new Set(['script', 'style', 'template']);
const BLOCKS: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote dd details div dl dt fieldset figcaption figure footer form header hr main nav ' +
    'ol p pre section summary table tbody tfoot thead title tr ul'
  ).split(' '),
);
const CELLS: ReadonlySet<string> = new Set(['td', 'th']);

interface Tag {
  readonly replacement: string;
  readonly end: number;
}

/** Parses the tag or comment that begins at `open`. The caller has checked that a `>` follows. */
function tagAt(html: string, open: number): Tag {
  if (html.startsWith('<!--', open)) return { replacement: '', end: endAfter(html, '-->', open + 4) };
  const end = endAfter(html, '>', open);
  const name = NAME.exec(html.slice(open + 1, Math.min(end, open + 32)))?.[0].toLowerCase() ?? '';
  if (UNREAD.has(name)) return { replacement: '', end: endOfElement(html, name, end) };
  return { replacement: replacementFor(name), end };
}

/** Returns the index after `mark`, or the end if it is missing: as in browsers, an unclosed tag extends to the end. */
function endAfter(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from);
  return at < 0 ? html.length : at + mark.length;
}

function endOfElement(html: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi');
  closing.lastIndex = from;
  const found = closing.exec(html);
  return found === null ? html.length : endAfter(html, '>', found.index);
}

function replacementFor(name: string): string {
  const plain = name.replace('/', '');
  const heading = /^h([1-6])$/.exec(plain);
  if (heading !== null) return name === plain ? `\n\n${'#'.repeat(Number(heading[1]))} ` : '\n\n';
  if (plain === 'br') return '\n';
  if (plain === 'li') return name === plain ? '\n- ' : '\n';
  if (CELLS.has(plain)) return ' ';
  return BLOCKS.has(plain) ? '\n\n' : '';
}

/** Characters of entities, by name; `MARKS` has those of letters with a mark. */
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...(
    'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute ' +
    'micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest'
  )
    .split(' ')
    .map((name, i): [string, string] => [name, String.fromCharCode(0xa0 + i)]),
  ...Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", euro: '€', trade: '™', bull: '•' }),
  ...Object.entries({ ndash: '–', mdash: '—', hellip: '…', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”' }),
  ...Object.entries({
    times: '×',
    divide: '÷',
    sdot: '⋅',
    zwnj: '\u200c',
    zwj: '\u200d',
    szlig: 'ß',
    inodot: 'ı',
  }),
  ...Object.entries({
    AElig: 'Æ',
    aelig: 'æ',
    OElig: 'Œ',
    oelig: 'œ',
    Oslash: 'Ø',
    oslash: 'ø',
    ENG: 'Ŋ',
    eng: 'ŋ',
  }),
  ...Object.entries({
    ETH: 'Ð',
    eth: 'ð',
    THORN: 'Þ',
    thorn: 'þ',
    Dstrok: 'Đ',
    dstrok: 'đ',
    Hstrok: 'Ħ',
    hstrok: 'ħ',
  }),
  ...Object.entries({
    Lstrok: 'Ł',
    lstrok: 'ł',
    Tstrok: 'Ŧ',
    tstrok: 'ŧ',
    Lmidot: 'Ŀ',
    lmidot: 'ŀ',
    napos: 'ŉ',
  }),
]);

/** Combining marks by the end of an entity's name: `eacute` is an e with an acute. */
const MARKS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    grave: '\u0300',
    acute: '\u0301',
    circ: '\u0302',
    tilde: '\u0303',
    macr: '\u0304',
    breve: '\u0306',
  })
    .concat(
      Object.entries({ dot: '\u0307', uml: '\u0308', ring: '\u030a', dblac: '\u030b', caron: '\u030c' }),
    )
    .concat(Object.entries({ cedil: '\u0327', ogon: '\u0328' })),
);

function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#0*(\d{1,7})|#x0*([0-9a-f]{1,6})|([a-z][a-z0-9]{1,7}));/gi,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES.get(name) ?? letterWithMark(name) ?? whole;
      const point = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      const isCharacter = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
      return isCharacter ? String.fromCodePoint(point) : '\ufffd';
    },
  );
}

/** Returns the letter of an entity such as `eacute`; null if there is no such letter. */
function letterWithMark(name: string): string | null {
  const letter = `${name.charAt(0)}${MARKS.get(name.slice(1)) ?? ''}`.normalize('NFC');
  return MARKS.has(name.slice(1)) && letter.length === 1 ? letter : null;
}

/** Reduces white space to one space between words and one empty line between blocks. */
function collapseSpace(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/[ \t\r\f\u00a0]+/g, ' ').trim());
  const kept: string[] = [];
  for (const line of lines) if (line !== '' || kept.at(-1) !== '') kept.push(line);
  return kept.join('\n').trim();
}
