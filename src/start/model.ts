import { compileSnapshot, PolicyProblems } from '../../policy/index.js';
import { type Diagnostic, loadManifest, loadPolicyDocument, ManifestProblems } from '../manifest/index.js';
import type { Model } from '../service.js';

/**
 * Manifest and policy from their files, compiled against each other.
 *
 * @throws ManifestProblems with the place of each fault in its file
 */
export async function loadModel(
  manifestFile: string,
  policyFile: string,
): Promise<Model & { tenant: string }> {
  const manifest = await loadManifest(manifestFile);
  const policy = await loadPolicyDocument(policyFile);
  try {
    const snapshot = compileSnapshot(policy.document, manifest.catalog);
    return Object.freeze({ manifest, snapshot, tenant: policy.document.tenant });
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw problems(policy.diagnostics(error.problems), policy.text);
  }
}

function problems(diagnostics: readonly Diagnostic[], text: string): ManifestProblems {
  return new ManifestProblems(diagnostics, text);
}
