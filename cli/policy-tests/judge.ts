import { isDeepStrictEqual } from 'node:util';
import { mayBeRedacted } from 'osl-compiler';
import type { Expectation, JsonRow, PolicyTest } from './document.js';
import type { TestOutcome } from './observe.js';

export function judge({ expect }: PolicyTest, observed: TestOutcome): readonly string[] {
  switch (observed.kind) {
    case 'visibility':
      return differing('sees', expect.sees, observed.sees);
    case 'refusal': {
      const wanted = expect.decision ?? 'allow';
      return wanted === observed.code
        ? []
        : [`decision: expected ${wanted}, got ${observed.code}: ${observed.message}`];
    }
    case 'answer':
      return judgeAnswer(expect, observed);
    default: {
      const unknown: never = observed;
      return unknown;
    }
  }
}

function judgeAnswer(
  expect: Expectation,
  { plan, sql, rows }: Extract<TestOutcome, { kind: 'answer' }>,
): readonly string[] {
  const wanted = expect.decision ?? 'allow';
  if (wanted !== 'allow') return [`decision: expected ${wanted}, got allow`];
  const names = plan.outputs.map((o) => o.name);
  const masked = plan.outputs.filter(mayBeRedacted).map((o) => o.name);
  return [
    ...differing('columns', expect.columns, names),
    ...differing('masked', expect.masked && [...expect.masked].sort(), masked.sort()),
    ...differing('sql', expect.sql && oneSpaced(expect.sql), oneSpaced(sql)),
    ...differing('row_count', expect.row_count, rows.length),
    ...(expect.rows === undefined ? [] : judgeRows(expect.rows, rows, expect.in_order === true)),
  ];
}

function differing(what: string, wanted: unknown, got: unknown): readonly string[] {
  if (wanted === undefined || isDeepStrictEqual(wanted, got)) return [];
  return [`${what}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`];
}

function oneSpaced(sql: string): string {
  return sql.trim().replace(/\s+/g, ' ');
}

const TOLD = 3;

function judgeRows(wanted: readonly JsonRow[], got: readonly JsonRow[], inOrder: boolean): readonly string[] {
  if (inOrder) {
    const at = Array.from({ length: Math.max(wanted.length, got.length) }, (_, i) => i).find(
      (i) => canonical(wanted[i]) !== canonical(got[i]),
    );
    if (at === undefined) return [];
    return [`rows: row ${at + 1}: expected ${canonical(wanted[at])}, got ${canonical(got[at])}`];
  }
  const missing = without(wanted, got);
  const surplus = without(got, wanted);
  return [
    ...missing.slice(0, TOLD).map((row) => `rows: expected, and not there: ${row}`),
    ...surplus.slice(0, TOLD).map((row) => `rows: unexpected row: ${row}`),
  ];
}

function without(some: readonly JsonRow[], others: readonly JsonRow[]): readonly string[] {
  const left = new Map<string, number>();
  for (const row of others) left.set(canonical(row), (left.get(canonical(row)) ?? 0) + 1);
  return some.map(canonical).filter((row) => {
    const count = left.get(row) ?? 0;
    if (count > 0) left.set(row, count - 1);
    return count === 0;
  });
}

function canonical(value: unknown): string {
  if (value === undefined) return 'no row';
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
