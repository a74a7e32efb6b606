import type { ProblemBody } from './client.js';
import { visible } from './output.js';
import { widthOf } from './width.js';

/** The problem in `body`; what is missing there is left out. */
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

/** The problem for people: code and message, the line of `source` with a caret, the hint, the request's id. */
export function formatProblem(problem: ProblemBody, source: string): string {
  const lines = [`error ${visible(problem.code)}: ${visible(problem.detail)}`];
  if (problem.position !== null) lines.push(...marked(problem.position, source));
  if (problem.hint !== null) lines.push(`  hint: ${visible(problem.hint)}`);
  if (problem.request_id !== null) lines.push(`  request: ${visible(problem.request_id)}`);
  return lines.join('\n');
}

const LONGEST_LINE = 120;

function marked(
  { line, column }: { readonly line: number; readonly column: number },
  source: string,
): readonly string[] {
  const whole = source.split(/\r\n|\n|\r/)[line - 1];
  if (whole === undefined) return [];
  const at = Math.min(Math.max(column - 1, 0), whole.length);
  const from = at > LONGEST_LINE / 2 ? at - LONGEST_LINE / 2 : 0;
  const before = visible(whole.slice(from, at));
  const shown = visible(whole.slice(from, from + LONGEST_LINE));
  const gutter = `${line}`.padStart(5);
  const caret = '^'.repeat(Math.max(1, wordLength(whole.slice(at))));
  return [`${gutter} | ${shown}`, `      | ${' '.repeat(widthOf(before))}${caret}`];
}

/** Of the word, name or quoted name that `text` begins with. */
function wordLength(text: string): number {
  return /^("[^"]*"|'[^']*'|[\p{L}\p{N}_$]+)/u.exec(text)?.[0].length ?? 1;
}

function positionOf(value: unknown): ProblemBody['position'] {
  if (typeof value !== 'object' || value === null) return null;
  const { offset, line, column }: { offset?: unknown; line?: unknown; column?: unknown } = value;
  if (typeof offset !== 'number' || typeof line !== 'number' || typeof column !== 'number') return null;
  return { offset, line, column };
}
