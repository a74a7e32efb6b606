import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { isNumber } from 'osl-compiler/types';
import { type AnswerBody, type AnswerWishes, openQuery, type QueryBody, replyOf } from './client.js';
import { EXIT, Failure, failure, usage } from './exit.js';
import { fieldsOf, note, visible } from './output.js';
import { formatProblem, problemOf, refusal } from './reply.js';
import { formatCsv, formatFigure, formatTable, NULL_TEXT, rowCount, type TableCell } from './table.js';

/** Media type of Arrow streams. Repeated here, because importing it from the server's file would load the server. */
const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

export const FORMATS = ['table', 'csv', 'json', 'ndjson', 'arrow', 'parquet', 'markdown'] as const;
export type AnswerFormat = (typeof FORMATS)[number];

export function parseAnswer(body: Readonly<Record<string, unknown>>): AnswerBody | null {
  return isAnswer(body) ? body : null;
}

/** Formats an answer as an aligned table, with figures in the formats of their metrics, a row count and the notes. */
export function formatAnswer(answer: AnswerBody, maxWidth?: number): string {
  const columns = answer.columns.map(({ name, type }) => {
    return { name, align: isNumber(type) ? ('right' as const) : ('left' as const) };
  });
  const table = formatTable(columns, displayCells(answer), maxWidth);
  return [table, rowCount(answer.row_count, answer.truncated), ...answerNotes(answer)]
    .filter((text) => text !== '')
    .join('\n');
}

/** Returns the cells for display: figures in the formats of their metrics, everything else unchanged. */
function displayCells({ columns, rows }: AnswerBody): readonly (readonly TableCell[])[] {
  return rows.map((row) =>
    columns.map(({ name, format }) => {
      const cell = cellOf(row[name]);
      return cell === null || format === undefined ? cell : formatFigure(cell, format);
    }),
  );
}

export function formatAnswerCsv(answer: AnswerBody, exact = false): string {
  return formatCsv(
    answer.columns.map(({ name, type }) => ({ name, numeric: isNumber(type) })),
    cellsOf(answer),
    exact,
  );
}

export type AnswerNotes = Pick<
  AnswerBody,
  'redacted_columns' | 'redacted_conditions' | 'truncated' | 'receipt'
>;

export function answerNotes(answer: AnswerNotes): readonly string[] {
  const notes: string[] = [];
  if (answer.redacted_columns.length > 0) notes.push(`masked: ${answer.redacted_columns.join(', ')}`);
  const conditions = answer.redacted_conditions ?? [];
  if (conditions.length > 0)
    notes.push(`warning: masked column used in a filter, join, group or sort: ${conditions.join(', ')}`);
  if (answer.truncated)
    notes.push('truncated: rows beyond the limit of the server, or of `per_hop`, are missing');
  return notes;
}

function cellsOf(answer: AnswerBody): readonly (readonly TableCell[])[] {
  return answer.rows.map((row) => answer.columns.map(({ name }) => cellOf(row[name])));
}

export function cellOf(value: unknown): TableCell {
  if (value === null || value === undefined) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function isAnswer(body: object): body is AnswerBody {
  const fields: Readonly<Record<string, unknown>> = { ...body };
  return (
    Array.isArray(fields['columns']) &&
    Array.isArray(fields['rows']) &&
    Array.isArray(fields['redacted_columns']) &&
    typeof fields['row_count'] === 'number'
  );
}

/**
 * Formats an answer as a GitHub Markdown table, with figures in the formats of their metrics, followed by the notes.
 * Cells are literal text: they cannot create links, images, tags or emphasis.
 */
export function formatMarkdown(answer: AnswerBody): string {
  const head = answer.columns.map(({ name }) => literal(name));
  const rule = answer.columns.map(({ type }) => (isNumber(type) ? '---:' : '---'));
  const rows = displayCells(answer).map((cells) => cells.map(cellText));
  const table = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [table.join('\n'), ...answerNotes(answer).map(literal)].join('\n\n');
}

function cellText(cell: TableCell): string {
  return cell === null ? NULL_TEXT : literal(cell);
}

/** Escapes characters that would start a link, an image, a tag, emphasis, code or a formula, or end the cell. */
function literal(text: string): string {
  return visible(text)
    .replace(/[\\`*_[\]|~!$]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

/**
 * Requests an answer in Arrow and copies the stream to standard output as it arrives. The trailer in the metadata is
 * checked along the way, because some readers mistake a broken stream for a complete one.
 *
 * @throws Failure if the query is refused, the stream breaks off, or standard output is a terminal
 */
export async function printArrow(asking: QueryCall): Promise<AnswerNotes> {
  refuseTerminal('arrow');
  const response = await openArrow(asking);
  const answer = await readBatches(copiedToStdout(response), asking, () => undefined);
  for (const line of answerNotes(answer)) note(line);
  return answer;
}

/** @throws Failure if standard output is a terminal, which should not receive binary data */
export function refuseTerminal(format: string): void {
  if (process.stdout.isTTY) throw usage(`--format ${format} writes bytes: send it to a file or a pipe`);
}

/** Returns the response with its body still unread. @throws Failure if the query is refused */
export async function openArrow({ url, token, body, text, ...wishes }: QueryCall): Promise<Response> {
  const response = await openQuery(url, token, body, ARROW_STREAM, wishes);
  if (response.ok && response.headers.get('content-type') === ARROW_STREAM) return response;
  throw refusal(await replyOf(url, response), text);
}

/**
 * Passes each batch of a stream to `take`, one at a time, and returns the trailer.
 *
 * @throws Failure if the stream reports an error or breaks off; also rethrows errors of `take`
 */
export async function readBatches(
  stream: AsyncIterable<Uint8Array>,
  { text }: Pick<QueryCall, 'text'>,
  take: (batch: RecordBatch) => void | Promise<void>,
): Promise<AnswerNotes> {
  const said = await readMetadata(stream, take);
  const problem = parsed(said.get('osl.problem'));
  if (problem !== null) throw new Failure(EXIT.failed, formatProblem(problemOf(problem, 200), text));
  const trailer = parsed(said.get('osl.trailer'));
  if (trailer === null) throw failure('the answer broke off');
  return trailer as unknown as AnswerNotes; // the server sends `AnswerNotes`
}

/** Passes batches to `take` and returns the metadata of the last batch. If the stream broke off, ignores a trailer. */
async function readMetadata(
  stream: AsyncIterable<Uint8Array>,
  take: (batch: RecordBatch) => void | Promise<void>,
): Promise<ReadonlyMap<string, string>> {
  const { RecordBatchReader } = await import('apache-arrow');
  let last: ReadonlyMap<string, string> = new Map();
  let taking = false;
  try {
    for await (const batch of await RecordBatchReader.from(stream)) {
      last = batch.metadata;
      taking = true;
      await take(batch);
      taking = false;
    }
  } catch (error) {
    if (taking) throw error;
    // The stream broke off. If the server reported an error, the last batch contains it; a trailer does not count.
    return last.has('osl.trailer') ? new Map() : last;
  }
  return last;
}

async function* copiedToStdout(response: Response): AsyncGenerator<Uint8Array> {
  for await (const chunk of bodyBytes(response)) {
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
    yield chunk;
  }
}

/** Casts the body, because Node's streams are iterable but the type of `fetch` does not say so. */
export function bodyBytes({ body }: Response): AsyncIterable<Uint8Array> {
  return (body ?? noBytes()) as AsyncIterable<Uint8Array>;
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

function parsed(json: string | undefined): Readonly<Record<string, unknown>> | null {
  return json === undefined ? null : JSON.parse(json);
}

const NDJSON = 'application/x-ndjson';

/**
 * Requests an answer in NDJSON and copies its rows to standard output. The server's last line is a trailer, whose notes
 * are printed on standard error.
 *
 * @throws Failure if the query is refused, the trailer reports an error, or the stream breaks off
 */
export async function printNdjson({ url, token, body, text, ...wishes }: QueryCall): Promise<AnswerNotes> {
  const response = await openQuery(url, token, body, NDJSON, wishes);
  if (!response.ok || response.headers.get('content-type') !== NDJSON)
    throw refusal(await replyOf(url, response), text);
  const last = await printRows(response, wishes.signal);
  const said = last === null ? null : fieldsOf(JSON.parse(last))['trailer'];
  if (typeof said !== 'object' || said === null) throw failure('the answer broke off');
  const { problem } = fieldsOf(said);
  if (problem !== undefined)
    throw new Failure(EXIT.failed, formatProblem(problemOf(fieldsOf(problem), 200), text));
  const trailer = said as AnswerNotes; // the server sends `AnswerNotes`
  for (const line of answerNotes(trailer)) note(line);
  return trailer;
}

/** Prints all lines except the last, and returns the last line; null if the response broke off. */
async function printRows(response: Response, signal: AbortSignal | undefined): Promise<string | null> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of bodyBytes(response)) {
      const bytes = Buffer.concat([rest, chunk]);
      const end = bytes.lastIndexOf(LINE_END, -2) + 1;
      if (end > 0 && !process.stdout.write(bytes.subarray(0, end))) await once(process.stdout, 'drain');
      rest = bytes.subarray(end);
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    return null;
  }
  return rest.at(-1) === LINE_END ? rest.toString('utf8') : null;
}

const LINE_END = 0x0a;

export interface QueryCall extends AnswerWishes {
  readonly url: string;
  readonly token: string;
  readonly body: QueryBody;
  /** The query as typed; errors point to positions in it. */
  readonly text: string;
}
