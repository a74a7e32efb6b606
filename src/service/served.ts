import { join } from 'node:path';
import { headIn } from '../publishing/store/index.js';
import { type LoadedModel, loadModel, PolicyFault, type ReadText } from './model.js';
import { tenantIn } from './place.js';
import type { Settings } from './settings.js';

/** What a start found. */
export interface First extends LoadedServed {
  readonly policyFault: PolicyFault | null;
}

/**
 * What is to be served first: without a policy where that of the file is missing or invalid, as long as it is known
 * whose the server is. Tokens are of a tenant, so without one nobody could be told anything.
 *
 * @throws PolicyFault where it is not, and what `loadServed` throws
 */
export async function loadFirst(
  settings: Settings,
  known: First | null = null,
  read?: ReadText,
): Promise<First> {
  try {
    return {
      ...(await loadServed(settings, known?.policyFault === null ? known : null, read)),
      policyFault: null,
    };
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
    const tenant = tenantIn(settings.dataDir) ?? error.tenant;
    if (tenant === null) throw error;
    const { manifest, file } = error;
    return { manifest, snapshot: null, tenant, file, head: null, policyFault: error };
  }
}

/** Where versions and drafts are. */
export function publishedDir({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'published');
}

/** What is to be served, with what was published; `known` where that is what was loaded before. */
export async function loadServed(
  settings: Settings,
  known: LoadedServed | null = null,
  read?: ReadText,
): Promise<LoadedServed> {
  const head = await headIn(publishedDir(settings));
  if (known !== null && known.head === (head?.id ?? null)) return known;
  const model = await loadModel(settings.manifestFile, settings.policyFile, head, read);
  return { ...model, head: head?.id ?? null };
}

export interface LoadedServed extends LoadedModel {
  readonly head: string | null;
}
