import { identifier } from 'osl-compiler/sql-text';
import type { ViewerMark } from './graph/difference.js';
import type { MapObject, MapObjectKind, VisibleSight } from './graph/model.js';

/** Names of the kinds of objects, as shown in the list, the picture and the panel. */

export const KIND_WORDS: Readonly<Record<MapObjectKind, { readonly one: string; readonly many: string }>> = {
  entity: { one: 'entity', many: 'entities' },
  bridge: { one: 'bridge', many: 'bridges' },
  facet: { one: 'facet', many: 'facets' },
  metric: { one: 'metric', many: 'metrics' },
};

export const SIGHT_WORDS: Readonly<Record<VisibleSight, string>> = {
  clear: 'in the clear',
  partly_masked: 'masked in some rows',
  masked: 'masked',
  aggregates: 'aggregates only',
};

export function sightWord(sight: VisibleSight | null): string {
  return sight === null ? 'not at all' : SIGHT_WORDS[sight];
}

/** Symbols shown before names in the picture and the lists, so that differences never depend on colour alone. */
export const MARK_SIGNS: Readonly<Record<ViewerMark, string>> = {
  same: '',
  differs: '≠',
  first: '◧',
  second: '◨',
};

export function markWords(mark: ViewerMark, first: string, second: string): string {
  switch (mark) {
    case 'same':
      return 'the same for both';
    case 'differs':
      return 'not seen alike';
    case 'first':
      return `only ${first} sees it`;
    case 'second':
      return `only ${second} sees it`;
  }
}

/** Maximum number of columns named in a generated query, so that it fits on a screen. */
const MOST_COLUMNS = 8;

/** Returns an example query for an object: an entity's columns, or the object's first example; null if it has none. */
export function questionFor({ kind, name, columns, examples }: MapObject): string | null {
  const rows = columns.filter((c) => c.sight !== 'aggregates');
  if (kind !== 'entity' || rows.length === 0) return examples[0] ?? null;
  const list = rows.slice(0, MOST_COLUMNS).map((c) => identifier(c.name));
  return `select ${list.join(', ')}\nfrom osl.entities.${identifier(name)}\nlimit 100`;
}
