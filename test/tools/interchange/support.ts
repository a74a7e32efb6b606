import { ready } from 'osl-compiler';
import {
  DEFAULT_OPTIONS,
  type ImportResult,
  importModel,
  type ModelFormat,
  type ModelImportOptions,
} from '../../../interchange/index.js';
import { ManifestProblems } from '../../../src/model/manifest/index.js';

await ready();

/** One text of `format`, imported. */
export function imported(
  format: ModelFormat,
  text: string,
  options: Partial<ModelImportOptions> = {},
): ImportResult {
  return importModel(format, [{ file: `${format}.yml`, text }], { ...DEFAULT_OPTIONS, ...options });
}

/** The report as `line: kind: reason`, `!` after the kind where it is about access. */
export function reportOf({ losses }: ImportResult): readonly string[] {
  return losses.map(
    (l) => `${l.range.start.line}: ${l.kind}${l.severity === 'high' ? '!' : ''}: ${l.reason}`,
  );
}

/** What a text is refused with: `line:column CODE message`; nothing where it is imported. */
export function refusal(format: ModelFormat, text: string): readonly string[] {
  try {
    imported(format, text);
    return [];
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    return error.diagnostics.map(
      (d) => `${d.range.start.line}:${d.range.start.column} ${d.code} ${d.message}`,
    );
  }
}
