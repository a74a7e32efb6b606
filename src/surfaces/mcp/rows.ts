import { EngineRefusal, objectIn, unreachable } from './rest-client.js';

export interface Answer {
  /** As many as fit. */
  readonly rows: readonly unknown[];
  /** What the engine says of the answer as a whole. */
  readonly trailer: Readonly<Record<string, unknown>>;
}

/**
 * Reads an NDJSON answer to its end: rows as long as they fit into `maxBytes`, then the trailer, which is the last
 * line. What does not fit is read and dropped, so that the trailer's count is that of the engine.
 *
 * @throws EngineRefusal where the answer breaks off, or its trailer says that the execution failed
 */
export async function readAnswer(response: Response, maxBytes: number): Promise<Answer> {
  const rows: unknown[] = [];
  let left = maxBytes;
  let last: string | null = null;
  for await (const line of linesOf(response)) {
    if (last !== null && left > 0) {
      left -= Buffer.byteLength(last) + 1;
      if (left >= 0) rows.push(JSON.parse(last));
    }
    last = line;
  }
  const trailer = last === null ? null : objectIn(last)?.['trailer'];
  if (typeof trailer !== 'object' || trailer === null) throw unreachable();
  const members: Readonly<Record<string, unknown>> = { ...trailer };
  const problem = members['problem'];
  if (typeof problem === 'object' && problem !== null) throw failed({ ...problem });
  return { rows, trailer: members };
}

/** The answer had begun when the execution failed: its status was 200, its problem says what it is. */
function failed(problem: Readonly<Record<string, unknown>>): EngineRefusal {
  const { status, request_id: id, detail } = problem;
  return new EngineRefusal(
    typeof status === 'number' ? status : null,
    problem,
    typeof id === 'string' ? id : null,
    typeof detail === 'string' ? detail : 'the execution failed',
  );
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    // Node's streams can be iterated; the type of `fetch` does not say so.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = parts.pop() ?? '';
      yield* parts;
    }
  } catch {
    throw unreachable();
  }
  if (rest !== '') yield rest;
}
