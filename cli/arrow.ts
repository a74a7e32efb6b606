import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { ARROW_STREAM } from '../src/surfaces/rest/answer-stream.js';
import { type AnswerNotes, notesOn } from './answer.js';
import { openQuery, replyOf } from './client.js';
import { EXIT, Failure, usage } from './exit.js';
import type { QueryCall } from './ndjson.js';
import { note } from './output.js';
import { formatProblem, problemOf } from './problem.js';
import { refusal } from './reply.js';

/**
 * Requests an answer in Arrow and copies the stream to standard output as it arrives. The trailer in the metadata is
 * checked on the way, because some readers take a broken stream for complete.
 *
 * @throws Failure if the query is refused, the stream breaks off, or standard output is a terminal
 */
export async function printArrow(asking: QueryCall): Promise<AnswerNotes> {
  refuseTerminal('arrow');
  const response = await openArrow(asking);
  const answer = await batchesOf(passedOn(response), asking, () => undefined);
  for (const line of notesOn(answer)) note(line);
  return answer;
}

/** @throws Failure if standard output is a terminal, which must not get binary data */
export function refuseTerminal(format: string): void {
  if (process.stdout.isTTY) throw usage(`--format ${format} writes bytes: send it to a file or a pipe`);
}

/** The response with its body still unread. @throws Failure if the query is refused */
export async function openArrow({ url, token, body, text, signal }: QueryCall): Promise<Response> {
  const response = await openQuery(url, token, body, ARROW_STREAM, signal);
  if (response.ok && response.headers.get('content-type') === ARROW_STREAM) return response;
  throw refusal(await replyOf(url, response), text);
}

/**
 * Passes each batch of a stream to `take`, one at a time, and returns the trailer.
 *
 * @throws Failure if the stream reports an error or breaks off; errors of `take`
 */
export async function batchesOf(
  stream: AsyncIterable<Uint8Array>,
  { text }: Pick<QueryCall, 'text'>,
  take: (batch: RecordBatch) => void | Promise<void>,
): Promise<AnswerNotes> {
  const said = await lastWords(stream, take);
  const problem = parsed(said.get('osl.problem'));
  if (problem !== null) throw new Failure(EXIT.failed, formatProblem(problemOf(problem, 200), text));
  const trailer = parsed(said.get('osl.trailer'));
  if (trailer === null) throw new Failure(EXIT.failed, 'error: the answer broke off');
  return trailer as unknown as AnswerNotes; // format of the server
}

/** Metadata of the last batch received, even if the stream broke off. */
async function lastWords(
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
    // The connection broke: if an error caused it, it is in the last batch.
    return last.has('osl.trailer') ? new Map() : last;
  }
  return last;
}

async function* passedOn(response: Response): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytesOf(response)) {
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
    yield chunk;
  }
}

/** Node's streams can be iterated, but the type of `fetch` does not declare it. */
export function bytesOf({ body }: Response): AsyncIterable<Uint8Array> {
  return (body ?? noBytes()) as AsyncIterable<Uint8Array>;
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

function parsed(json: string | undefined): Readonly<Record<string, unknown>> | null {
  return json === undefined ? null : JSON.parse(json);
}
