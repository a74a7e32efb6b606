import { ready } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/document.js';
import { isObject } from '../../base/is-object.js';
import { STORE_SCHEMA } from '../facets/store-names.js';
import { compileManifest } from './compile/compile.js';
import { ROLLUP_SCHEMA } from './compile/rollups.js';
import {
  type Diagnostic,
  ManifestProblems,
  type Path,
  type TextRange,
  type UnplacedDiagnostic,
} from './diagnostic.js';
import type { ManifestDocument } from './document.js';
import type { Manifest } from './manifest.js';
import {
  conflictsBetween,
  type FragmentDocument,
  fragmentProblems,
  type Overlay,
  otherColumns,
  PUBLISHED_SECTIONS,
  withFragment,
  withOverlay,
  withPublished,
} from './overlay.js';
import { shapeCheck } from './schema/check.js';
import { MANIFEST_SCHEMA } from './schema/manifest.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { locateIn, parseSource, readText, throwProblems, toDiagnostics, type YamlSource } from './source.js';

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
  throwProblems(source, fragmentProblems(source.value));
  return locateIn(source, () => compileFrom(source, withFragment(base, source.value)));
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
  throwProblems(source, policyShape(source.value));
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
function checkShape(source: YamlSource, document: unknown): ManifestDocument {
  throwProblems(source, manifestShape(document));
  // The schema has just checked the shape that the type states.
  return document as ManifestDocument;
}

/** @throws ManifestProblems, located in `source` */
function compileFrom(source: YamlSource, document: unknown): Manifest {
  const compiled = compileManifest(checkShape(source, document));
  if (!compiled.ok) {
    throwProblems(source, compiled.problems);
    throw new TypeError('a manifest that does not compile has problems');
  }
  return compiled.manifest;
}

/** A manifest file combined with what is published over it. */
export interface LayeredManifest {
  readonly manifest: Manifest;
  readonly base: ManifestDocument;
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
 * @throws NotPublishable if the fragment contains more than may be published
 */
export function parsePublishable(
  text: string,
  base: ManifestDocument,
  objects: FragmentDocument,
  served: ManifestDocument,
): Publishable {
  const source = parseSource(text, 'fragment');
  throwProblems(source, fragmentProblems(source.value));
  checkPublishable(source.value, served);
  locateIn(source, () => checkShape(source, withFragment(served, source.value)));
  const fragment = source.value as FragmentDocument; // just checked as part of a manifest
  checkPublishable(fragment, served, base);
  return locateIn(source, () => layerOver(source, base, withPublished(base, objects, fragment)));
}

/** Compiles objects that were compiled before, perhaps over another file. */
export function compilePublishable(base: ManifestDocument, objects: FragmentDocument): Publishable {
  return layerOver(parseSource('{}', 'published'), base, objects);
}

function layerOver(source: YamlSource, base: ManifestDocument, objects: FragmentDocument): Publishable {
  return { objects, manifest: compileFrom(source, withOverlay(base, objects)) };
}

/** A fragment contains parts that only the manifest file may declare. */
export class NotPublishable extends Error {
  override readonly name = 'NotPublishable';
  /** The part that it would change, in the manifest's words. */
  readonly what: string;

  constructor(what: string) {
    super(`${what} cannot be published`);
    this.what = what;
  }
}

/**
 * Refuses a fragment that would change anything but objects and the tables that they use: a connector, an allowlist,
 * a tenant, a system table, or the model server of a facet if no served facet has that server.
 *
 * @throws NotPublishable
 */
function checkPublishable(fragment: unknown, served: ManifestDocument, base?: ManifestDocument): void {
  const parts = membersOf(fragment);
  for (const section of parts.keys()) {
    if (section !== 'connectors' && !PUBLISHED_SECTIONS.some((s) => s === section))
      throw new NotPublishable(`\`${shown(section)}\``);
  }
  for (const [name, connector] of membersOf(parts.get('connectors'))) {
    const known = membersOf(membersOf(served.connectors).get(name));
    if (known.size === 0) throw new NotPublishable(`connector \`${shown(name)}\``);
    for (const [member, value] of membersOf(connector)) {
      if (member !== 'tables' && JSON.stringify(value) !== JSON.stringify(known.get(member)))
        throw new NotPublishable(`\`${shown(member)}\` of connector \`${shown(name)}\``);
    }
    const declared = membersOf(known.get('tables'));
    for (const table of membersOf(membersOf(connector).get('tables')).keys()) {
      if (isOwn(table) && !declared.has(table))
        throw new NotPublishable(`what is known of table \`${shown(table)}\`, which is the system's own`);
    }
  }
  const servers = new Set([...membersOf(served.facets).values()].map(serverOf));
  for (const [name, facet] of membersOf(parts.get('facets'))) {
    const server = serverOf(facet);
    if (server !== null && !servers.has(server))
      throw new NotPublishable(`the server of the model of facet \`${shown(name)}\``);
  }
  if (base === undefined) return;
  const [column] = otherColumns(base, fragment as FragmentDocument); // callers that pass `base` have checked its shape
  if (column !== undefined)
    throw new NotPublishable(
      `the type or label of column \`${shown(column)}\`, which the manifest file declares`,
    );
}

/** Server of a facet's model, to which passages and queries are sent; null if it has none. */
function serverOf(facet: unknown): string | null {
  const endpoint = membersOf(membersOf(facet).get('embedding')).get('endpoint');
  if (endpoint === undefined) return null;
  const said = membersOf(endpoint);
  return JSON.stringify([said.get('protocol'), said.get('url_env')]);
}

/** True for tables of the database system or our own: stores hold texts before redaction, rollups hold all rows. */
function isOwn(table: string): boolean {
  const schema = table.split('.', 1)[0] ?? '';
  return (
    schema.startsWith('pg_') ||
    schema === 'information_schema' ||
    schema === STORE_SCHEMA ||
    schema === ROLLUP_SCHEMA
  );
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(isObject(value) ? Object.entries(value) : []);
}

/** Names come from the sender, so they are truncated. */
function shown(name: string): string {
  return name.slice(0, 200);
}
