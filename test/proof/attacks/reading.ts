import type { Cell, Reply } from '../../support/frontends.js';
import { leaksIn } from './shop.js';
import type { Expected } from './table.js';

/** Readers of attacks and their answers: guesses, orders, hashes. */

/** A guess in a text: both its readings. One reading where it has none. */
export function readings(text: string): readonly string[] {
  const guess = /⟨([^|⟩]*)\|([^⟩]*)⟩/g;
  if (!text.includes('⟨')) return [text];
  return [text.replace(guess, '$1'), text.replace(guess, '$2')];
}

const HASH = /\b[0-9a-f]{64}\b/g;

export interface Shown {
  readonly code?: string;
  readonly sqlstate?: string;
  readonly rows?: readonly (readonly Cell[])[];
}

/** Outcome of a reply, in the form of `Expected`. Rows without an order are sorted. */
export function shown({ outcome }: Reply, text: string): Shown {
  if (outcome.kind === 'refused') return { code: outcome.code, sqlstate: outcome.sqlstate };
  return {
    rows: inOrder(
      text,
      outcome.rows.map((r) => r.map((c) => c?.replace(HASH, '<hash>') ?? null)),
    ),
  };
}

export function inOrder(text: string, rows: readonly (readonly Cell[])[]): readonly (readonly Cell[])[] {
  if (/order by [^()]*$/i.test(text)) return rows;
  return [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

export function expectedOf(expected: Expected, text: string, reading: number): Shown {
  if ('code' in expected) return expected;
  const read = (c: Cell): Cell => (c === null ? null : (readings(c)[reading] ?? readings(c)[0] ?? c));
  return {
    rows: inOrder(
      text,
      expected.rows.map((r) => r.map(read)),
    ),
  };
}

/** Everything that the caller can tell apart in two replies. */
export function observable({ outcome, types }: Reply): unknown {
  return { outcome, types };
}

/** Answers that rightly show what only some may not see: a friend's cell in the clear, a guess selected as such. */
export function mayShow(expected: Expected): boolean {
  return 'rows' in expected && leaksIn(Buffer.from(JSON.stringify(expected.rows))).length > 0;
}

export function echoes(expected: Expected): boolean {
  return 'rows' in expected && JSON.stringify(expected.rows).includes('⟨');
}

/** A text as the name of a test. */
export const brief = (text: string): string =>
  text.length > 150 ? `${text.slice(0, 100)}… (${text.length} characters)` : text;
