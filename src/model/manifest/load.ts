import { ready } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/document.js';
import { compileManifest } from './compile/compile.js';
import type { Diagnostic, Path, TextRange, UnplacedDiagnostic } from './diagnostic.js';
import type { ManifestDocument } from './document.js';
import { fragmentProblems, withFragment } from './fragment.js';
import type { Manifest } from './manifest.js';
import { shapeCheck } from './schema/check.js';
import { MANIFEST_SCHEMA } from './schema/manifest.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { parseSource, placedIn, raise, readText, toDiagnostics, type YamlSource } from './source.js';

/** Shape faults of a policy; empty if it is a `PolicyDocument`. */
export const policyShape = shapeCheck(POLICY_SCHEMA);

/**
 * Reads and compiles a manifest file.
 * @throws ManifestProblems with everything that is wrong with it
 */
export async function loadManifest(file: string): Promise<Manifest> {
  const [text] = await Promise.all([readText(file), ready()]);
  return parseManifest(text, file);
}

/**
 * Compiles the text of a manifest; diagnostics name it `file`. Throws as `loadManifest`; requires `ready()` of
 * osl-compiler.
 */
export function parseManifest(text: string, file: string): Manifest {
  const source = parseSource(text, file);
  return compileFrom(source, source.value);
}

/**
 * Compiles `base` with the members of a fragment's text: see `withFragment`. Diagnostics are located in the fragment;
 * those of other parts are marked as `elsewhere`. Throws and requires as `parseManifest`.
 */
export function parseFragment(text: string, file: string, base: ManifestDocument): Manifest {
  const source = parseSource(text, file);
  raise(source, fragmentProblems(source.value));
  return placedIn(source, () => compileFrom(source, withFragment(base, source.value)));
}

/** A policy file: its document, and ranges in the file. */
export interface PolicyFile {
  readonly file: string;
  readonly text: string;
  readonly document: PolicyDocument;
  locate(path: Path): TextRange;
  /** Locates problems that the policy compiler found. Print them with `formatDiagnostics(list, text)`. */
  diagnostics(problems: readonly LaterProblem[]): readonly Diagnostic[];
}

/** As `policy/` reports: a path into the document, and an offset in the predicate's text. */
type LaterProblem = Pick<UnplacedDiagnostic, 'path' | 'code' | 'message' | 'hint'> & {
  readonly offset?: number | null;
};

/**
 * Reads a policy file and checks its shape; `compileSnapshot` checks its meaning.
 * @throws ManifestProblems
 */
export async function loadPolicyDocument(
  file: string,
  read: (file: string) => Promise<string> = readText,
): Promise<PolicyFile> {
  return parsePolicyDocument(await read(file), file);
}

/** Parses the text of a policy; diagnostics name it `file`. Throws as `loadPolicyDocument`. */
export function parsePolicyDocument(text: string, file: string): PolicyFile {
  const source = parseSource(text, file);
  raise(source, policyShape(source.value));
  return Object.freeze({
    file,
    text,
    document: source.value as PolicyDocument, // the schema has just checked the shape that the type states
    locate: (path: Path) => source.locate(path),
    diagnostics: (problems: readonly LaterProblem[]) => place(source, problems),
  });
}

function place(source: YamlSource, problems: readonly LaterProblem[]): readonly Diagnostic[] {
  return toDiagnostics(
    source,
    problems.map(({ path, code, message, hint, offset }) => {
      return { path, code, message, hint, ...(typeof offset === 'number' && { offset }) };
    }),
  );
}

/** Shape faults of a manifest; empty if it is a `ManifestDocument`. */
export const manifestShape = shapeCheck(MANIFEST_SCHEMA);

/** `document` as a manifest, if its shape is right. @throws ManifestProblems, located in `source` */
export function checkShape(source: YamlSource, document: unknown): ManifestDocument {
  raise(source, manifestShape(document));
  // The schema has just checked the shape that the type states.
  return document as ManifestDocument;
}

/** @throws ManifestProblems, located in `source` */
export function compileFrom(source: YamlSource, document: unknown): Manifest {
  const compiled = compileManifest(checkShape(source, document));
  if (!compiled.ok) {
    raise(source, compiled.problems);
    throw new TypeError('a manifest that does not compile has problems');
  }
  return compiled.manifest;
}
