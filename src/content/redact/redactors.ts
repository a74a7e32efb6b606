import type { SystemQueries } from '../../engine/index.js';
import type { Facet, FacetVersion, Manifest } from '../../model/manifest/index.js';
import { openRedactor, type SkippedColumn } from './dictionary.js';
import { readKeyDictionaries } from './key-dictionary.js';
import type { Exception } from './matcher.js';
import { type Redactor, redactorOf } from './redactor.js';

/** The rules by which the documents of one facet version are redacted. */
export interface Redactors {
  /** The rules of each document with one of `keys`; null stands for a document without. */
  forKeys(keys: readonly (string | null)[]): Promise<(key: string | null) => Redactor>;
  /** Values that were looked for until now, and those that were not. */
  counted(): { readonly values: number; readonly exceptions: Readonly<Partial<Record<Exception, number>>> };
  /** Declared columns whose type cannot be looked for. */
  readonly skipped: readonly SkippedColumn[];
}

/** One dictionary for all, or one for each key, as the facet says. */
export async function openRedactors(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: FacetVersion,
  minLength: number,
): Promise<Redactors> {
  const connector = manifest.connectors.get(facet.connector);
  if (connector === undefined) throw new TypeError('a facet of the manifest has a connector');
  return facet.dictionary === 'tenant'
    ? ofTenant(await openRedactor(system, connector, version, minLength))
    : ofKeys(system, manifest, facet, version, minLength);
}

function ofTenant({ redactor, skipped }: Awaited<ReturnType<typeof openRedactor>>): Redactors {
  return {
    forKeys: async () => () => redactor,
    counted: () => ({
      values: redactor.matcher.size,
      exceptions: Object.fromEntries(redactor.matcher.exceptions),
    }),
    skipped,
  };
}

function ofKeys(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: FacetVersion,
  minLength: number,
): Redactors {
  const exceptions = new Map<Exception, number>();
  const nobody = redactorOf(version, [], minLength);
  let values = 0;
  return {
    async forKeys(keys) {
      const named = [...new Set(keys.filter((k) => k !== null))];
      const read = await readKeyDictionaries(system, manifest, facet, version, named);
      const rules = new Map([...read].map(([key, own]) => [key, redactorOf(version, own, minLength)]));
      for (const { matcher } of rules.values()) {
        values += matcher.size;
        for (const [why, n] of matcher.exceptions) exceptions.set(why, (exceptions.get(why) ?? 0) + n);
      }
      return (key) => (key === null ? nobody : (rules.get(key) ?? nobody));
    },
    counted: () => ({ values, exceptions: Object.fromEntries(exceptions) }),
    skipped: [],
  };
}
