import type { Manifest } from '../../model/manifest/index.js';

/** Of the objects of a plan, what should not be used any more, as a member of an answer; none where there is nothing. */
export function deprecatedIn(
  objects: readonly string[],
  { deprecated, bridges }: Manifest,
): { readonly deprecated?: readonly { readonly object: string; readonly reason: string }[] } {
  const found = objects.flatMap((object) => {
    const reason = deprecated.get(pathOf(object, bridges));
    return reason === undefined ? [] : [{ object, reason }];
  });
  return found.length === 0 ? {} : { deprecated: found };
}

/** The `section.name` of what a plan calls `osl.entities.<name>`, `osl.facets.<name>` or `osl.metrics.<name>`. */
function pathOf(object: string, bridges: Manifest['bridges']): string {
  const [, section, name = ''] = object.split('.');
  return `${bridges.has(name) ? 'bridges' : section}.${name}`;
}
