import type { Graph, MapObject, MapObjectKind } from './model.js';

/** A search match: an object (entity, bridge, facet or metric), or one of its columns. */
export interface SearchHit {
  readonly id: string;
  readonly kind: MapObjectKind;
  readonly name: string;
  /** The column that matched; null if the object itself matched. */
  readonly column: string | null;
  /** The synonym that matched, or `description`; null if the name matched. */
  readonly via: string | null;
}

export interface MapSearchResult {
  readonly found: readonly SearchHit[];
  /** Total number of matches. */
  readonly total: number;
}

interface ScoredHit extends SearchHit {
  readonly score: number;
}

/** Returns the best `most` matches: names before synonyms before descriptions, and objects before similar columns. */
export function searchIn(graph: Graph, term: string, most: number): MapSearchResult {
  const wanted = term.trim().toLowerCase();
  if (wanted === '') return { found: [], total: 0 };
  const all = [...graph.objects.values()].flatMap((object) => scoresOf(object, wanted));
  all.sort((a, b) => b.score - a.score || a.name.length - b.name.length || (a.name < b.name ? -1 : 1));
  const found = all
    .slice(0, most)
    .map(({ id, kind, name, column, via }) => ({ id, kind, name, column, via }));
  return { found, total: all.length };
}

function scoresOf(object: MapObject, wanted: string): readonly ScoredHit[] {
  const own = { id: object.id, kind: object.kind, name: object.name };
  const columns = [...object.columns, ...object.derived].flatMap((c): readonly ScoredHit[] => {
    const score = scoreOf(c.name, wanted) || synonymScore(c.synonyms, wanted);
    return score === 0
      ? []
      : [{ ...own, column: c.name, via: viaOf(c.name, c.synonyms, wanted), score: score - 10 }];
  });
  const score = scoreOf(object.name, wanted) || synonymScore(object.synonyms, wanted);
  if (score > 0)
    return [{ ...own, column: null, via: viaOf(object.name, object.synonyms, wanted), score }, ...columns];
  if (columns.length > 0) return columns;
  const said = object.description?.toLowerCase().includes(wanted) === true;
  return said ? [{ ...own, column: null, via: 'description', score: 5 }] : [];
}

function scoreOf(name: string, wanted: string): number {
  const lower = name.toLowerCase();
  if (lower === wanted) return 100;
  if (lower.startsWith(wanted)) return 80;
  return lower.includes(wanted) ? 60 : 0;
}

function synonymScore(synonyms: readonly string[], wanted: string): number {
  return synonyms.some((s) => s.toLowerCase().includes(wanted)) ? 40 : 0;
}

function viaOf(name: string, synonyms: readonly string[], wanted: string): string | null {
  if (name.toLowerCase().includes(wanted)) return null;
  return synonyms.find((s) => s.toLowerCase().includes(wanted)) ?? null;
}
