import { compileSnapshot, PolicyProblems } from '../../policy/index.js';
import {
  type Diagnostic,
  EMPTY_OVERLAY,
  loadLayered,
  loadPolicyDocument,
  ManifestProblems,
  type Overlay,
} from '../manifest/index.js';
import type { FileLayer } from '../publishing/index.js';
import type { Model } from '../service.js';

/** What serves, and the manifest file's own part of it. */
export interface LoadedModel extends Model {
  readonly tenant: string;
  readonly file: FileLayer;
}

/**
 * Manifest and policy from their files, what was published over the one included, compiled against each other.
 *
 * @throws ManifestProblems with the place of each fault in its file; OverlayConflict
 */
export async function loadModel(
  manifestFile: string,
  policyFile: string,
  published: Overlay | null,
): Promise<LoadedModel> {
  const { manifest, base, baseVersion } = await loadLayered(manifestFile, published ?? EMPTY_OVERLAY);
  const file = Object.freeze({ document: base, version: baseVersion });
  const policy = await loadPolicyDocument(policyFile);
  try {
    const snapshot = compileSnapshot(policy.document, manifest.catalog, manifest.tenant);
    return Object.freeze({ manifest, snapshot, tenant: policy.document.tenant, file });
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw problems(policy.diagnostics(error.problems), policy.text);
  }
}

function problems(diagnostics: readonly Diagnostic[], text: string): ManifestProblems {
  return new ManifestProblems(diagnostics, text);
}
