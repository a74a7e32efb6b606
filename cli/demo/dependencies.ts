import { asText, objectAt } from './json.js';
import type { LockEntry } from './lock.js';
import type { DependencyKind, DependencyRow } from './rows.js';

/** A later kind does not replace an earlier one: each is a row of its own. */
const KEYS: readonly (readonly [string, DependencyKind])[] = [
  ['dependencies', 'prod'],
  ['devDependencies', 'dev'],
  ['peerDependencies', 'peer'],
  ['optionalDependencies', 'optional'],
];

/** What each package needs and Node would find; what is not installed (an absent optional or peer) is left out. */
export function dependenciesOf(
  entries: readonly LockEntry[],
  installed: ReadonlySet<string>,
): readonly DependencyRow[] {
  return entries.flatMap((entry) =>
    KEYS.flatMap(([key, kind]) =>
      Object.entries(objectAt(entry.facts, key) ?? {}).flatMap(([name, range]): DependencyRow[] => {
        const to_path = resolve(entry.linkTo ?? entry.path, name, installed);
        return to_path === null
          ? []
          : [{ from_path: entry.path, to_path, kind, range: asText(range) ?? '*' }];
      }),
    ),
  );
}

/** Node's rule: node_modules of the folder itself, then of each folder above it up to the root. */
function resolve(from: string, name: string, installed: ReadonlySet<string>): string | null {
  const folders = from.split('/');
  for (let depth = folders.length; depth >= 0; depth--) {
    if (folders[depth - 1] === 'node_modules') continue;
    const candidate = [...folders.slice(0, depth), 'node_modules', name].join('/');
    if (installed.has(candidate)) return candidate;
  }
  return null;
}

/** Distinct dependents by path. */
export function countDependents(rows: readonly DependencyRow[]): ReadonlyMap<string, number> {
  const dependents = new Map<string, Set<string>>();
  for (const { from_path, to_path } of rows) {
    const seen = dependents.get(to_path);
    if (seen === undefined) dependents.set(to_path, new Set([from_path]));
    else seen.add(from_path);
  }
  return new Map([...dependents].map(([path, from]) => [path, from.size]));
}
