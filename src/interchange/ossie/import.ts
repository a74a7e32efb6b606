import { assemble, type Imported } from '../assemble.js';
import type { ImportOptions } from '../options.js';
import { PolicyDraft } from '../policy-draft.js';
import type { SourceFile } from '../source.js';
import { readCore } from './core.js';

/**
 * A manifest of Apache Ossie (Open Semantic Interchange) files.
 *
 * @throws ManifestProblems where a file has the wrong shape
 */
export function importOssie(files: readonly SourceFile[], options: ImportOptions): Imported {
  const { draft, tenant } = readCore(files, options);
  for (const file of files) file.check();
  return assemble(draft, new PolicyDraft(), files, { ...options, tenant: options.tenant ?? tenant });
}
