import { createHash } from 'node:crypto';
import { isObject } from '../../base/is-object.js';
import { CODES, type UnplacedDiagnostic } from './diagnostic.js';
import type { ConnectorDocument, ManifestDocument, NamedMembers, TableColumnDocument } from './document.js';

/**
 * Published objects, as a layer over the manifest file. A published member replaces the file's member of the same name.
 * A published table contains only columns that the file does not declare, since the file's declarations for a connector
 * cannot be overridden.
 */
export interface Overlay {
  readonly objects: FragmentDocument;
  /**
   * Maps `section.name` to the fingerprint that the file's member had when it was last replaced by a publication; null
   * if the file had no such member.
   */
  readonly over: Readonly<Record<string, string | null>>;
}

export const EMPTY_OVERLAY: Overlay = Object.freeze({ objects: {}, over: {} });

export const PUBLISHED_SECTIONS = [
  'entities',
  'relationships',
  'bridges',
  'facets',
  'metrics',
  'lexicon',
] as const;

type PublishedSection = (typeof PUBLISHED_SECTIONS)[number];

/** An empty object without a prototype, so that `constructor` is not found as a member. */
const NONE: PlainDocument = Object.freeze(Object.create(null));

/** Returns the file's document with its members replaced by published objects of the same name. */
export function withOverlay(base: ManifestDocument, objects: FragmentDocument): unknown {
  const out = join(base as unknown as PlainDocument, {}); // cast: documents are plain data
  for (const section of PUBLISHED_SECTIONS) {
    const added = objects[section];
    if (added !== undefined) out[section] = join(membersIn(base, section), added as PlainDocument); // cast as above
  }
  if (objects.connectors !== undefined) out['connectors'] = connectorsOf(base, objects.connectors);
  return out;
}

/** Returns `objects` and those of `fragment`, but for those that equal a member of the manifest file. */
export function withPublished(
  base: ManifestDocument,
  objects: FragmentDocument,
  fragment: FragmentDocument,
): FragmentDocument {
  const out: PlainDocument = Object.create(null);
  for (const section of PUBLISHED_SECTIONS) {
    const all = join(membersIn(objects, section), membersIn(fragment, section));
    const own = membersIn(base, section);
    const kept = Object.entries(all).filter(([name, member]) => !same(own[name], member));
    if (kept.length > 0) out[section] = plain(kept);
  }
  const tables = grownTables(base, objects, fragment);
  if (tables.length > 0) out['connectors'] = plain(tables);
  return out as FragmentDocument; // cast: it has only sections of fragments
}

/** Returns `objects` without the members at `paths` and without tables that no remaining object uses. */
export function withoutPublished(objects: FragmentDocument, paths: ReadonlySet<string>): FragmentDocument {
  const out: PlainDocument = Object.create(null);
  for (const section of PUBLISHED_SECTIONS) {
    const kept = Object.entries(membersIn(objects, section)).filter(
      ([name]) => !paths.has(`${section}.${name}`),
    );
    if (kept.length > 0) out[section] = plain(kept);
  }
  const sources = new Set(sourcesIn(out));
  const connectors = Object.entries(objects.connectors ?? {}).flatMap(([name, { tables }]) => {
    const kept = Object.entries(tables ?? {}).filter(([table]) => sources.has(`${name}.${table}`));
    return kept.length === 0 ? [] : [[name, { tables: plain(kept) }] as const];
  });
  if (connectors.length > 0) out['connectors'] = plain(connectors);
  return out as FragmentDocument; // cast as above
}

/** Returns the `section.name` of each published object. Tables are not included. */
export function pathsIn(objects: FragmentDocument): readonly string[] {
  return PUBLISHED_SECTIONS.flatMap((section) =>
    Object.keys(membersIn(objects, section)).map((name) => `${section}.${name}`),
  );
}

/** Returns the member at `section.name` of a document; undefined if the document has no such member. */
export function memberAt(document: FragmentDocument | ManifestDocument, path: string): unknown {
  const at = path.indexOf('.');
  const section = PUBLISHED_SECTIONS.find((s) => s === path.slice(0, at));
  return section === undefined ? undefined : membersIn(document, section)[path.slice(at + 1)];
}

/** Returns the fingerprints of the file's members that `objects` replace; null for an object that the file lacks. */
export function fingerprintsOf(base: ManifestDocument, objects: FragmentDocument): Overlay['over'] {
  return plain(pathsIn(objects).map((path) => [path, fingerprint(memberAt(base, path))])) as Overlay['over'];
}

/**
 * Returns the conflicts between file and overlay, as sentences for the operator: members that changed in the file after
 * a publication replaced them, unless both are now equal; and columns declared in both with different types or labels.
 */
export function conflictsBetween(base: ManifestDocument, { objects, over }: Overlay): readonly string[] {
  const members = pathsIn(objects).flatMap((path) => {
    const [own, published] = [memberAt(base, path), memberAt(objects, path)];
    if (fingerprint(own) === over[path] || same(own, published)) return [];
    return [`\`${path}\` was published over another text of it than the manifest file has now`];
  });
  return [...members, ...otherColumns(base, objects).map((c) => `column ${c} is declared otherwise there`)];
}

/**
 * Returns the columns of `fragment` that the file declares otherwise, as `connector.schema.table.column`.
 *
 * @param agrees compares the file's declaration with the published one; by default, only types and labels
 */
export function otherColumns(
  base: ManifestDocument,
  fragment: FragmentDocument,
  agrees = sameColumn,
): readonly string[] {
  return Object.entries(fragment.connectors ?? {}).flatMap(([connector, { tables }]) =>
    Object.entries(tables ?? {}).flatMap(([table, { columns }]) => {
      const own = columnsIn(base, connector, table);
      return Object.entries(columns).flatMap(([name, column]) => {
        const declared = own[name];
        return declared === undefined || agrees(declared, column) ? [] : [`${connector}.${table}.${name}`];
      });
    }),
  );
}

function sameColumn(a: TableColumnDocument, b: TableColumnDocument): boolean {
  return a.type === b.type && labelOf(a) === labelOf(b);
}

/** True if the file's declaration of a column includes everything that the published one says. */
export function includesColumn(own: TableColumnDocument, published: TableColumnDocument): boolean {
  const { stored, labels, nullable } = published;
  return (
    sameColumn(own, published) &&
    (stored === undefined || stored === own.stored) &&
    (labels === undefined || same(labels, own.labels)) &&
    (nullable === undefined || nullable === (own.nullable ?? true))
  );
}

function labelOf({ sensitivity, pii }: TableColumnDocument): string | null {
  return sensitivity ?? (pii === true ? 'pii' : null);
}

function grownTables(
  base: ManifestDocument,
  objects: FragmentDocument,
  fragment: FragmentDocument,
): readonly (readonly [string, unknown])[] {
  const names = new Set([
    ...Object.keys(objects.connectors ?? {}),
    ...Object.keys(fragment.connectors ?? {}),
  ]);
  return [...names].flatMap((connector) => {
    const tables = join(tablesIn(objects, connector), tablesIn(fragment, connector));
    const kept = Object.entries(tables).flatMap(([table, declared]) => {
      const own = columnsIn(base, connector, table);
      const { columns } = declared as { columns: PlainDocument }; // cast: checked by the schema
      const more = Object.entries(columns).filter(([name]) => !(name in own));
      const known = table in tablesIn(base, connector);
      return known && more.length === 0 ? [] : [[table, { columns: plain(more) }] as const];
    });
    return kept.length === 0 ? [] : [[connector, { tables: plain(kept) }] as const];
  });
}

function connectorsOf(base: ManifestDocument, added: NonNullable<FragmentDocument['connectors']>): unknown {
  const out = join(base.connectors as unknown as PlainDocument, {}); // cast as above
  for (const [name, { tables }] of Object.entries(added)) {
    const own = base.connectors[name];
    // The file no longer has this connector; the compiler reports everything that uses it.
    if (own === undefined) continue;
    const all = join(own.tables as unknown as PlainDocument, {}); // cast as above
    for (const [table, { columns }] of Object.entries(tables ?? {})) {
      const declared = columnsIn(base, name, table) as unknown as PlainDocument; // cast as above
      // The file wins if both declare a column.
      all[table] = { columns: join(join(declared, columns as unknown as PlainDocument), declared) };
    }
    out[name] = { ...own, tables: all };
  }
  return out;
}

function* sourcesIn(objects: PlainDocument): Iterable<string> {
  for (const section of ['entities', 'bridges', 'facets']) {
    for (const member of Object.values((objects[section] ?? NONE) as PlainDocument)) {
      const { source } = member as { source: string | { connector: string; table: string } }; // checked by the schema
      yield typeof source === 'string' ? source : `${source.connector}.${source.table}`;
    }
  }
}

function membersIn(document: FragmentDocument | ManifestDocument, section: PublishedSection): PlainDocument {
  return (document[section] ?? NONE) as PlainDocument; // cast: documents are plain data
}

function tablesIn(document: FragmentDocument | ManifestDocument, connector: string): PlainDocument {
  const connectors = document.connectors ?? {};
  return Object.hasOwn(connectors, connector)
    ? ((connectors[connector]?.tables ?? NONE) as PlainDocument)
    : NONE; // cast as above
}

type TableColumns = Readonly<Record<string, TableColumnDocument>>;

function columnsIn(base: ManifestDocument, connector: string, table: string): TableColumns {
  const declared = tablesIn(base, connector)[table];
  return (declared === undefined ? NONE : (declared as { columns: TableColumns }).columns) as TableColumns; // as above
}

function same(a: unknown, b: unknown): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b);
}

/** Returns the SHA-256 hash of a member in hex; null if it is undefined. The order of names affects the hash. */
function fingerprint(member: unknown): string | null {
  return member === undefined ? null : createHash('sha256').update(JSON.stringify(member)).digest('hex');
}

function plain(entries: readonly (readonly [string, unknown])[]): PlainDocument {
  const out: PlainDocument = Object.create(null);
  for (const [name, value] of entries) out[name] = value;
  return out;
}

/** Part of a manifest: any of its members, but only the tables of connectors. */
export type FragmentDocument = Partial<Omit<ManifestDocument, 'connectors'>> & {
  readonly connectors?: NamedMembers<Partial<ConnectorDocument>>;
};

const SECTIONS = [...PUBLISHED_SECTIONS, 'rollups', 'rerankers'] as const;

/** Returns the errors in a fragment's outermost structure; the rest is checked in the combined manifest. */
export function fragmentProblems(value: unknown): readonly UnplacedDiagnostic[] {
  if (isObject(value)) return [];
  const hint = 'for example `entities: {…}`';
  return [{ path: [], code: CODES.wrongType, message: 'a fragment is a mapping', hint }];
}

/**
 * Returns `base` with the members of `fragment`. An entity, a metric or a table in the fragment replaces the one of the
 * same name as a whole; all others are kept. Members of the wrong shape are taken from the fragment, so that the schema
 * check refuses them.
 */
export function withFragment(base: ManifestDocument, fragment: unknown): unknown {
  const given = isObject(fragment) ? fragment : {};
  const out = join(base as unknown as PlainDocument, given); // cast: documents are plain data
  for (const section of SECTIONS) {
    const [old, added] = [base[section], given[section]];
    if (isObject(old) && isObject(added)) out[section] = join(old, added);
  }
  if (isObject(given['connectors'])) out['connectors'] = connectors(base, given['connectors']);
  return out;
}

function connectors(base: ManifestDocument, given: PlainDocument): PlainDocument {
  const known = base.connectors as unknown as PlainDocument; // cast as above
  const out = join(known, given);
  for (const [name, added] of Object.entries(given)) {
    const old = known[name];
    if (!isObject(old) || !isObject(added)) continue;
    const connector = join(old, added);
    const [tables, more] = [old['tables'], added['tables']];
    if (isObject(tables) && isObject(more)) connector['tables'] = join(tables, more);
    out[name] = connector;
  }
  return out;
}

type PlainDocument = Record<string, unknown>;

/** Merges two objects; if both have a member, that of `over` wins. The result has no prototype, like documents. */
function join(under: PlainDocument, over: PlainDocument): PlainDocument {
  return Object.assign(Object.create(null), under, over) as PlainDocument;
}
