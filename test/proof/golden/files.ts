import { readdirSync } from 'node:fs';

/** The folder of the golden files, seen from `dist/test/proof/golden`. */
export const CASES = new URL('../../../../test/proof/golden/cases/', import.meta.url);

export function caseFiles(): readonly string[] {
  return readdirSync(CASES)
    .filter((f) => f.endsWith('.txt'))
    .sort();
}

/** The cases of RETRIEVE, which a service answers. */
export const RETRIEVED = new URL('../../../../test/proof/golden/retrieved/options.txt', import.meta.url);
