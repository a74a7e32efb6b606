import type { Manifest } from '../manifest/index.js';

/** Of these full names, what should not be used any more, as a member of an answer; none where there is nothing. */
export function deprecatedIn(
  objects: readonly string[],
  { deprecated, bridges }: Manifest,
): { readonly deprecated?: readonly { readonly object: string; readonly reason: string }[] } {
  const found = objects.flatMap((object) => {
    const [, kind = '', name = ''] = object.split('.');
    const reason = deprecated.get(`${bridges.has(name) ? 'bridges' : kind}.${name}`);
    return reason === undefined ? [] : [{ object, reason }];
  });
  return found.length === 0 ? {} : { deprecated: found };
}
