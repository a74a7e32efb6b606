import { once } from 'node:events';
import { type AnswerNotes, notesOn } from './answer.js';
import { openQuery, type QueryBody, replyOf } from './client.js';
import { EXIT, Failure } from './exit.js';
import { fieldsOf, note } from './output.js';
import { formatProblem, problemOf } from './problem.js';
import { refusal } from './reply.js';

const NDJSON = 'application/x-ndjson';

/**
 * Asks for an answer in NDJSON, and writes its rows to standard output as they come, a line each. The server's last line,
 * which is no row but says how it went, is told of on standard error.
 *
 * @throws Failure where it is refused or breaks off
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
  const trailer = said as AnswerNotes; // as the server writes it
  for (const line of notesOn(trailer)) note(line);
  return trailer;
}

/** Prints every line but the last, which it gives: null where the connection broke. */
async function rowsPrinted(response: Response, signal: AbortSignal | undefined): Promise<string | null> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    // Node's streams can be iterated; the type of `fetch` does not say so.
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

/** One question on its way. */
export interface QueryCall {
  readonly url: string;
  readonly token: string;
  readonly body: QueryBody;
  /** As it was typed: a refusal may point into it. */
  readonly text: string;
  /** Ends it before its answer. */
  readonly signal?: AbortSignal;
}
