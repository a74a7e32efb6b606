import { once } from 'node:events';
import { ARROW_STREAM } from '../../surfaces/rest/layout.js';
import { type AnswerNotes, notesOn } from './answer.js';
import { openQuery, type QueryBody, replyOf } from './client.js';
import { EXIT, Failure, usage } from './exit.js';
import { note } from './output.js';
import { formatProblem, problemOf } from './problem.js';
import { refusal } from './reply.js';

/**
 * Asks for an answer in Arrow, and writes the stream to standard output as it comes. What it says of itself is read on
 * the way, since a stream that broke off looks whole to some readers. Gives what there is to know of the rows.
 *
 * @throws Failure where it is refused, breaks off, or would be written to a terminal
 */
export async function printArrow(
  url: string,
  token: string,
  body: QueryBody,
  text: string,
): Promise<AnswerNotes> {
  if (process.stdout.isTTY) throw usage('--format arrow writes bytes: send it to a file or a pipe');
  const response = await openQuery(url, token, body, ARROW_STREAM);
  if (!response.ok || response.headers.get('content-type') !== ARROW_STREAM) {
    throw refusal(await replyOf(url, response), text);
  }
  const said = await lastWords(response);
  const problem = parsed(said.get('osl.problem'));
  if (problem !== null) throw new Failure(EXIT.failed, formatProblem(problemOf(problem, 200), text));
  const trailer = parsed(said.get('osl.trailer'));
  if (trailer === null) throw new Failure(EXIT.failed, 'error: the answer broke off');
  const answer = trailer as unknown as AnswerNotes; // as the server writes it
  for (const line of notesOn(answer)) note(line);
  return answer;
}

/** The metadata of the last batch that came, whether the stream ended well or not. */
async function lastWords(response: Response): Promise<ReadonlyMap<string, string>> {
  const { RecordBatchReader } = await import('apache-arrow');
  let last: ReadonlyMap<string, string> = new Map();
  try {
    for await (const batch of await RecordBatchReader.from(passedOn(response))) last = batch.metadata;
  } catch {
    // The connection broke: what came last says why, or nothing does.
    return last.has('osl.trailer') ? new Map() : last;
  }
  return last;
}

async function* passedOn(response: Response): AsyncGenerator<Uint8Array> {
  // Node's streams can be iterated; the type of `fetch` does not say so.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
    yield chunk;
  }
}

function parsed(json: string | undefined): Readonly<Record<string, unknown>> | null {
  return json === undefined ? null : JSON.parse(json);
}
