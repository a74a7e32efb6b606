import type { RestFixture } from '../../surfaces/rest/fixture.js';
import type { Value } from './recount.js';

/** The rows of a metrics body, in the order of its columns; numbers that JSON sends as texts are numbers again. */
export async function answerOf(
  rest: RestFixture,
  subject: string,
  body: Readonly<Record<string, unknown>>,
): Promise<readonly (readonly Value[])[]> {
  const reply = await rest.ask(subject, body);
  const { columns, rows } = reply.json() as {
    columns?: readonly { name: string; type: string }[];
    rows?: readonly Readonly<Record<string, unknown>>[];
  };
  if (columns === undefined || rows === undefined) throw new Error(`${JSON.stringify(body)}: ${reply.text}`);
  return rows.map((row) => columns.map(({ name, type }) => plainValue(row[name], type)));
}

function plainValue(value: unknown, type: string): Value {
  if (value === null || typeof value === 'number') return value;
  const text = String(value);
  return type === 'int8' || type === 'numeric' ? Number(text) : text.replace('Z', '');
}

/** The rows as texts that compare: sorted, figures to nine digits. */
export function comparable(rows: readonly (readonly Value[])[]): readonly string[] {
  return rows
    .map((r) => JSON.stringify(r.map((v) => (typeof v === 'number' ? Number(v.toPrecision(9)) : v))))
    .sort();
}
