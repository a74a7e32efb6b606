import type { QueryError } from 'osl-compiler';

/** What the tools ask for: over HTTP of a server elsewhere, or of the engine in their own process. */
export interface Engine {
  /** Rows as long as they fit into `maxBytes` of JSON, and what is said of all. @throws EngineRefusal */
  query(question: QueryJson, maxBytes: number, signal: AbortSignal): Promise<ToolAnswer>;
  /** The plan of a question that is not run. @throws EngineRefusal */
  explain(question: QueryJson, signal: AbortSignal): Promise<JsonDocument>;
  /** The schema as the caller's grants show it, or a part of it; `wish` has parameters of `GET /osl/schema`. @throws EngineRefusal */
  schema(wish: EngineFields, signal: AbortSignal): Promise<JsonDocument>;
  /** Refuses a call of `action` whose arguments are at fault, as the engine refuses such a request. */
  refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal>;
}

type EngineFields = Readonly<Record<string, unknown>>;

/** A body of `POST /osl/query`, as JSON; the engine says which members go together. */
export type QueryJson = string;

export interface ToolAnswer {
  /** As many as fit. */
  readonly rows: readonly unknown[];
  /** What the engine says of the answer as a whole. */
  readonly trailer: EngineFields;
}

/** A JSON object. */
export interface JsonDocument {
  readonly text: string;
  readonly requestId: string | null;
}

/** The engine refused, or could not be reached: what an MCP error says of it. */
export class EngineRefusal extends Error {
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** The problem as the engine wrote it; null where there is none. */
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

/** The question with `explain: true`: it is an object in JSON. */
export function explained(question: QueryJson): QueryJson {
  const members = question.trim().slice(1);
  return `{"explain":true${/^\s*\}/.test(members) ? '' : ','}${members}`;
}

/** The object that `text` is in JSON; null where it is none. */
export function objectIn(text: string): EngineFields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
