import { type StoredName, stored } from 'osl-compiler';
import type { TextRow } from '../collect.js';

/** Value of a derived attribute, and the chunks that it is derived from. */
interface DerivedValue {
  readonly value: unknown;
  readonly support: ReadonlySet<string>;
}

/** By entity key, then by the attribute's name. */
export type ByKey = ReadonlyMap<string, ReadonlyMap<string, DerivedValue>>;

interface DerivedCandidate {
  readonly attribute: string;
  readonly document: string;
  readonly score: number;
  readonly value: unknown;
  /** Number of chunks that it is derived from. */
  readonly needed: number;
  /** Those of these chunks that the caller may see. */
  readonly support: Set<string>;
}

/**
 * Values of derived attributes by key. Each document offers one; it counts only if the caller may see all chunks that
 * it is derived from. Of those the one with the highest score is chosen, and of equal scores the first by id.
 *
 * So hidden documents do not affect the value: to this caller it is as if they did not exist.
 */
export function chosenAttributes(rows: readonly TextRow[], keyColumn: string): ByKey {
  const chosen = new Map<string, Map<string, DerivedValue>>();
  for (const [key, candidates] of candidatesByKey(rows, keyColumn)) {
    const whole = candidates.filter((c) => c.support.size === c.needed).sort(surestFirst);
    const attributes = new Map<string, DerivedValue>();
    for (const { attribute, value, support } of whole)
      if (!attributes.has(attribute)) attributes.set(attribute, { value, support });
    chosen.set(key, attributes);
  }
  return chosen;
}

function candidatesByKey(
  rows: readonly TextRow[],
  keyColumn: string,
): ReadonlyMap<string, readonly DerivedCandidate[]> {
  const byKey = new Map<string, Map<string, DerivedCandidate>>();
  for (const row of rows) {
    const text = (name: StoredName): string => row.get(stored(name)) ?? '';
    const key = row.get(keyColumn) ?? '';
    const ofKey = byKey.get(key) ?? new Map<string, DerivedCandidate>();
    byKey.set(key, ofKey);
    const name = JSON.stringify([text('attribute'), text('doc_id')]);
    const candidate = ofKey.get(name) ?? {
      attribute: text('attribute'),
      document: text('doc_id'),
      score: Number(text('score')),
      value: JSON.parse(text('value')),
      needed: Number(text('support')),
      support: new Set(),
    };
    ofKey.set(name, candidate);
    candidate.support.add(text('chunk_id'));
  }
  return new Map([...byKey].map(([key, candidates]) => [key, [...candidates.values()]]));
}

function surestFirst(a: DerivedCandidate, b: DerivedCandidate): number {
  return b.score - a.score || (a.document < b.document ? -1 : a.document > b.document ? 1 : 0);
}
