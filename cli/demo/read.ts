import { countDependents, dependenciesOf } from './dependencies.js';
import { readLock } from './lock.js';
import { type InstalledPackage, readPackage } from './package.js';
import { creditsOf } from './people.js';
import type { OnProgress, SupplyChain } from './rows.js';

/** Packages read at a time; each has a few files open. */
const AT_ONCE = 16;

/**
 * The supply chain of the installation in `root`: its package-lock.json and what is on the disk under
 * node_modules. Nothing is invented and nothing leaves the machine.
 *
 * @param onProgress packages read so far, and of how many
 * @throws DemoProblem where there is no usable lock file
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

/** `work` on every item, `limit` at a time; results in the order of the items. */
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
