import { type Access, type Catalog, compile, emit, type Slot } from 'osl-compiler';
import type { Client } from 'pg';
import type { Question } from './questions.js';

/** One prepared statement and its parameter values for each execution. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (readonly (string | null)[])[];
}

/**
 * Compiles `question` to one statement, with values for `asks` executions. @throws Error if it needs several statements
 */
export function preparedFor(
  question: Question,
  plan: { readonly rows: number; readonly asks: number },
  to: { readonly name: string; readonly catalog: Catalog; readonly access: Access },
  value: (slot: Slot) => string | null = literalOf,
): Prepared {
  const options = question.raw === true ? ({ world: 'physical' } as const) : {};
  const all = Array.from({ length: plan.asks }, (_, i) =>
    emit(compile(question.text(i, plan.rows), to.catalog, to.access, options)),
  );
  const [first] = all;
  if (first === undefined || all.some((e) => e.sql !== first.sql))
    throw new Error(`the texts of ${question.id} are not one statement`);
  return { name: `${question.id}.${to.name}`, text: first.sql, values: all.map((e) => e.slots.map(value)) };
}

export function literalOf(slot: Slot): string | null {
  if (slot.kind !== 'literal' || slot.value === null) return null;
  return typeof slot.value === 'string' ? slot.value : `{${slot.value.join(',')}}`;
}

/** Mean time of one execution in µs, over at most `asks` executions. */
export async function microseconds(
  client: Client,
  { name, text, values }: Prepared,
  asks = values.length,
): Promise<number> {
  const started = process.hrtime.bigint();
  for (const given of values.slice(0, asks)) await client.query({ name, text, values: [...given] });
  return Number(process.hrtime.bigint() - started) / 1_000 / Math.min(asks, values.length);
}

/** Scans that EXPLAIN reports: each kind of scan with its index or table. */
export async function scansOf(client: Client, { text, values }: Prepared): Promise<string> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>({
    text: `explain (costs off) ${text}`,
    values: [...(values[0] ?? [])],
  });
  return scansIn(rows.map((r) => r['QUERY PLAN']));
}

/** The distinct scans in the lines of a plan. */
export function scansIn(lines: readonly string[]): string {
  return [...new Set(lines.flatMap((line) => SCAN.exec(line) ?? []))].join(', ');
}

const SCAN =
  /(?<=-> {2}|^ *)(?:Parallel )?(?:Seq Scan on \w+|Bitmap Index Scan on \w+|Index (?:Only )?Scan (?:Backward )?using \w+)/;
