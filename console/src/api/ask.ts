import type { Answer, Plan, Problem, Query } from '../../../clients/typescript/types.js';
import { type JsonValue, TURN_MS } from '../parts/rows/row-store.js';
import type { SignedInCaller } from './caller.js';
import { BROKEN, isAbort, ProblemError, postJson, send, UnreachedError, UnreadableError } from './http.js';

export type AnswerTrailer = Omit<Answer, 'rows'>;

type AnswerRow = Readonly<Record<string, JsonValue>>;

interface AskOptions {
  readonly signal: AbortSignal;
  /** Receives each row and its length in characters; returning false cancels the query. */
  readonly row: (row: AnswerRow, characters: number) => boolean;
  /** True to request a receipt for the answer. */
  readonly receipt?: boolean;
}

/**
 * Sends a query and passes its rows to `row` as they arrive. Aborting `signal` closes the connection, which cancels the
 * statement in the database. Returns null if `row` returned false.
 *
 * @throws ProblemError, also if the query fails after some rows; UnreachedError if the response breaks off;
 * UnreadableError; EndedError
 */
export async function ask(
  caller: SignedInCaller,
  body: Query,
  { signal, row, receipt = false }: AskOptions,
): Promise<AnswerTrailer | null> {
  const enough = new AbortController();
  const both = AbortSignal.any([signal, enough.signal]);
  const response = await send(caller, 'POST', '/osl/query', body, {
    signal: both,
    accept: 'application/x-ndjson',
    headers: receipt ? { prefer: 'receipt' } : {},
  });
  if (response.body === null) throw new UnreachedError('the answer has no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const lines = new LineSplitter();
  let since = performance.now();
  // The last line is the trailer, even if a row looks the same, so each line is held back until the next one arrives.
  let held: string | null = null;
  for (;;) {
    const { done, value } = await readFrom(reader);
    if (done) return trailerOf(held, response.status);
    for (const line of lines.add(value)) {
      if (held !== null && !row(parsed(held, response.status) as AnswerRow, held.length)) {
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
    throw isAbort(error) ? error : new UnreachedError(BROKEN);
  }
}

/** Parses a line of the response. @throws UnreadableError */
function parsed(line: string, status: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new UnreadableError(status);
  }
}

/** Parses the trailer. @throws ProblemError if the query failed; UnreachedError if the line is not a trailer */
function trailerOf(line: string | null, status: number): AnswerTrailer {
  const read = line === null ? null : (parsed(line, status) as { readonly trailer?: object });
  const trailer = read?.trailer;
  if (typeof trailer !== 'object' || trailer === null) throw new UnreachedError(BROKEN);
  if ('problem' in trailer) throw new ProblemError(trailer.problem as Problem); // written by the gateway
  return trailer as AnswerTrailer;
}

/** Returns the plan of a query without running it. Throws like `ask`. */
export function explain(caller: SignedInCaller, body: Query, signal: AbortSignal): Promise<Plan> {
  return postJson<Plan>(caller, '/osl/query', { ...body, explain: true }, { signal });
}

/** Splits text that arrives in pieces into lines. */
export class LineSplitter {
  #rest = '';

  /** Returns the lines completed by `piece`. */
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
