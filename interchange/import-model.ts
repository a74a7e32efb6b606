import type { ImportResult } from './assemble.js';
import { importCube } from './cube/import.js';
import { importDbt } from './dbt/import.js';
import type { ImportOptions } from './options.js';
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
