import { once } from 'node:events';
import type { RecordBatch } from 'apache-arrow';
import { ARROW_STREAM } from '../src/surfaces/rest/encoding.js';
import { type AnswerNotes, notesOn } from './answer.js';
import { openQuery, replyOf } from './client.js';
import { EXIT, Failure, usage } from './exit.js';
import type { QueryCall } from './ndjson.js';
import { note } from './output.js';
import { formatProblem, problemOf } from './problem.js';
import { refusal } from './reply.js';

/**
 * Asks for an answer in Arrow, and writes the stream to standard output as it comes. What it says of itself is read on
 * the way, since a stream that broke off looks whole to some readers. Gives what there is to know of the rows.
 *
 * @throws Failure where it is refused, breaks off, or would be written to a terminal
 */
export async function printArrow(asking: QueryCall): Promise<AnswerNotes> {
  refuseTerminal('arrow');
  const response = await openArrow(asking);
  const answer = await batchesOf(passedOn(response), asking, () => undefined);
  for (const line of notesOn(answer)) note(line);
  return answer;
}

/** @throws Failure where standard output is a terminal, on which bytes would draw */
export function refuseTerminal(format: string): void {
  if (process.stdout.isTTY) throw usage(`--format ${format} writes bytes: send it to a file or a pipe`);
}

/** The answer in Arrow as it begins. @throws Failure where it is refused */
export async function openArrow({ url, token, body, text, signal }: QueryCall): Promise<Response> {
  const response = await openQuery(url, token, body, ARROW_STREAM, signal);
  if (response.ok && response.headers.get('content-type') === ARROW_STREAM) return response;
  throw refusal(await replyOf(url, response), text);
}

/**
 * Gives each batch of a stream to `take`, one at a time, and in the end what the server said of the rows.
 *
 * @throws Failure where it says that it failed, or breaks off; what `take` throws
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
  return trailer as unknown as AnswerNotes; // as the server writes it
}

/** The metadata of the last batch that came, whether the stream ended well or not. */
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
    // The connection broke: what came last says why, or nothing does.
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

/** Node's streams can be iterated; the type of `fetch` does not say so. */
export function bytesOf({ body }: Response): AsyncIterable<Uint8Array> {
  return (body ?? noBytes()) as AsyncIterable<Uint8Array>;
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

function parsed(json: string | undefined): Readonly<Record<string, unknown>> | null {
  return json === undefined ? null : JSON.parse(json);
}
