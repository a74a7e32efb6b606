import { hintOn } from 'osl-compiler/surface-hints';
import type { HttpReply, ProblemBody } from './client.js';
import { EXIT, Failure, failure } from './exit.js';
import { print, type ReplyFields, visible } from './output.js';
import { widthOf } from './table.js';

/**
 * Returns the body of a response; with `json`, prints the response unchanged.
 *
 * @param text the query, which is shown with the position of an error
 * @throws Failure if the server refused
 */
export function bodyOf(reply: HttpReply, json: boolean | undefined, text = ''): ReplyFields {
  if (json) print(reply.text);
  if (!reply.ok) throw refusal(reply, text);
  return reply.body;
}

export class ServerRefusal extends Failure {
  readonly status: number;
  /** Value of `Retry-After` in seconds; null if the server did not send it. */
  readonly retryAfterSeconds: number | null;

  constructor({ body, status, retryAfterSeconds }: HttpReply, text: string) {
    const problem = problemOf(body, status);
    super(EXIT.failed, formatProblem(problem, text), { ...problem });
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function refusal(reply: HttpReply, text: string): ServerRefusal {
  return new ServerRefusal(reply, text);
}

export function unreadable(): Failure {
  return failure('the answer is not one that this osl can read');
}

export function problemOf(body: Readonly<Record<string, unknown>>, status: number): ProblemBody {
  const text = (name: string): string | null => {
    const value = body[name];
    return typeof value === 'string' ? value : null;
  };
  return {
    code: text('code') ?? `HTTP ${status}`,
    detail: text('detail') ?? text('title') ?? 'the server refused',
    hint: text('hint'),
    request_id: text('request_id'),
    position: positionOf(body['position']),
  };
}

/** Formats a problem as readable text: code and message, the line of `source` with a caret, hint, request ID. */
export function formatProblem(problem: ProblemBody, source: string): string {
  const lines = [`error ${visible(problem.code)}: ${visible(problem.detail)}`];
  if (problem.position !== null) lines.push(...marked(problem.position, source));
  const hint = hintOn('cli', problem.hint);
  if (hint !== null) lines.push(`  hint: ${visible(hint)}`);
  if (problem.request_id !== null) lines.push(`  request: ${visible(problem.request_id)}`);
  return lines.join('\n');
}

const LONGEST_LINE = 120;

function marked(
  { line, column }: { readonly line: number; readonly column: number },
  source: string,
): readonly string[] {
  // Positions count lines by line feed. The carriage return of a CR LF is not shown.
  const whole = source.split('\n')[line - 1]?.replace(/\r$/, '');
  if (whole === undefined) return [];
  const at = Math.min(Math.max(column - 1, 0), whole.length);
  const fits = whole.length <= LONGEST_LINE;
  const from = fits ? 0 : boundary(whole, Math.max(0, at - LONGEST_LINE / 2));
  const before = drawn(whole.slice(from, at));
  const shown = drawn(whole.slice(from, boundary(whole, from + LONGEST_LINE)));
  const gutter = `${line}`.padStart(5);
  const caret = '^'.repeat(Math.max(1, widthOf(drawn(wordIn(whole.slice(at))))));
  return [`${gutter} | ${shown}`, `      | ${' '.repeat(widthOf(before))}${caret}`];
}

/** Returns `index`, or one less if it would split a surrogate pair. */
function boundary(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff ? index - 1 : index;
}

/** Expands tabs, so that the position of the caret does not depend on tab stops. */
function drawn(text: string): string {
  return visible(text.replaceAll('\t', '    '));
}

/** The word or quoted name at the start of `text`; empty if there is none. */
function wordIn(text: string): string {
  return /^("(?:[^"]|"")*"|'(?:[^']|'')*'|[\p{L}\p{M}\p{N}_$]+)/u.exec(text)?.[0] ?? '';
}

function positionOf(value: unknown): ProblemBody['position'] {
  if (typeof value !== 'object' || value === null) return null;
  const { offset, line, column }: { offset?: unknown; line?: unknown; column?: unknown } = value;
  if (typeof offset !== 'number' || typeof line !== 'number' || typeof column !== 'number') return null;
  return { offset, line, column };
}
