import { ready } from 'osl-compiler';
import { ManifestProblems } from './diagnostic.js';
import type { ManifestDocument } from './document.js';
import { type FragmentDocument, fragmentProblems, withFragment } from './fragment.js';
import { checkShape, compileFrom } from './load.js';
import type { Manifest } from './manifest.js';
import { conflictsBetween, grow, type Overlay, withOverlay } from './overlay.js';
import { outsidePublishing } from './publishable.js';
import { parseSource, placedIn, raise, readText, type YamlSource } from './source.js';

/** A manifest file combined with what is published over it. */
export interface LayeredManifest {
  readonly manifest: Manifest;
  readonly base: ManifestDocument;
  /** Version of the file alone. */
  readonly baseVersion: string;
}

/**
 * Reads and compiles a manifest file with what is published over it. Faults of the file alone are reported first.
 * @throws ManifestProblems, OverlayConflict
 */
export async function loadLayered(
  file: string,
  overlay: Overlay,
  read: (file: string) => Promise<string> = readText,
): Promise<LayeredManifest> {
  const [text] = await Promise.all([read(file), ready()]);
  const source = parseSource(text, file);
  const own = compileFrom(source, source.value);
  const { document: base, version: baseVersion } = own;
  if (Object.keys(overlay.objects).length === 0) return { manifest: own, base, baseVersion };
  const conflicts = conflictsBetween(base, overlay);
  if (conflicts.length > 0) throw new OverlayConflict(file, conflicts);
  try {
    return { manifest: compileFrom(source, withOverlay(base, overlay.objects)), base, baseVersion };
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    throw new OverlayConflict(
      file,
      error.diagnostics.map(({ path, message }) => `${path}: ${message}`),
    );
  }
}

/** The manifest file is valid, but conflicts with what is published over it. */
class OverlayConflict extends Error {
  override readonly name = 'OverlayConflict';

  constructor(file: string, conflicts: readonly string[]) {
    super(
      `${file} does not go together with what was published over it: ${conflicts.join('; ')}. ` +
        'Put back what the file said there, or say there what was published (osl objects shows it); ' +
        'then withdraw the object with osl publish --withdraw',
    );
  }
}

/** Published objects, and the manifest that they give. */
export interface Publishable {
  readonly objects: FragmentDocument;
  readonly manifest: Manifest;
}

/**
 * Compiles `base` with `objects` and, over both, the members of a fragment's text. Throws as `parseFragment`.
 *
 * @param served `base` and `objects` combined
 * @throws OutsidePublishing if the fragment contains more than may be published
 */
export function parsePublishable(
  text: string,
  base: ManifestDocument,
  objects: FragmentDocument,
  served: ManifestDocument,
): Publishable {
  const source = parseSource(text, 'fragment');
  raise(source, fragmentProblems(source.value));
  outsidePublishing(source.value, served);
  placedIn(source, () => checkShape(source, withFragment(served, source.value)));
  const fragment = source.value as FragmentDocument; // just checked as part of a manifest
  outsidePublishing(fragment, served, base);
  return placedIn(source, () => layerOver(source, base, grow(base, objects, fragment)));
}

/** Compiles objects that were compiled before, perhaps over another file. */
export function compilePublishable(base: ManifestDocument, objects: FragmentDocument): Publishable {
  return layerOver(parseSource('{}', 'published'), base, objects);
}

function layerOver(source: YamlSource, base: ManifestDocument, objects: FragmentDocument): Publishable {
  return { objects, manifest: compileFrom(source, withOverlay(base, objects)) };
}
