import type { QueryError } from 'osl-compiler';

/** Backend of the MCP tools: a remote server over HTTP, or this process. */
export interface Engine {
  /** Returns rows of up to `maxBytes` of JSON in total, and the trailer. @throws EngineRefusal */
  query(question: QueryJson, wanted: WantedAnswer, signal: AbortSignal): Promise<ToolAnswer>;
  explain(question: QueryJson, task: string | null, signal: AbortSignal): Promise<JsonDocument>;
  /**
   * Returns all or part of the schema visible to the caller; `wish` has the parameters of `GET /osl/schema`.
   *
   * @throws EngineRefusal
   */
  schema(wish: EngineFields, signal: AbortSignal): Promise<JsonDocument>;
  /** Refuses a call with invalid arguments, as the engine would. */
  refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal>;
}

export interface WantedAnswer {
  readonly maxBytes: number;
  /** True if the trailer should have a receipt. */
  readonly receipt: boolean;
  /** The task that the call names; null if none, which leaves that of the sender. */
  readonly task: string | null;
  /** The reason for which an approval is to be requested if the query needs one; null likewise. */
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

/** Thrown if the engine refuses a call or cannot be reached; converted to an MCP error result. */
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

export function objectIn(text: string): EngineFields | null {
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
 * Incremental reader of an NDJSON answer: keeps rows up to `maxBytes`, then the trailer from the last line. Further
 * rows are dropped; the trailer has the engine's row count.
 */
export class AnswerReader {
  readonly #rows: unknown[] = [];
  #left: number;
  /** The last complete line, which may be a row or the trailer. */
  #last: string | null = null;
  #rest = '';
  #isOverlong = false;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  get full(): boolean {
    return this.#left <= 0;
  }

  read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.#line(this.#isOverlong ? null : line);
      this.#isOverlong = false;
    }
    if (this.#rest.length > MAX_LINE) this.#isOverlong = true;
    if (this.#isOverlong) this.#rest = '';
  }

  /** @param line null if it was too long */
  #line(line: string | null): void {
    const row = this.#last;
    this.#last = line;
    if (row !== null && !this.full) this.#row(row);
    if (line === null) this.#left = 0;
  }

  #row(row: string): void {
    this.#left -= Buffer.byteLength(row) + 1;
    if (this.#left >= 0) this.#rows.push(JSON.parse(row));
  }

  /** @throws EngineRefusal if the answer was cut off or its trailer reports a failure */
  end(): ToolAnswer {
    if (this.#rest !== '') this.read('\n');
    const trailer = this.#last === null ? null : objectIn(this.#last)?.['trailer'];
    if (typeof trailer !== 'object' || trailer === null) throw unreachable();
    const members: Readonly<Record<string, unknown>> = { ...trailer };
    const problem = members['problem'];
    if (typeof problem === 'object' && problem !== null) throw refusalIn({ ...problem });
    return { rows: this.#rows, trailer: members };
  }
}

/**
 * Converts a failure that occurred after the answer had begun: the HTTP status was already sent as 200, so the real
 * status is the one in `problem`.
 */
function refusalIn(problem: Readonly<Record<string, unknown>>): EngineRefusal {
  const { status, request_id: id, detail } = problem;
  return new EngineRefusal(
    typeof status === 'number' ? status : null,
    problem,
    typeof id === 'string' ? id : null,
    typeof detail === 'string' ? detail : 'the execution failed',
  );
}
