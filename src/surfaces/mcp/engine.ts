import type { QueryError } from 'osl-compiler';

/** What the tools ask for: over HTTP of a server elsewhere, or of the engine in their own process. */
export interface Engine {
  /** Rows as long as they fit into `maxBytes` of JSON, and what is said of all. @throws EngineRefusal */
  query(question: Question, maxBytes: number, signal: AbortSignal): Promise<Answer>;
  /** The plan of a question that is not run. @throws EngineRefusal */
  explain(question: Question, signal: AbortSignal): Promise<Document>;
  /** The schema as the caller's grants show it, or a part of it; `wish` has parameters of `GET /osl/schema`. @throws EngineRefusal */
  schema(wish: Fields, signal: AbortSignal): Promise<Document>;
  /** Refuses a call of `action` whose arguments are at fault, as the engine refuses such a request. */
  refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal>;
}

type Fields = Readonly<Record<string, unknown>>;

/** A body of `POST /osl/query`, as JSON; the engine says which members go together. */
export type Question = string;

export interface Answer {
  /** As many as fit. */
  readonly rows: readonly unknown[];
  /** What the engine says of the answer as a whole. */
  readonly trailer: Fields;
}

/** A JSON object. */
export interface Document {
  readonly text: string;
  readonly requestId: string | null;
}

/** The engine refused, or could not be reached: what an MCP error says of it. */
export class EngineRefusal extends Error {
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** The problem as the engine wrote it; null where there is none. */
  readonly envelope: Fields | null;
  readonly requestId: string | null;

  constructor(status: number | null, envelope: Fields | null, requestId: string | null, message: string) {
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
export function explained(question: Question): Question {
  const members = question.trim().slice(1);
  return `{"explain":true${/^\s*\}/.test(members) ? '' : ','}${members}`;
}

/** The object that `text` is in JSON; null where it is none. */
export function objectIn(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
