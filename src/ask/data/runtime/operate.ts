import { setImmediate } from 'node:timers/promises';
import { type GovernedRuntime, ORDINAL, queryError } from 'osl-compiler';
import type { OperatorCall } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { NO_ROWS, type RuntimeRows } from '../parts.js';
import { constantValue } from './constants.js';
import type { TextRow } from './step.js';
import { operatorCallerOf, step } from './step.js';

type OperatedRuntime = Extract<GovernedRuntime, { kind: 'operated' }>;

const MAX_BYTES = 64 * 1_048_576;

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
  const { rows } = await step(plan, new Map(), { ...input, plan }, relation.most + 1, MAX_BYTES);
  if (rows.length > relation.most) throw queryError('stepCap', tooMany(relation.most));
  const names = plan.outputs.map((o) => o.name);
  const nameOf = (column: string): string => names[Number(column.slice(1)) - 1 - calls.length] ?? '';
  const caller = operatorCallerOf(input);
  const results = new Map<string, readonly unknown[]>();
  for (const [i, call] of calls.entries()) {
    const textColumn = nameOf(relation.operators[i]?.of ?? '');
    const texts = rows.map((row) => row.get(textColumn) ?? null);
    const values = await content.runOverTexts(call, texts, caller);
    const key = relation.key === null ? null : nameOf(relation.key);
    results.set(
      call.use.column,
      call.use.operator === 'DEDUP' ? values.map((v) => replaceIndexByKey(v, rows, key)) : values,
    );
  }
  return { ...NO_ROWS, json: await json(relation, rows, nameOf, results) };
}

function tooMany(limit: number) {
  const hint =
    'narrow WHERE, or page by key: WHERE id > the last one ORDER BY id LIMIT n, for RANK, DEDUP, OUTLIER and CLUSTER in a derived table';
  return { what: 'what the operators would work on', limit, unit: 'rows', hint };
}

/** DEDUP identifies the first row of a group by its index. Replaces the index with that row's key. */
function replaceIndexByKey(value: unknown, rows: readonly TextRow[], key: string | null): unknown {
  if (typeof value !== 'object' || value === null || !('of' in value)) return value;
  const of = value.of === null || key === null ? null : (rows[Number(value.of)]?.get(key) ?? null);
  return { ...value, of };
}

/** Amount of text processed between two yields to the event loop, in UTF-16 code units. */
const CHARACTERS_PER_TURN = 1_000_000;

async function json(
  { columns }: OperatedRuntime['relation'],
  rows: readonly TextRow[],
  nameOf: (column: string) => string,
  results: ReadonlyMap<string, readonly unknown[]>,
): Promise<string> {
  const names = columns.map((c) => c.name).filter((name) => name !== ORDINAL);
  const copied = names.filter((name) => !results.has(name)).map((name) => [name, nameOf(name)] as const);
  const computed = [...results].filter(([name]) => names.includes(name));
  const texts: string[] = [];
  let length = 0;
  for (const [index, row] of rows.entries()) {
    const fields: Record<string, unknown> = { [ORDINAL]: index + 1 };
    for (const [name, output] of copied) fields[name] = row.get(output) ?? null;
    for (const [name, values] of computed) fields[name] = values[index] ?? null;
    const text = JSON.stringify(fields);
    texts.push(text);
    length += text.length;
    if (length < CHARACTERS_PER_TURN) continue;
    length = 0;
    await setImmediate();
  }
  return `[${texts.join()}]`;
}
