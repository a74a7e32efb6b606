import type { LoadHook } from 'node:module';

/** Runs in the thread that Node loads modules by: puts the faults of `faulty.ts` into the modules that have them. */
type Changes = readonly (readonly [url: string, texts: readonly (readonly [from: string, to: string])[]])[];

let changes: ReadonlyMap<string, readonly (readonly [string, string])[]> = new Map();

export function initialize(given: Changes): void {
  changes = new Map(given);
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context);
  const texts = changes.get(url);
  if (texts === undefined) return loaded;
  let source = String(loaded.source);
  for (const [from, to] of texts) {
    const times = source.split(from).length - 1;
    if (times !== 1) throw new Error(`${url}: \`${from}\` stands ${times} times`);
    source = source.replace(from, () => to);
  }
  return { ...loaded, source };
};
