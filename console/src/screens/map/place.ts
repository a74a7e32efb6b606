import { MOST_DRAWN, type PictureScope } from './graph/picture.js';

/** The part of the map that is shown; stored in the address so that links work. */
export interface MapPlace {
  /** Id of the object (entity, bridge, facet or metric) shown in the panel; null if the panel is closed. */
  readonly at: string | null;
  /** Name of the column to highlight because a search found it; null if there is nothing to highlight. */
  readonly column: string | null;
  /**
   * Id of the cluster, or of the object whose neighbourhood is drawn. Null for the whole map or, on a large map, for the
   * neighbourhood of `at`.
   */
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

/** Returns the scope to draw. A map of over `MOST_DRAWN` objects shows the neighbourhood of `at`, not everything. */
export function scopeOf({ at, within }: MapPlace, total: number): PictureScope {
  if (within?.startsWith('cluster:') === true) return { kind: 'cluster', id: within };
  if (within !== null) return { kind: 'around', id: within };
  return at !== null && total > MOST_DRAWN ? { kind: 'around', id: at } : { kind: 'all' };
}

/** Returns `within` for a scope; null for the whole map. */
export function withinOf(scope: PictureScope): string | null {
  return scope.kind === 'all' ? null : scope.id;
}
