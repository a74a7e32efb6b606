import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { columnId, tableOf } from './choose.js';
import { lookOf } from './personal.js';
import type { FlowSource, ViewFlows } from './view-flows.js';

/** What is shown of a column to who may see its table. */
export type Treatment = 'clear' | 'masked' | 'left out';

/** `schema.table.column` → what becomes of it; a column that is not there is clear. */
export type Treatments = ReadonlyMap<string, Treatment>;

/**
 * What names suggest: personal data are masked, credentials left out. A foreign key and what it refers to are treated
 * alike, so that a mask does not end where the same value goes by another name.
 */
export function suggestTreatments(candidates: readonly AdoptionCandidate[]): Treatments {
  const found = new Map<string, Treatment>();
  for (const candidate of candidates) {
    for (const { name } of candidate.columns) {
      const look = lookOf(candidate.table, name);
      if (look !== 'plain') found.set(columnId(candidate, name), look === 'secret' ? 'left out' : 'masked');
    }
  }
  return spread(found, candidates);
}

/** Carries treatments into views: a column of one is treated as what it is made of, and left out where a part of that is. */
export function alongViews(
  treatments: Treatments,
  flows: ViewFlows,
  candidates: readonly AdoptionCandidate[],
): Treatments {
  const out = new Map(treatments);
  const chosen = new Set(candidates.map(tableOf));
  const treated = ({ id, table, column }: FlowSource): Treatment => {
    const own = out.get(id);
    if (own !== undefined || chosen.has(id.slice(0, id.length - column.length - 1))) return own ?? 'clear';
    const look = lookOf(table, column);
    return look === 'plain' ? 'clear' : look === 'secret' ? 'left out' : 'masked';
  };
  // A view may be made of views.
  for (let changed = true; changed; ) {
    changed = false;
    for (const [id, made] of flows) {
      const before = out.get(id) ?? 'clear';
      const found = made.map(treated);
      const now = found.includes('left out') ? 'left out' : found.includes('masked') ? 'masked' : 'clear';
      if (now === 'clear' || now === before || before === 'left out') continue;
      out.set(id, now);
      changed = true;
    }
  }
  return out;
}

/** Carries masks along foreign keys, both ways, until nothing changes. */
export function spread(treatments: Treatments, candidates: readonly AdoptionCandidate[]): Treatments {
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
