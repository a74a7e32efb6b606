import { sql } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type { DeclaredFacetVersion, Facet, Manifest } from '../../model/manifest/index.js';
import { openRedactors } from '../redact/redactors.js';
import { DEFAULT_MIN_LENGTH, type StoreState, settingsHash, storeState } from '../store/control.js';
import { STORES } from '../store/ddl.js';
import { contentHash, servedId } from './served-document.js';
import { documentPages } from './source.js';

interface StaleRows {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** Indexing state of a facet version. For the operator only, because it counts rows regardless of policy. */
export interface IndexStatus {
  readonly facet: string;
  readonly version: string;
  /** `stale`: built under redaction or chunking rules that differ from those in the manifest. */
  readonly state: 'missing' | 'building' | 'stale' | 'ready';
  readonly documents: number;
  readonly chunks: number;
  /** See `StoreState.indexedAt`. */
  readonly indexedAt: string | null;
  /** Differences from the source; null unless the store is ready, since otherwise `osl index` builds it anyway. */
  readonly behind: StaleRows | null;
}

const PAGE = 50;

/**
 * Compares a facet version's store with its source, which is read in full. Writes nothing.
 *
 * @throws ContentError `notInstalled`, `unknownDetector`, `unknownCountry`; UpstreamFailure
 */
export async function indexStatus(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
): Promise<IndexStatus> {
  const place = { facet: facet.name, version: version.name };
  const store = await storeState(system, facet.name, version.name);
  if (store === null)
    return { ...place, state: 'missing', documents: 0, chunks: 0, indexedAt: null, behind: null };
  const { documents, chunks, indexedAt } = store;
  const state = stateOf(store, settingsHash(facet, version, DEFAULT_MIN_LENGTH));
  const behind = state === 'ready' ? await staleRows(system, manifest, facet, version) : null;
  return { ...place, state, documents, chunks, indexedAt, behind };
}

function stateOf(store: StoreState, settings: string): 'building' | 'stale' | 'ready' {
  if (store.state === 'building') return 'building';
  return store.settings === settings ? 'ready' : 'stale';
}

async function staleRows(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
): Promise<StaleRows> {
  const redactors = await openRedactors(system, manifest, facet, version, DEFAULT_MIN_LENGTH);
  const place = [facet.name, version.name];
  const [entry] = await system.query(
    sql`select pseudonym_key from ${STORES}.facet where facet = $1 and version = $2`,
    place,
  );
  const pseudonymKey = String(entry?.['pseudonym_key']);
  const rows = await system.query(
    sql`select doc_id, content_hash from ${STORES}.document where facet = $1 and version = $2`,
    place,
  );
  const held = new Map(rows.map((row) => [String(row['doc_id']), String(row['content_hash'])]));
  let [added, changed] = [0, 0];
  for await (const page of documentPages(system, facet, PAGE)) {
    const rules = await redactors.forKeys(page.map((d) => d.key));
    for (const document of page) {
      const redactor = rules(document.key);
      const id = servedId(facet, document.id, redactor, pseudonymKey);
      const known = held.get(id);
      if (known === undefined) added += 1;
      else if (known !== contentHash(document, redactor)) changed += 1;
      held.delete(id);
    }
  }
  return { added, changed, removed: held.size };
}
