import type { ManifestDocument } from './document.js';
import { frozenMap } from './frozen-map.js';
import type { Manifest } from './manifest.js';

/** Parts of a manifest whose members may say why they should not be used any more. */
export const DEPRECABLE = ['entities', 'relationships', 'bridges', 'facets', 'metrics'] as const;

/** The reasons that a document gives, by `section.name`. */
export function deprecatedIn(document: ManifestDocument): ReadonlyMap<string, string> {
  return frozenMap(
    DEPRECABLE.flatMap((section) =>
      Object.entries(document[section] ?? {}).flatMap(
        ([name, { deprecated }]): readonly [string, string][] =>
          deprecated === undefined ? [] : [[`${section}.${name}`, deprecated]],
      ),
    ),
  );
}

/** Why a member should not be used any more; null where it may. */
export function deprecationOf(
  { deprecated }: Manifest,
  section: (typeof DEPRECABLE)[number],
  name: string,
): string | null {
  return deprecated.get(`${section}.${name}`) ?? null;
}
