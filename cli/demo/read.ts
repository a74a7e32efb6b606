import { join } from 'node:path';
import {
  asText,
  creditsOf,
  type InstalledPackage,
  type LockEntry,
  objectAt,
  readLock,
  readPackage,
} from './package.js';
import {
  DemoProblem,
  type DependencyKind,
  type DependencyRow,
  type OnProgress,
  type SupplyChain,
} from './tables.js';

/** Number of packages read concurrently; each needs a few open files. */
const AT_ONCE = 16;

/**
 * Reads the supply chain of the installation in `root` from package-lock.json and the files below node_modules.
 *
 * @param onProgress packages read so far, and total
 * @throws DemoProblem if there is no usable lock file, or none of its packages is on disk
 */
export async function readSupplyChain(root: string, onProgress: OnProgress = () => {}): Promise<SupplyChain> {
  const { fingerprint, entries } = await readLock(root);
  let done = 0;
  const read = await mapBounded(entries, AT_ONCE, async (entry) => {
    const found = await readPackage(root, entry);
    onProgress(++done, entries.length);
    return found;
  });
  const installed = read.filter((p): p is InstalledPackage => p !== null);
  if (installed.length === 0)
    throw new DemoProblem(
      `none of the ${entries.length} packages of the lock file are in ${join(root, 'node_modules')}: run \`npm ci\` in ${root}`,
    );
  const paths = new Set(installed.map((p) => p.entry.path));
  const dependencies = dependenciesOf(
    installed.map((p) => p.entry),
    paths,
  );
  const dependents = countDependents(dependencies);
  return {
    fingerprint,
    packages: installed.map(({ row }) => ({ ...row, dependents: dependents.get(row.path) ?? 0 })),
    ...creditsOf(installed.map(({ entry, people }) => [entry.path, people])),
    dependencies,
    documents: installed.flatMap((p) => p.documents),
  };
}

/** Runs `work` on every item, at most `limit` at a time; returns results in the order of the items. */
async function mapBounded<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Map<number, R>();
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [i, item] of queue) results.set(i, await work(item));
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
}

/** Keys that list dependencies. A dependency listed under two keys makes two rows. */
const KEYS: readonly (readonly [string, DependencyKind])[] = [
  ['dependencies', 'prod'],
  ['devDependencies', 'dev'],
  ['peerDependencies', 'peer'],
  ['optionalDependencies', 'optional'],
];

/** Dependencies that Node would resolve; missing ones (optional or peer) are left out. */
function dependenciesOf(
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

/** Resolves like Node: looks in `node_modules` of the folder, then of each folder above it. */
function resolve(from: string, name: string, installed: ReadonlySet<string>): string | null {
  const folders = from.split('/');
  for (let depth = folders.length; depth >= 0; depth--) {
    if (folders[depth - 1] === 'node_modules') continue;
    const candidate = [...folders.slice(0, depth), 'node_modules', name].join('/');
    if (installed.has(candidate)) return candidate;
  }
  return null;
}

function countDependents(rows: readonly DependencyRow[]): ReadonlyMap<string, number> {
  const dependents = new Map<string, Set<string>>();
  for (const { from_path, to_path } of rows) {
    const seen = dependents.get(to_path);
    if (seen === undefined) dependents.set(to_path, new Set([from_path]));
    else seen.add(from_path);
  }
  return new Map([...dependents].map(([path, from]) => [path, from.size]));
}
