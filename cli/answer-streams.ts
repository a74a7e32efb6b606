import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { type AnswerNotes, answerNotes } from './answer.js';
import { type AnswerWishes, openQuery, type QueryBody, replyOf } from './client.js';
import { EXIT, Failure, usage } from './exit.js';
import { fieldsOf, note } from './output.js';
import { formatProblem, problemOf, refusal } from './reply.js';

/** Media type of Arrow's stream format. */
const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

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
  if (trailer === null) throw new Failure(EXIT.failed, 'error: the answer broke off');
  return trailer as unknown as AnswerNotes; // the server's own format
}

/** Metadata of the last batch received, even if the stream broke off. */
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
    // The connection broke. If an error was the reason, the last batch contains it.
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
 * Requests an answer in NDJSON and copies its rows to standard output. The server's last line is a trailer, which is
 * reported on standard error.
 *
 * @throws Failure if the query is refused or the stream breaks off
 */
export async function printNdjson({ url, token, body, text, ...wishes }: QueryCall): Promise<AnswerNotes> {
  const response = await openQuery(url, token, body, NDJSON, wishes);
  if (!response.ok || response.headers.get('content-type') !== NDJSON)
    throw refusal(await replyOf(url, response), text);
  const last = await printRows(response, wishes.signal);
  const said = last === null ? null : fieldsOf(JSON.parse(last))['trailer'];
  if (typeof said !== 'object' || said === null)
    throw new Failure(EXIT.failed, 'error: the answer broke off');
  const { problem } = fieldsOf(said);
  if (problem !== undefined)
    throw new Failure(EXIT.failed, formatProblem(problemOf(fieldsOf(problem), 200), text));
  const trailer = said as AnswerNotes; // the server's own format
  for (const line of answerNotes(trailer)) note(line);
  return trailer;
}

/** Prints all lines except the last and returns that one; null if the connection broke. */
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
  /** The query as typed, because errors may point into it. */
  readonly text: string;
}
