import type { PolicySnapshot } from '../../../policy/index.js';
import type { ManifestDifference } from '../../model/authoring/index.js';

/** What an author should know: what was added, and is granted to nobody. */
export function ungranted({
  diff,
  snapshot,
}: {
  readonly diff: ManifestDifference;
  readonly snapshot: PolicySnapshot;
}): readonly string[] {
  return diff.changes.flatMap(({ change, kind, name }): readonly string[] => {
    const granted = [...snapshot.roles.values()].some((role) => role.grants.has(name));
    if (change !== 'added' || granted || !GRANTED_KINDS.has(kind)) return [];
    return [`${kind} ${name}: no role has a grant on it, so nobody sees it until the policy gives one`];
  });
}

const GRANTED_KINDS: ReadonlySet<string> = new Set(['entity', 'bridge', 'facet']);
