import type { QueryError } from 'osl-compiler';

/** Backend of the tools: a remote server over HTTP, or this process. */
export interface Engine {
  /** Rows up to `maxBytes` of JSON, and the trailer. @throws EngineRefusal */
  query(question: QueryJson, maxBytes: number, signal: AbortSignal): Promise<ToolAnswer>;
  /** Plan of a query, without running it. @throws EngineRefusal */
  explain(question: QueryJson, signal: AbortSignal): Promise<JsonDocument>;
  /** Schema visible to the caller, or a part; `wish` has the parameters of `GET /osl/schema`. @throws EngineRefusal */
  schema(wish: EngineFields, signal: AbortSignal): Promise<JsonDocument>;
  /** Refuses a call with invalid arguments, as the engine would. */
  refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal>;
}

type EngineFields = Readonly<Record<string, unknown>>;

/** JSON body of `POST /osl/query`. */
export type QueryJson = string;

export interface ToolAnswer {
  readonly rows: readonly unknown[];
  /** Members about the answer as a whole. */
  readonly trailer: EngineFields;
}

export interface JsonDocument {
  readonly text: string;
  readonly requestId: string | null;
}

/** The engine refused or was unreachable; becomes an MCP error. */
export class EngineRefusal extends Error {
  /** HTTP status; null if there was no response. */
  readonly status: number | null;
  /** Problem as written by the engine, or null. */
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

/** The query with `explain: true`; it must be a JSON object. */
export function explained(question: QueryJson): QueryJson {
  const members = question.trim().slice(1);
  return `{"explain":true${/^\s*\}/.test(members) ? '' : ','}${members}`;
}

/** JSON object in `text`, or null. */
export function objectIn(text: string): EngineFields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
