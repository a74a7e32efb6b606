import type { CallToolResult } from '@modelcontextprotocol/server';
import { EngineRefusal } from './engine.js';

/** What every result says, whichever tool it is of. */
export interface ResultHead {
  /** The engine's own id of the call, under which the audit log has it; null where no call was answered. */
  readonly request_id: string | null;
  readonly row_count: number;
  /** Something was left out: by a cap of the engine, or because it did not fit here. */
  readonly truncated: boolean;
}

/** A result as structured content, and the same as JSON text for clients that read text only. */
export function resultOf(content: ResultHead & Readonly<Record<string, unknown>>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(content) }], structuredContent: { ...content } };
}

/** An error result: status and envelope as the engine gave them. A refusal is never an empty success. */
export function refusedResult(error: unknown): CallToolResult {
  const refusal =
    error instanceof EngineRefusal
      ? error
      : new EngineRefusal(null, null, null, error instanceof Error ? error.message : 'the call failed');
  const content = {
    request_id: refusal.requestId,
    row_count: 0,
    truncated: false,
    status: refusal.status,
    message: refusal.message,
    problem: refusal.envelope,
  };
  return { ...resultOf(content), isError: true };
}
