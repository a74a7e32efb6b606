import { setImmediate } from 'node:timers/promises';
import { type GovernedRuntime, ORDINAL, queryError } from 'osl-compiler';
import type { OperatorCall } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { NOTHING, type RuntimeRows } from '../parts.js';
import { constantValue } from './constants.js';
import type { TextRow } from './step.js';
import { operatorCallerOf, step } from './step.js';

type OperatedRuntime = Extract<GovernedRuntime, { kind: 'operated' }>;

const MOST_BYTES = 64 * 1_048_576;

/**
 * Reads the governed rows and applies the operators to their texts.
 *
 * @throws QueryError E0519 for too many rows, E0511 if they are too large
 */
export async function operate(
  { relation, rows: plan }: OperatedRuntime,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { content } = input.parts;
  const calls = relation.operators.map((use): OperatorCall => {
    const values = [...use.arguments].map(([name, e]) => [name, constantValue(e, input)] as const);
    return { use, values: new Map(values) };
  });
  for (const call of calls) await content.check(call);
  const { rows } = await step(plan, new Map(), { ...input, plan }, relation.most + 1, MOST_BYTES);
  if (rows.length > relation.most) throw queryError('stepCap', tooMany(relation.most));
  const names = plan.outputs.map((o) => o.name);
  const nameOf = (column: string): string => names[Number(column.slice(1)) - 1 - calls.length] ?? '';
  const by = operatorCallerOf(input);
  const results = new Map<string, readonly unknown[]>();
  for (const [i, call] of calls.entries()) {
    const of = nameOf(relation.operators[i]?.of ?? '');
    const texts = rows.map((row) => row.get(of) ?? null);
    const values = await content.runOverTexts(call, texts, by);
    const key = relation.key === null ? null : nameOf(relation.key);
    results.set(
      call.use.column,
      call.use.operator === 'DEDUP' ? values.map((v) => namedByKey(v, rows, key)) : values,
    );
  }
  return { ...NOTHING, json: await json(relation, rows, nameOf, results) };
}

function tooMany(limit: number) {
  const hint =
    'narrow WHERE, or page by key: WHERE id > the last one ORDER BY id LIMIT n, for RANK, DEDUP, OUTLIER and CLUSTER in a derived table';
  return { what: 'what the operators would work on', limit, unit: 'rows', hint };
}

/** DEDUP identifies the first row of a group by its index. Replaces the index with that row's key. */
function namedByKey(value: unknown, rows: readonly TextRow[], key: string | null): unknown {
  if (typeof value !== 'object' || value === null || !('of' in value)) return value;
  const of = value.of === null || key === null ? null : (rows[Number(value.of)]?.get(key) ?? null);
  return { ...value, of };
}

/** Amount of text processed between two yields to the event loop, in UTF-16 code units. */
const A_TURN = 1_000_000;

async function json(
  { columns }: OperatedRuntime['relation'],
  rows: readonly TextRow[],
  nameOf: (column: string) => string,
  results: ReadonlyMap<string, readonly unknown[]>,
): Promise<string> {
  const names = columns.map((c) => c.name).filter((name) => name !== ORDINAL);
  const taken = names.filter((name) => !results.has(name)).map((name) => [name, nameOf(name)] as const);
  const made = [...results].filter(([name]) => names.includes(name));
  const texts: string[] = [];
  let written = 0;
  for (const [place, row] of rows.entries()) {
    const fields: Record<string, unknown> = { [ORDINAL]: place + 1 };
    for (const [name, output] of taken) fields[name] = row.get(output) ?? null;
    for (const [name, values] of made) fields[name] = values[place] ?? null;
    const text = JSON.stringify(fields);
    texts.push(text);
    written += text.length;
    if (written < A_TURN) continue;
    written = 0;
    await setImmediate();
  }
  return `[${texts.join()}]`;
}
