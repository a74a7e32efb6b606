import type { Answer } from '../endpoint.js';

/** Headers that are new with each response. */
const RANDOM = ['date', 'x-request-id'];

/** All that a client receives: status, headers, and the body. */
export function partsOf({ status, headers }: Response, text: string): readonly string[] {
  const kept = [...headers].filter(([name]) => !RANDOM.includes(name));
  return [String(status), ...kept.map((header) => header.join(': ')), text];
}

/** The answer of an API that returns objects as rows, with all that was received besides. */
export function objectsAnswer(
  rows: readonly Readonly<Record<string, unknown>>[],
  errors: unknown,
  response: Response,
  text: string,
): Answer {
  return {
    columns: Object.keys(rows[0] ?? {}),
    rows: rows.map((row) => Object.values(row).map((cell) => JSON.stringify(cell))),
    tag: null,
    notices: partsOf(response, text),
    error: errors === undefined ? null : JSON.stringify(errors),
  };
}
