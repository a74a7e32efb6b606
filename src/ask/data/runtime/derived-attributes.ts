import { type StoredName, stored } from 'osl-compiler';
import type { TextRow } from './step.js';

interface DerivedValue {
  readonly value: unknown;
  readonly support: ReadonlySet<string>;
}

/** Chosen values by entity key, then by attribute name. */
export type ByKey = ReadonlyMap<string, ReadonlyMap<string, DerivedValue>>;

interface DerivedCandidate {
  readonly attribute: string;
  readonly document: string;
  readonly score: number;
  readonly value: unknown;
  readonly needed: number;
  /** Ids of the chunks that support the value and that the caller may see. */
  readonly support: Set<string>;
}

/**
 * Chooses the values of derived attributes by key. Each document contributes one value, which counts only if the
 * caller may see all chunks that support it. The highest score wins, then the lowest document id. Hidden documents
 * have no influence.
 */
export function chooseAttributes(rows: readonly TextRow[], keyColumn: string): ByKey {
  const chosen = new Map<string, Map<string, DerivedValue>>();
  for (const [key, candidates] of candidatesByKey(rows, keyColumn)) {
    const complete = candidates.filter((c) => c.support.size === c.needed).sort(byScore);
    const attributes = new Map<string, DerivedValue>();
    for (const { attribute, value, support } of complete)
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
    const keyCandidates = byKey.get(key) ?? new Map<string, DerivedCandidate>();
    byKey.set(key, keyCandidates);
    const name = JSON.stringify([text('attribute'), text('doc_id')]);
    const candidate = keyCandidates.get(name) ?? {
      attribute: text('attribute'),
      document: text('doc_id'),
      score: Number(text('score')),
      value: JSON.parse(text('value')),
      needed: Number(text('support')),
      support: new Set(),
    };
    keyCandidates.set(name, candidate);
    candidate.support.add(text('chunk_id'));
  }
  return new Map([...byKey].map(([key, candidates]) => [key, [...candidates.values()]]));
}

function byScore(a: DerivedCandidate, b: DerivedCandidate): number {
  return b.score - a.score || (a.document < b.document ? -1 : a.document > b.document ? 1 : 0);
}
