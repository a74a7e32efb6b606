import { stringify } from 'yaml';
import type { PolicyDocument } from '../policy/document.js';
import {
  type Manifest,
  type ManifestDocument,
  parseManifest,
  parseSource,
  pointer,
} from '../src/model/manifest/index.js';
import type { Loss } from './account.js';
import type { ImportResult } from './assemble.js';
import { importCube } from './cube/import.js';
import { importDbt } from './dbt/import.js';
import type { ImportOptions } from './options.js';
import type { OssieDocument } from './ossie/document.js';
import { ossieOf } from './ossie/export.js';
import { importOssie } from './ossie/import.js';
import { type ImportText, SourceFile } from './source.js';

/** The foreign formats that are read. */
const FORMATS = ['ossie', 'dbt', 'cube'] as const;
export type ModelFormat = (typeof FORMATS)[number];

/**
 * What the texts of a foreign format come to. Pure; `ready()` of osl-compiler must have been awaited.
 *
 * @throws ManifestProblems where a text is no YAML or has the wrong shape
 */
export function importModel(
  format: ModelFormat,
  texts: readonly ImportText[],
  options: ImportOptions,
): ImportResult {
  const files = texts.map((text) => new SourceFile(text));
  switch (format) {
    case 'dbt':
      return importDbt(files, options);
    case 'cube':
      return importCube(files, options);
    case 'ossie':
      return importOssie(files, options);
    default: {
      const unknown: never = format;
      return unknown;
    }
  }
}

interface ExportResult {
  readonly ossie: OssieDocument;
  /** What other tools will not understand of it, placed in the manifest. */
  readonly losses: readonly Loss[];
}

/**
 * A manifest's text as Apache Ossie; with a policy, that too. `ready()` of osl-compiler must have been awaited.
 *
 * @param served the manifest with what was published over the text, where that is to be exported
 * @throws ManifestProblems where the manifest does not load
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

/** The model as YAML. */
export function ossieText(ossie: OssieDocument): string {
  return stringify(ossie, { lineWidth: 110, aliasDuplicateObjects: false });
}

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
