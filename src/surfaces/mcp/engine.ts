import type { QueryError } from 'osl-compiler';
import { isTask } from '../../ask/request/task.js';
import { problemOf } from '../rest/problem.js';

/** Backend of the MCP tools: a remote server over HTTP, or this process. */
export interface Engine {
  /** Returns the rows that fit into `maxBytes` of JSON in total, and the trailer. @throws EngineRefusal */
  query(question: QueryJson, options: AnswerOptions, signal: AbortSignal): Promise<ToolAnswer>;
  explain(question: QueryJson, task: string | null, signal: AbortSignal): Promise<JsonDocument>;
  /**
   * Returns all or part of the schema visible to the caller; `selection` has the parameters of `GET /osl/schema`.
   *
   * @throws EngineRefusal
   */
  schema(selection: EngineFields, signal: AbortSignal): Promise<JsonDocument>;
  /** Returns the refusal of a call with invalid arguments, after recording it if the engine is in this process. */
  refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal>;
}

export interface AnswerOptions {
  readonly maxBytes: number;
  /** True if the trailer should have a receipt. */
  readonly receipt: boolean;
  /** The task named by the call; null: the task of the MCP message, if any. */
  readonly task: string | null;
  /** The reason for requesting an approval if the query needs one; null: the reason in the MCP message, if any. */
  readonly approvalReason: string | null;
}

type EngineFields = Readonly<Record<string, unknown>>;

export type QueryJson = string;

export interface ToolAnswer {
  readonly rows: readonly unknown[];
  readonly trailer: EngineFields;
}

export interface JsonDocument {
  readonly text: string;
  readonly requestId: string | null;
}

/** Thrown if the engine refuses a call or cannot be reached; becomes an error result of a tool or a protocol error. */
export class EngineRefusal extends Error {
  /** HTTP status; null if there was no response. */
  readonly status: number | null;
  readonly envelope: EngineFields | null;
  readonly requestId: string | null;

  constructor(
    status: number | null,
    envelope: EngineFields | null,
    requestId: string | null,
    message: string,
  ) {
    super(message);
    this.name = 'EngineRefusal';
    this.status = status;
    this.envelope = envelope;
    this.requestId = requestId;
  }
}

export function unreachable(): EngineRefusal {
  return new EngineRefusal(null, null, null, 'the engine did not answer, or broke off its answer');
}

/** Adds `explain: true` to a query, which must be a JSON object. */
export function withExplain(question: QueryJson): QueryJson {
  const members = question.trim().slice(1);
  return `{"explain":true${/^\s*\}/.test(members) ? '' : ','}${members}`;
}

export function parseObject(text: string): EngineFields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Maximum line length in UTF-16 code units; exceeds any trailer or displayable row. */
const MAX_LINE = 1_048_576;

/**
 * Incremental reader of an NDJSON answer. It keeps rows up to `maxBytes` in total and drops further rows; the last line
 * is the trailer, which has the engine's row count.
 */
export class AnswerReader {
  readonly #rows: unknown[] = [];
  #remainingBytes: number;
  /** The last complete line, which may be a row or the trailer. */
  #lastLine: string | null = null;
  #incompleteLine = '';
  #isOverlong = false;

  constructor(maxBytes: number) {
    this.#remainingBytes = maxBytes;
  }

  get full(): boolean {
    return this.#remainingBytes <= 0;
  }

  read(text: string): void {
    const lines = (this.#incompleteLine + text).split('\n');
    this.#incompleteLine = lines.pop() ?? '';
    for (const line of lines) {
      this.#addLine(this.#isOverlong ? null : line);
      this.#isOverlong = false;
    }
    if (this.#incompleteLine.length > MAX_LINE) this.#isOverlong = true;
    if (this.#isOverlong) this.#incompleteLine = '';
  }

  /** Keeps the preceding line as a row, since only the last line is the trailer. @param line null if it was too long */
  #addLine(line: string | null): void {
    const row = this.#lastLine;
    this.#lastLine = line;
    if (row !== null && !this.full) this.#addRow(row);
    if (line === null) this.#remainingBytes = 0;
  }

  #addRow(row: string): void {
    this.#remainingBytes -= Buffer.byteLength(row) + 1;
    if (this.#remainingBytes >= 0) this.#rows.push(JSON.parse(row));
  }

  /** @throws EngineRefusal if the answer was cut off or its trailer reports a failure */
  end(): ToolAnswer {
    if (this.#incompleteLine !== '') this.read('\n');
    const trailer = this.#lastLine === null ? null : parseObject(this.#lastLine)?.['trailer'];
    if (typeof trailer !== 'object' || trailer === null) throw unreachable();
    const members: Readonly<Record<string, unknown>> = { ...trailer };
    const problem = members['problem'];
    if (typeof problem === 'object' && problem !== null) throw refusalFromProblem({ ...problem });
    return { rows: this.#rows, trailer: members };
  }
}

/**
 * Converts a failure that occurred after the answer had begun. The HTTP status had already been sent as 200, so the
 * real status is in `problem`.
 */
function refusalFromProblem(problem: Readonly<Record<string, unknown>>): EngineRefusal {
  const { status, request_id: id, detail } = problem;
  return new EngineRefusal(
    typeof status === 'number' ? status : null,
    problem,
    typeof id === 'string' ? id : null,
    typeof detail === 'string' ? detail : 'the execution failed',
  );
}

/** REST connection to a server, with the caller's own token. */
export interface RestClient {
  /** Base URL without trailing `/`. */
  readonly url: string;
  /** Sends a request. It must not follow redirects, which could send the token to another host. */
  fetch(
    url: string,
    init: {
      readonly method?: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly signal: AbortSignal;
    },
  ): Promise<Response>;
  token(): Promise<string>;
}

const QUERY = '/osl/query';
const JSON_TYPE = 'application/json';

export function remoteEngine(client: RestClient): Engine {
  return {
    query: async (question, { maxBytes, receipt, task, approvalReason }, signal) => {
      const response = await send(client, {
        path: QUERY,
        body: question,
        accept: 'application/x-ndjson',
        ...(receipt && { prefer: 'receipt' }),
        task,
        approvalReason,
        signal,
      });
      return readAnswer(response, maxBytes);
    },
    explain: async (question, task, signal) => {
      const body = withExplain(question);
      return readDocument(await send(client, { path: QUERY, body, accept: JSON_TYPE, task, signal }));
    },
    schema: async (selection, signal) => {
      const parameters = new URLSearchParams({ governed: 'true' });
      for (const [name, value] of Object.entries(selection)) parameters.set(name, String(value));
      return readDocument(
        await send(client, { path: `/osl/schema?${parameters}`, accept: JSON_TYPE, signal }),
      );
    },
    // The call is refused without asking the server, which therefore has no record of it.
    refuse: async (_, fault) => {
      const problem = { ...problemOf(fault, ''), request_id: null };
      return new EngineRefusal(fault.http, problem, null, fault.message);
    },
  };
}

interface EngineCall {
  readonly path: string;
  /** JSON body of a POST; if absent, the call is a GET. */
  readonly body?: string;
  readonly accept: string;
  readonly prefer?: string;
  readonly task?: string | null;
  readonly approvalReason?: string | null;
  readonly signal: AbortSignal;
}

/** @throws EngineRefusal unless the status is 2xx */
async function send(client: RestClient, call: EngineCall): Promise<Response> {
  const token = await client.token();
  const { accept, prefer, task = null, approvalReason: reason = null } = call;
  const headers = {
    authorization: `Bearer ${token}`,
    accept,
    ...(prefer !== undefined && { prefer }),
    // A malformed task or reason is sent as an empty text, which the server refuses.
    ...(task !== null && { 'osl-task': isTask(task) ? encodeURIComponent(task) : '' }),
    ...(reason !== null && {
      'osl-approval-reason': /\p{Cs}/u.test(reason) ? '' : encodeURIComponent(reason),
    }),
  };
  const content =
    call.body === undefined
      ? { headers }
      : {
          method: 'POST',
          headers: { ...headers, 'content-type': JSON_TYPE },
          body: call.body,
        };
  let response: Response;
  try {
    response = await client.fetch(`${client.url}${call.path}`, { ...content, signal: call.signal });
  } catch {
    throw unreachable();
  }
  if (!response.ok) throw await refusalFromResponse(response);
  return response;
}

const MAX_PROBLEM_BYTES = 65_536;

async function refusalFromResponse(response: Response): Promise<EngineRefusal> {
  const requestId = response.headers.get('x-request-id');
  let envelope: Readonly<Record<string, unknown>> | null = null;
  try {
    const text = await response.text();
    if (text.length <= MAX_PROBLEM_BYTES) envelope = parseObject(text);
  } catch {
    // The status suffices if the body cannot be read.
  }
  const detail = envelope?.['detail'];
  const message = typeof detail === 'string' ? detail : 'the engine refused without saying why';
  return new EngineRefusal(response.status, envelope, requestId, message);
}

/** @throws EngineRefusal if the answer is cut off or its trailer reports a failure */
async function readAnswer(response: Response, maxBytes: number) {
  const reader = new AnswerReader(maxBytes);
  const decoder = new TextDecoder();
  try {
    // Node's response streams are async iterable, but the type of `fetch` does not say so.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>)
      reader.read(decoder.decode(chunk, { stream: true }));
  } catch {
    throw unreachable();
  }
  return reader.end();
}

async function readDocument(response: Response): Promise<JsonDocument> {
  const text = await response.text().catch(() => {
    throw unreachable();
  });
  return { text, requestId: response.headers.get('x-request-id') };
}
