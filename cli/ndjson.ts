import { once } from 'node:events';
import { type AnswerNotes, notesOn } from './answer.js';
import { openQuery, type QueryBody, replyOf } from './client.js';
import { EXIT, Failure } from './exit.js';
import { fieldsOf, note } from './output.js';
import { formatProblem, problemOf } from './problem.js';
import { refusal } from './reply.js';

const NDJSON = 'application/x-ndjson';

/**
 * Requests an answer in NDJSON and copies its rows to standard output. The last line of the server is a trailer, which
 * is reported on standard error.
 *
 * @throws Failure if the query is refused or the stream breaks off
 */
export async function printNdjson({ url, token, body, text, signal }: QueryCall): Promise<AnswerNotes> {
  const response = await openQuery(url, token, body, NDJSON, signal);
  if (!response.ok || response.headers.get('content-type') !== NDJSON)
    throw refusal(await replyOf(url, response), text);
  const last = await rowsPrinted(response, signal);
  const said = last === null ? null : fieldsOf(JSON.parse(last))['trailer'];
  if (typeof said !== 'object' || said === null)
    throw new Failure(EXIT.failed, 'error: the answer broke off');
  const { problem } = fieldsOf(said);
  if (problem !== undefined)
    throw new Failure(EXIT.failed, formatProblem(problemOf(fieldsOf(problem), 200), text));
  const trailer = said as AnswerNotes; // format of the server
  for (const line of notesOn(trailer)) note(line);
  return trailer;
}

/** Prints all lines but the last, which is returned; null if the connection broke. */
async function rowsPrinted(response: Response, signal: AbortSignal | undefined): Promise<string | null> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    // Node's streams can be iterated, but the type of `fetch` does not declare it.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
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

export interface QueryCall {
  readonly url: string;
  readonly token: string;
  readonly body: QueryBody;
  /** As typed: errors may point into it. */
  readonly text: string;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
}
