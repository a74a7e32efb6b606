import type { PolicyDocument } from '../../../policy/document.js';
import { isObject } from '../../base/is-object.js';
import { STORE_SCHEMA } from '../facets/store-names.js';
import { compileManifest } from './compile/compile.js';
import { ROLLUP_SCHEMA } from './compile/rollups.js';
import type { Diagnostic, Path, TextRange, UnplacedDiagnostic } from './diagnostic.js';
import type { ManifestDocument } from './document.js';
import type { Manifest } from './manifest.js';
import { tableNamed } from './name.js';
import {
  type FragmentDocument,
  fragmentProblems,
  includesColumn,
  otherColumns,
  PUBLISHED_SECTIONS,
  withFragment,
  withOverlay,
  withPublished,
} from './overlay.js';
import { shapeCheck } from './schema/check.js';
import { MANIFEST_SCHEMA } from './schema/manifest.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { locateIn, parseSource, throwProblems, toDiagnostics, type YamlSource } from './source.js';

/** Returns the shape errors of a policy; an empty list means that it is a `PolicyDocument`. */
export const policyShape = shapeCheck(POLICY_SCHEMA);

/**
 * Compiles the text of a manifest; diagnostics refer to it as `file`. Requires `ready()` of osl-compiler.
 * @throws ManifestProblems with all errors in the text
 */
export function parseManifest(text: string, file: string): Manifest {
  const source = parseSource(text, file);
  return compileFrom(source, source.value);
}

/**
 * Compiles `base` with the members of a fragment's text: see `withFragment`. Diagnostics are located in the fragment;
 * those for other parts are marked `elsewhere`. Has the same errors and requirements as `parseManifest`.
 */
export function parseFragment(text: string, file: string, base: ManifestDocument): Manifest {
  const source = parseSource(text, file);
  throwProblems(source, fragmentProblems(source.value));
  return locateIn(source, () => compileFrom(source, withFragment(base, source.value)));
}

/** A policy file: its text and document, and methods that locate parts of the document in the text. */
export interface PolicyFile {
  readonly file: string;
  readonly text: string;
  readonly document: PolicyDocument;
  locate(path: Path): TextRange;
  /** Locates problems reported by the policy compiler. Print them with `formatDiagnostics(list, text)`. */
  diagnostics(problems: readonly LaterProblem[]): readonly Diagnostic[];
}

/** A problem as `policy/` reports it: with a path into the document, and an offset in the predicate's text. */
type LaterProblem = Pick<UnplacedDiagnostic, 'path' | 'code' | 'message' | 'hint'> & {
  readonly offset?: number | null;
};

/** Parses the text of a policy; diagnostics refer to it as `file`. @throws ManifestProblems */
export function parsePolicyDocument(text: string, file: string): PolicyFile {
  const source = parseSource(text, file);
  throwProblems(source, policyShape(source.value));
  return Object.freeze({
    file,
    text,
    document: source.value as PolicyDocument, // cast: checked by the schema
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

/** Returns the shape errors of a manifest; an empty list means that it is a `ManifestDocument`. */
export const manifestShape = shapeCheck(MANIFEST_SCHEMA);

/** Returns `document` as a manifest if its shape is valid. @throws ManifestProblems, located in `source` */
function checkShape(source: YamlSource, document: unknown): ManifestDocument {
  throwProblems(source, manifestShape(document));
  // The schema check has just established this type.
  return document as ManifestDocument;
}

/** Checks and compiles a parsed document. @throws ManifestProblems, located in `source` */
export function compileFrom(source: YamlSource, document: unknown): Manifest {
  const compiled = compileManifest(checkShape(source, document));
  if (!compiled.ok) {
    throwProblems(source, compiled.problems);
    throw new TypeError('a manifest that does not compile has problems');
  }
  return compiled.manifest;
}

/** Published objects, and the manifest compiled from the manifest file and these objects. */
export interface Publishable {
  readonly objects: FragmentDocument;
  readonly manifest: Manifest;
}

/**
 * Parses a fragment, adds its members to `objects`, and compiles the result over `base`. Throws the same errors as
 * `parseFragment`.
 *
 * @param served `base` and `objects` combined
 * @throws NotPublishable if the fragment contains anything that may not be published
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
  const fragment = source.value as FragmentDocument; // checked above as part of a manifest
  checkPublishable(fragment, served, base);
  return locateIn(source, () => layerOver(source, base, withPublished(base, objects, fragment)));
}

/** Returns the first part of a valid fragment that only the manifest file may declare; null if there is none. */
export function unpublishablePart(text: string, served: ManifestDocument): string | null {
  try {
    checkPublishable(parseSource(text, 'fragment').value, served);
    return null;
  } catch (error) {
    if (error instanceof NotPublishable) return error.what;
    throw error;
  }
}

/** Compiles published objects again, over a manifest file that may have changed since they were first compiled. */
export function compilePublishable(base: ManifestDocument, objects: FragmentDocument): Publishable {
  return layerOver(parseSource('{}', 'published'), base, objects);
}

function layerOver(source: YamlSource, base: ManifestDocument, objects: FragmentDocument): Publishable {
  return { objects, manifest: compileFrom(source, withOverlay(base, objects)) };
}

/** A fragment contains parts that may be declared only in the manifest file. */
export class NotPublishable extends Error {
  override readonly name = 'NotPublishable';
  /** The part that cannot be published, as text for the message. */
  readonly what: string;

  constructor(what: string) {
    super(`${what} cannot be published`);
    this.what = what;
  }
}

/**
 * Refuses a fragment that would change anything other than objects and the tables they use: a connector, an allowlist,
 * a tenant, a system table, or a facet's model server unless a served facet already uses that server.
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
  const [column] = otherColumns(base, fragment as FragmentDocument, includesColumn); // checked by callers that pass `base`
  if (column !== undefined)
    throw new NotPublishable(`column \`${shown(column)}\`, which the manifest file declares otherwise`);
}

/** Identifies the model server of a facet, which receives passages and queries; null if none is declared. */
function serverOf(facet: unknown): string | null {
  const endpoint = membersOf(membersOf(facet).get('embedding')).get('endpoint');
  if (endpoint === undefined) return null;
  const said = membersOf(endpoint);
  return JSON.stringify([said.get('protocol'), said.get('url_env')]);
}

/**
 * True for tables that may not be published: system tables of the database and the gateway's own tables (stores hold
 * texts before redaction, and rollups hold all rows).
 */
function isOwn(table: string): boolean {
  const { schema } = tableNamed(table);
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

/** Truncates a name from a fragment for an error message, since it may have any length. */
function shown(name: string): string {
  return name.slice(0, 200);
}
