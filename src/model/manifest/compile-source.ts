import { compileManifest } from './compile/compile.js';
import type { ManifestDocument } from './document.js';
import type { Manifest } from './manifest.js';
import { shapeCheck } from './schema/check.js';
import { MANIFEST_SCHEMA } from './schema/manifest.js';
import { raise, type YamlSource } from './source.js';

/** What is wrong with the shape of a manifest; nothing where it has that of `ManifestDocument`. */
export const manifestShape = shapeCheck(MANIFEST_SCHEMA);

/** `document` as a manifest, once its shape is right. @throws ManifestProblems, placed in `source` */
export function checkShape(source: YamlSource, document: unknown): ManifestDocument {
  raise(source, manifestShape(document));
  // The schema has just checked the shape that the type states.
  return document as ManifestDocument;
}

/** The compiled manifest. @throws ManifestProblems, placed in `source` */
export function compileFrom(source: YamlSource, document: unknown): Manifest {
  const compiled = compileManifest(checkShape(source, document));
  if (!compiled.ok) {
    raise(source, compiled.problems);
    throw new TypeError('a manifest that does not compile has problems');
  }
  return compiled.manifest;
}
