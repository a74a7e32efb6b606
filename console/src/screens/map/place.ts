import { MOST_DRAWN, type PictureScope } from './graph/picture.js';

/** The part of the map that is shown; stored in the address so that links work. */
export interface MapPlace {
  /** The thing shown in the panel. */
  readonly at: string | null;
  /** The column that was found by a search. */
  readonly column: string | null;
  /** Cluster, or thing whose neighbourhood is drawn; null for the whole map. */
  readonly within: string | null;
}

export function mapPlaceOf(parameters: URLSearchParams): MapPlace {
  return { at: parameters.get('at'), column: parameters.get('column'), within: parameters.get('in') };
}

export function parametersOf({ at, column, within }: MapPlace): Readonly<Record<string, string>> {
  return {
    ...(at === null ? {} : { at }),
    ...(column === null ? {} : { column }),
    ...(within === null ? {} : { in: within }),
  };
}

/** Scope to draw for a place on a map of `total` things; on a large map, a thing with its neighbourhood only. */
export function scopeOf({ at, within }: MapPlace, total: number): PictureScope {
  if (within?.startsWith('cluster:') === true) return { kind: 'cluster', id: within };
  if (within !== null) return { kind: 'around', id: within };
  return at !== null && total > MOST_DRAWN ? { kind: 'around', id: at } : { kind: 'all' };
}

/** Scope as written in the address. */
export function withinOf(scope: PictureScope): string | null {
  return scope.kind === 'all' ? null : scope.id;
}
