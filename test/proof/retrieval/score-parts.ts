import { memberAt } from '../../support/frontends.js';

/** Columns that a RETRIEVE is asked for, by the argument that asks. */
export const ASKED: ReadonlyMap<string, string> = new Map([
  ['highlight => true', 'highlights'],
  ['explain_score => true', 'score_parts'],
]);

/** What is wrong with what a row says of its score: at each level parts add up to the score, to the last decimal. */
export function partsFault(row: Readonly<Record<string, unknown>>): string | null {
  const parts = row['score_parts'];
  if (parts === undefined) return null;
  const isWhole = memberAt(parts, 'score') === row['score'] && addsUp(parts);
  return isWhole ? null : `the parts of ${JSON.stringify(row)}`;
}

function addsUp(of: unknown): boolean {
  const [score, legs, terms] = ['score', 'legs', 'terms'].map((name) => memberAt(of, name));
  if (Array.isArray(legs) && !(sumOf(legs) === millionths(score) && legs.every(addsUp))) return false;
  return !Array.isArray(terms) || sumOf(terms) === millionths(score);
}

function sumOf(parts: readonly unknown[]): number {
  return parts.reduce<number>((sum, part) => sum + millionths(memberAt(part, 'part')), 0);
}

function millionths(score: unknown): number {
  return Math.round(Number(score) * 1e6);
}
