import type { SystemQueries } from '../../engine/index.js';
import type { DeclaredFacetVersion, Facet, Manifest } from '../../model/manifest/index.js';
import { detectorsOf } from './detectors/detectors.js';
import { openRedactor, type SkippedColumn } from './dictionary.js';
import { readKeyDictionaries } from './key-dictionary.js';
import type { Exception } from './matcher.js';
import { type RedactionRules, type Redactor, redactorOf } from './redactor.js';

/** Redactors for the documents of one facet version. */
export interface Redactors {
  /** Redactor for each of `keys`; null: documents without a key. */
  forKeys(keys: readonly (string | null)[]): Promise<(key: string | null) => Redactor>;
  /** Values searched for so far, and those that were not. */
  counted(): { readonly values: number; readonly exceptions: Readonly<Partial<Record<Exception, number>>> };
  /** Declared columns whose type cannot be searched for. */
  readonly skipped: readonly SkippedColumn[];
}

/**
 * One dictionary for all documents, or one per key, as the facet declares.
 *
 * @throws ContentError `unknownDetector`, `unknownCountry`, `notInstalled`
 */
export async function openRedactors(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  minLength: number,
): Promise<Redactors> {
  const connector = manifest.connectors.get(facet.connector);
  if (connector === undefined) throw new TypeError('a facet of the manifest has a connector');
  const { redact } = version;
  const rules = { redact, detectors: await detectorsOf(version), exceptions: facet.exceptions };
  return facet.dictionary === 'tenant'
    ? ofTenant(await openRedactor(system, connector, version, rules, minLength))
    : ofKeys(system, manifest, facet, version, rules, minLength);
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
  version: DeclaredFacetVersion,
  rules: RedactionRules,
  minLength: number,
): Redactors {
  const exceptions = new Map<Exception, number>();
  const nobody = redactorOf(rules, [], minLength);
  let values = 0;
  return {
    async forKeys(keys) {
      const named = [...new Set(keys.filter((k) => k !== null))];
      const read = await readKeyDictionaries(system, manifest, facet, version, named);
      const byKey = new Map([...read].map(([key, own]) => [key, redactorOf(rules, own, minLength)]));
      for (const { matcher } of byKey.values()) {
        values += matcher.size;
        for (const [why, n] of matcher.exceptions) exceptions.set(why, (exceptions.get(why) ?? 0) + n);
      }
      return (key) => (key === null ? nobody : (byKey.get(key) ?? nobody));
    },
    counted: () => ({ values, exceptions: Object.fromEntries(exceptions) }),
    skipped: [],
  };
}
