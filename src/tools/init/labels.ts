import type { Candidate } from '../../model/discovery/index.js';
import { tableOf } from './choose.js';
import { lookOf } from './personal.js';

/** What is shown of a column to who may see its table. */
export type Treatment = 'clear' | 'masked' | 'left out';

/** `schema.table.column` → what becomes of it; a column that is not there is clear. */
export type Treatments = ReadonlyMap<string, Treatment>;

export function columnId(table: Pick<Candidate, 'schema' | 'table'>, column: string): string {
  return `${tableOf(table)}.${column}`;
}

/**
 * What names suggest: personal data are masked, credentials left out. A foreign key and what it refers to are treated
 * alike, so that a mask does not end where the same value goes by another name.
 */
export function suggestTreatments(candidates: readonly Candidate[]): Treatments {
  const found = new Map<string, Treatment>();
  for (const candidate of candidates) {
    for (const { name } of candidate.columns) {
      const look = lookOf(candidate.table, name);
      if (look !== 'plain') found.set(columnId(candidate, name), look === 'secret' ? 'left out' : 'masked');
    }
  }
  return spread(found, candidates);
}

/** Carries masks along foreign keys, both ways, until nothing changes. */
export function spread(treatments: Treatments, candidates: readonly Candidate[]): Treatments {
  const out = new Map(treatments);
  const links = candidates.flatMap((candidate) =>
    candidate.foreign_keys.flatMap(({ columns, references }) =>
      columns.map(
        (column, i) =>
          [columnId(candidate, column), columnId(references, references.columns[i] ?? '')] as const,
      ),
    ),
  );
  for (let before = -1; before !== out.size; ) {
    before = out.size;
    for (const [from, to] of links) {
      if (out.has(from) && !out.has(to)) out.set(to, 'masked');
      if (out.has(to) && !out.has(from)) out.set(from, 'masked');
    }
  }
  return out;
}
