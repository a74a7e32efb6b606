/** Imports other tools' models as manifests, and exports manifests. */

import { stringify } from 'yaml';
import type { PolicyDocument } from '../policy/document.js';
import {
  type Manifest,
  type ManifestDocument,
  parseManifest,
  parseSource,
  pointer,
} from '../src/model/manifest/index.js';
import type { ImportResult } from './assemble.js';
import { importCube } from './cube/import.js';
import { importDbt } from './dbt/import.js';
import type { ModelImportOptions } from './options.js';
import type { OssieDocument } from './ossie/document.js';
import { ossieOf } from './ossie/export.js';
import { importOssie } from './ossie/import.js';
import { type ImportText, type Loss, SourceFile } from './source.js';

export type { ImportResult } from './assemble.js';
export { DEFAULT_OPTIONS, type ModelImportOptions } from './options.js';
export { countLosses, formatLoss, type ImportText } from './source.js';

const FORMATS = ['ossie', 'dbt', 'cube'] as const;
export type ModelFormat = (typeof FORMATS)[number];

/**
 * Imports files in another tool's format. Has no side effects; requires `ready()` of osl-compiler.
 *
 * @throws ManifestProblems if a file is not YAML or has the wrong shape
 */
export function importModel(
  format: ModelFormat,
  texts: readonly ImportText[],
  options: ModelImportOptions,
): ImportResult {
  const files = texts.map((text) => new SourceFile(text));
  switch (format) {
    case 'dbt':
      return importDbt(files, options);
    case 'cube':
      return importCube(files, options);
    case 'ossie':
      return importOssie(files, options);
  }
}

interface ExportResult {
  readonly ossie: OssieDocument;
  /** Constructs that other tools will not understand, with their places in the manifest. */
  readonly losses: readonly Loss[];
}

/**
 * Exports a manifest's text as Apache Ossie, including a policy if one is given. Requires `ready()` of osl-compiler.
 *
 * @param served the manifest including changes published on top of the text; null to export only the text
 * @throws ManifestProblems if the manifest does not load
 */
export function exportModel(
  { file, text }: ImportText,
  policy: PolicyDocument | null,
  served: Manifest | null = null,
): ExportResult {
  const manifest = served ?? parseManifest(text, file);
  const source = parseSource(text, file);
  const { ossie, lacks } = ossieOf(manifest, policy);
  const losses = lacks.map(({ path, kind, reason }): Loss => {
    const range = source.locate(path, { onKey: true });
    return Object.freeze({ kind, severity: 'normal', file, range, path: pointer(path), reason });
  });
  return { ossie, losses };
}

export function ossieText(ossie: OssieDocument): string {
  return stringify(ossie, { lineWidth: 110, aliasDuplicateObjects: false });
}

const FORM = { nullStr: '', lineWidth: 110 } as const;

export function manifestText(document: ManifestDocument): string {
  return `# Imported. Look at what its loss report says, and declare which columns are sensitive.\n${stringify(document, FORM)}`;
}

export function policyText(policy: PolicyDocument): string {
  const head =
    Object.keys(policy.subjects).length === 0
      ? '# Nobody sees anything yet: `subjects` says who has which of the roles, and `roles` what they see.\n'
      : '';
  return `${head}${stringify(policy, FORM)}`;
}
