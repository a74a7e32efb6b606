import { type Answer, OPERATIONS, type Operations, type Plan, type Problem, type Query } from './types.js';

/** Every form of a query body, without `explain`. */
export type Question = Query extends infer Shape
  ? Shape extends unknown
    ? Omit<Shape, 'explain'>
    : never
  : never;

export type Row = Answer['rows'][number];

/** Members of an answer except its rows. */
export type Trailer = Omit<Answer, 'rows'>;

export interface ClientOptions {
  /** Base URL, such as `https://osl.example`. */
  readonly url: string;
  /**
   * Actor token, or a function that returns one. The function is called before each request, because tokens live for at
   * most 300 s.
   */
  readonly token: string | (() => string | Promise<string>);
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Thrown if a request is refused or fails. */
export class OslError extends Error {
  /** HTTP status; null if a response began successfully but was incomplete or invalid. */
  readonly status: number | null;
  /**
   * Problem reported by the gateway; null if the error response did not come from the gateway, or if there was no error
   * response.
   */
  readonly problem: Problem | null;
  /** Seconds to wait before retrying; null if the gateway did not specify a delay. */
  readonly retryAfterSeconds: number | null;

  constructor(status: number | null, problem: Problem | null, retryAfter: string | null = null) {
    const message = problem === null ? null : `${problem.code}: ${problem.detail}`;
    super(message ?? (status === null ? 'the answer broke off' : `the gateway answered ${status}`));
    this.name = 'OslError';
    this.status = status;
    this.problem = problem;
    this.retryAfterSeconds = retryAfter === null ? null : Number(retryAfter);
  }
}

type OperationName = keyof Operations;

interface CallOptions<K extends OperationName> {
  readonly parameters?: Operations[K]['parameters'];
  readonly body?: Operations[K]['body'];
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** Client for the REST API. Response members that these types do not declare are passed through unchanged. */
export class OslClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Runs a query and returns all its rows. @throws OslError */
  async query(question: Question, signal?: AbortSignal): Promise<Answer> {
    // Without `explain`, the response is never a plan.
    return (await this.call('query', { body: question, ...signalOf(signal) })) as Answer;
  }

  /** Returns the plan of a query without reading any data. @throws OslError */
  async explain(question: Question, signal?: AbortSignal): Promise<Plan> {
    const body = { ...question, explain: true };
    return (await this.call('query', { body, ...signalOf(signal) })) as Plan;
  }

  /**
   * Yields rows as they arrive, so that an answer of any size can be read; returns the trailer at the end. Leaving the
   * loop cancels the query.
   *
   * @throws OslError, also if the response breaks off after some rows
   */
  async *rows(question: Question, signal?: AbortSignal): AsyncGenerator<Row, Trailer> {
    const accept = 'application/x-ndjson';
    const response = await this.send('query', { body: question, accept, ...signalOf(signal) });
    let last: string | null = null;
    for await (const line of linesOf(response)) {
      if (last !== null) yield JSON.parse(last);
      last = line;
    }
    // The last line is always the trailer, whatever its content, because a column may also be named `trailer`.
    const trailer = last === null ? null : parseTrailer(last);
    if (trailer === null) throw new OslError(null, null);
    if (trailer.problem !== undefined) throw new OslError(trailer.problem.status, trailer.problem);
    return trailer;
  }

  /** Calls any operation by its `operationId`. @throws OslError */
  async call<K extends OperationName>(
    operation: K,
    options: CallOptions<K> = {},
  ): Promise<Operations[K]['answer']> {
    const response = await this.send(operation, options);
    try {
      return (await response.json()) as Operations[K]['answer']; // typed as in the OpenAPI document
    } catch {
      throw new OslError(null, null);
    }
  }

  /** Like `call`, but leaves the body unread: for Arrow, pass `accept: 'application/vnd.apache.arrow.stream'`. */
  async send<K extends OperationName>(operation: K, options: CallOptions<K> = {}): Promise<Response> {
    const { method, path, token } = OPERATIONS[operation];
    const parameters = new Map<string, string>(Object.entries({ ...options.parameters }));
    const pathname = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = parameters.get(name) ?? '';
      parameters.delete(name);
      return encodeURIComponent(value);
    });
    const query = new URLSearchParams([...parameters]).toString();
    const headers = new Headers({ accept: options.accept ?? 'application/json' });
    if (token) headers.set('authorization', `Bearer ${await this.#token()}`);
    if (options.body !== undefined) headers.set('content-type', 'application/json');
    const url = `${this.#options.url.replace(/\/+$/, '')}${pathname}${query === '' ? '' : `?${query}`}`;
    const response = await (this.#options.fetch ?? fetch)(url, {
      method,
      headers,
      redirect: 'error', // a redirect would send the token to another server
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...signalOf(options.signal),
    });
    if (response.ok) return response;
    throw new OslError(response.status, await readProblem(response), response.headers.get('retry-after'));
  }

  async #token(): Promise<string> {
    const { token } = this.#options;
    return typeof token === 'string' ? token : token();
  }
}

function signalOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

async function readProblem(response: Response): Promise<Problem | null> {
  try {
    const value: unknown = await response.json();
    const isProblem = typeof value === 'object' && value !== null && 'code' in value && 'detail' in value;
    return isProblem ? (value as Problem) : null; // `code` and `detail` show that the gateway wrote it
  } catch {
    return null;
  }
}

function parseTrailer(line: string): (Trailer & { readonly problem?: Problem }) | null {
  try {
    return JSON.parse(line).trailer ?? null;
  } catch {
    return null;
  }
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new OslError(null, null);
      });
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // leaving the loop cancels the query
  }
  if (rest !== '') yield rest;
}
