import { stringify } from 'yaml';
import type { PolicyDocument } from '../../../policy/document.js';
import type { ManifestDocument } from '../../model/manifest/index.js';

const FORM = { nullStr: '', lineWidth: 110 } as const;

/** A manifest as YAML. */
export function manifestText(document: ManifestDocument): string {
  return `# Imported. Look at what its loss report says, and declare which columns are sensitive.\n${stringify(document, FORM)}`;
}

/** A policy as YAML. */
export function policyText(policy: PolicyDocument): string {
  const head =
    Object.keys(policy.subjects).length === 0
      ? '# Nobody sees anything yet: `subjects` says who has which of the roles, and `roles` what they see.\n'
      : '';
  return `${head}${stringify(policy, FORM)}`;
}
