import { join } from 'node:path';
import { ServedModel } from '../model/served-model.js';
import { headIn } from '../publishing/store/index.js';
import { loadModel, PolicyFault, type ReadText } from './model.js';
import { tenantIn } from './place.js';
import type { Settings } from './settings.js';

/** Model that a start found. */
export interface First {
  readonly model: ServedModel;
  /** Why it has no policy; null if it has one. */
  readonly policyFault: PolicyFault | null;
}

/**
 * Loads what is to be served first: without a policy if that of the file is missing or invalid, as long as it is known
 * whose the server is. Tokens are of a tenant, so without one nobody could be told anything.
 *
 * @param known what was loaded before, given back if nothing else is published
 * @throws PolicyFault if it is not, and what `loadServed` throws
 */
export async function loadFirst(
  settings: Settings,
  known: First | null = null,
  read?: ReadText,
): Promise<First> {
  const published = await headIn(publishedDir(settings));
  if (known?.policyFault === null && known.model.published?.id === published?.id) return known;
  try {
    const model = await loadModel(settings.manifestFile, settings.policyFile, published, read);
    return { model, policyFault: null };
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
    const tenant = tenantIn(settings.dataDir) ?? error.tenant;
    if (tenant === null) throw error;
    const { manifest, file } = error;
    const model = new ServedModel({ manifest, snapshot: null, tenant, file, published });
    return { model, policyFault: error };
  }
}

/** Directory of versions and drafts. */
export function publishedDir({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'published');
}

/** Loads what is to be served, with what was published. Throws as `loadModel`. */
export async function loadServed(settings: Settings): Promise<ServedModel> {
  const published = await headIn(publishedDir(settings));
  return loadModel(settings.manifestFile, settings.policyFile, published);
}
