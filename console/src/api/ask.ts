import type { Answer, Plan, Problem } from '../../../clients/typescript/types.js';
import type { JsonValue } from '../parts/rows/row-store.js';
import type { SignedInCaller } from './caller.js';
import { ProblemError, postJson, send, UnreachedError } from './http.js';

export type { Answer, Plan };
/** What an answer says beside its rows. */
export type AnswerTrailer = Omit<Answer, 'rows'>;
export type AnswerColumn = Answer['columns'][number];

/** A question: OSL-SQL, raw SQL, or a metrics body. */
export type QuestionBody = Readonly<Record<string, unknown>>;

type AnswerRow = Readonly<Record<string, JsonValue>>;

export interface AskOptions {
  readonly signal: AbortSignal;
  /** Takes each row as it comes, with how many characters it had; false: no more are wanted, and the question is cancelled. */
  readonly row: (row: AnswerRow, characters: number) => boolean;
}

/** Work that goes on for so long lets the page do something else. */
const TURN_MS = 24;

/**
 * Asks, and takes the rows as they come. Aborting `signal` closes the connection, which ends the statement in the
 * database. Null where `row` wanted no more.
 *
 * @throws ProblemError, also where the answer failed after its first rows; UnreachedError where it broke off; EndedError
 */
export async function ask(
  caller: SignedInCaller,
  body: QuestionBody,
  { signal, row }: AskOptions,
): Promise<AnswerTrailer | null> {
  const enough = new AbortController();
  const both = AbortSignal.any([signal, enough.signal]);
  const response = await send(caller, 'POST', '/osl/query', body, {
    signal: both,
    accept: 'application/x-ndjson',
  });
  if (response.body === null) throw new UnreachedError('the answer has no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const lines = new LineSplitter();
  let since = performance.now();
  // The last line is the trailer, whatever a row looks like: each waits until another has come.
  let held: string | null = null;
  for (;;) {
    const { done, value } = await readFrom(reader);
    if (done) return trailerOf(held);
    for (const line of lines.add(value)) {
      if (held !== null && !row(JSON.parse(held) as AnswerRow, held.length)) {
        enough.abort();
        return null;
      }
      held = line;
      if (performance.now() - since > TURN_MS) {
        await new Promise((resolve) => setTimeout(resolve));
        both.throwIfAborted();
        since = performance.now();
      }
    }
  }
}

async function readFrom(reader: ReadableStreamDefaultReader<string>) {
  try {
    return await reader.read();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new UnreachedError(BROKEN);
  }
}

const BROKEN = 'the answer broke off before its end';

/** What the last line says. @throws ProblemError where the answer failed; UnreachedError where this was not its last line */
function trailerOf(line: string | null): AnswerTrailer {
  const read = line === null ? null : (JSON.parse(line) as { readonly trailer?: object });
  const trailer = read?.trailer;
  if (typeof trailer !== 'object' || trailer === null) throw new UnreachedError(BROKEN);
  if ('problem' in trailer) throw new ProblemError(trailer.problem as Problem); // as the gateway says it
  return trailer as AnswerTrailer;
}

/** The plan of a question; nothing is run. Throws as `ask`. */
export function explain(caller: SignedInCaller, body: QuestionBody, signal: AbortSignal): Promise<Plan> {
  return postJson<Plan>(caller, '/osl/query', { ...body, explain: true }, { signal });
}

/** Takes a text that comes in pieces apart into its lines. */
export class LineSplitter {
  #rest = '';

  /** The lines that are whole with `piece`. */
  add(piece: string): readonly string[] {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }

  /** Text received after the last complete line. */
  get rest(): string {
    return this.#rest;
  }
}
