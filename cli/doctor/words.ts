import { DEFAULT_MIN_LENGTH, openRedactors, probableWords } from '../../src/content/index.js';
import { type Survey, surveyPostgres } from '../../src/engine/index.js';
import {
  type Connector,
  type Facet,
  type Manifest,
  systemUrlVariable,
} from '../../src/model/manifest/index.js';
import { connectorUrl } from '../../src/service/connector-url.js';
import { wordText } from '../../src/service/indexing/word-text.js';
import { type DoctorFinding, warn } from './finding.js';

const HINT = 'values that are words can be listed under `exceptions`; then `osl index`';

/**
 * Labelled values that probably are words, of facets on native servers: with the system credentials, whose owner may
 * see them. Where these cannot be used another finding says so.
 */
export async function wordFindings(manifest: Manifest): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  for (const connector of manifest.connectors.values()) {
    const facets = [...manifest.facets.values()].filter((f) => f.connector === connector.name);
    const survey = facets.length === 0 || connector.kind === 'pglite' ? null : await surveyOf(connector);
    if (survey === null) continue;
    try {
      for (const facet of facets)
        for (const text of await wordsOf(survey, manifest, facet))
          findings.push(warn(`facet ${facet.name}`, text, HINT));
    } catch {
      // Sources that cannot be read are findings of the database.
    } finally {
      survey.close();
    }
  }
  return findings;
}

async function surveyOf(connector: Connector): Promise<Survey | null> {
  try {
    const url = await connectorUrl(process.env, systemUrlVariable(connector));
    return url === null ? null : await surveyPostgres(url);
  } catch {
    return null;
  }
}

async function wordsOf({ system }: Survey, manifest: Manifest, facet: Facet): Promise<ReadonlySet<string>> {
  const texts = new Set<string>();
  for (const version of facet.versions.values()) {
    if (version.redact.length === 0) continue;
    const redactors = await openRedactors(system, manifest, facet, version, DEFAULT_MIN_LENGTH);
    for (const word of await probableWords(system, facet, redactors)) texts.add(wordText(facet.name, word));
  }
  return texts;
}
