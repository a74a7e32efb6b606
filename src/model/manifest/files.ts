/** Reads manifests and policies from files. The rest of this folder has no I/O, and also runs in a browser. */
import { open } from 'node:fs/promises';
import { ready } from 'osl-compiler';
import { codeOf, messageOf } from '../../base/thrown.js';
import { CODES, ManifestProblems } from './diagnostic.js';
import type { ManifestDocument } from './document.js';
import { compileFrom, type PolicyFile, parseManifest, parsePolicyDocument } from './load.js';
import type { Manifest } from './manifest.js';
import { conflictsBetween, type Overlay, withOverlay } from './overlay.js';
import { LARGEST_FILE, parseSource, tooLarge, whole } from './source.js';

/**
 * Reads a file of at most 32 MiB of UTF-8.
 * @throws ManifestProblems with M0001 or M0002
 */
export async function readText(file: string): Promise<string> {
  let bytes: Buffer;
  try {
    const handle = await open(file, 'r');
    try {
      const { size } = await handle.stat();
      if (size > LARGEST_FILE) throw tooLarge(file);
      bytes = await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof ManifestProblems) throw error;
    throw whole(file, CODES.unreadable, `cannot read the file: ${reason(error)}`, null);
  }
  if (bytes.length > LARGEST_FILE) throw tooLarge(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw whole(file, CODES.unreadable, 'the file is not UTF-8 text', 'save it as UTF-8');
  }
}

/**
 * Reads and compiles a manifest file.
 * @throws ManifestProblems with all errors in the file
 */
export async function loadManifest(file: string): Promise<Manifest> {
  const [text] = await Promise.all([readText(file), ready()]);
  return parseManifest(text, file);
}

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

/** A manifest file combined with the objects published over it. */
interface LayeredManifest {
  readonly manifest: Manifest;
  readonly base: ManifestDocument;
  readonly baseVersion: string;
}

/**
 * Reads and compiles a manifest file with the objects published over it. Errors in the file alone are reported first.
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

/** The manifest file is valid but conflicts with the objects published over it. */
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

function reason(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT') return 'it does not exist';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'EISDIR') return 'it is a directory';
  return messageOf(error);
}
