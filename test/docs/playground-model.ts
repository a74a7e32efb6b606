import { compile, emit } from 'osl-compiler';
import { compileSnapshot, effectiveAccess, hypotheticalClaims } from '../../policy/index.js';
import type { Playground } from '../../site/playground/state.js';
import { parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';

/** SQL of a question by the product's modules, for the same caller. Requires `ready()` of osl-compiler. */
export function governedSql({ question, manifest, policy, chain, roles }: Playground): string {
  const { catalog, tenant } = parseManifest(manifest, 'manifest.yaml');
  const snapshot = compileSnapshot(parsePolicyDocument(policy, 'policy.yaml').document, catalog, tenant);
  const identity = hypotheticalClaims({ chain, roles }, snapshot);
  return emit(compile(question, catalog, effectiveAccess(identity, snapshot, catalog))).sql;
}
