import type { Relation } from 'osl-compiler';
import {
  type FragmentDocument,
  type Manifest,
  modelNameFrom,
  RESERVED,
  tableName,
} from '../manifest/index.js';
import {
  type AdoptionCandidate,
  bridgeSides,
  type CandidateColumn,
  type CandidateLink,
  NameAllocator,
} from './candidates.js';

/** A fragment that would adopt a relation, with notes for its author. */
interface AdoptionDraft {
  readonly fragment: FragmentDocument;
  readonly notes: readonly string[];
}

const DECLARE =
  'whoever publishes this declares `pii: true` or `sensitivity: <label>` at the connector where it belongs';

/** Returns the note about sensitivity labels. Every draft has this note, because labels are never guessed. */
export function labelsNote(labelled: readonly (readonly [column: string, label: string])[]): string {
  if (labelled.length === 0) return `no column has a sensitivity label: ${DECLARE}`;
  const kept = labelled.map(([column, label]) => `${column} (${label})`).join(', ');
  return `sensitivity labels are those that the manifest declares, ${kept}; no other column has one: ${DECLARE}`;
}

/** Drafts a manifest fragment that adopts `candidate`. Existing labels of its table are kept; none are added. */
export function draftOf(candidate: AdoptionCandidate, manifest: Manifest): AdoptionDraft {
  const exposed = exposedColumns(candidate);
  const isBridge =
    candidate.proposal === 'bridge' && bridgeSides(candidate).every((s) => refersToKey(s, manifest));
  const relation = isBridge
    ? { bridges: members([[candidate.name, bridgeOf(candidate, exposed, manifest)]]) }
    : { entities: members([[candidate.name, entityOf(candidate, exposed)]]) };
  const links = isBridge ? [] : relationshipsOf(candidate, exposed, manifest);
  const fragment = {
    connectors: members([
      [candidate.connector, { tables: members([[tableName(candidate), tableOf(candidate, manifest)]]) }],
    ]),
    ...relation,
    ...(links.length === 0 ? {} : { relationships: members(links) }),
  };
  // The draft may be incomplete, for example without a key; the diagnostics report that.
  const labels = labelsNote(labelledIn(candidate, manifest));
  return { fragment: fragment as unknown as FragmentDocument, notes: notesOf(candidate, exposed, labels) };
}

/** True unless the foreign key refers to other columns than the key of its entity, which is what a bridge holds. */
function refersToKey({ references }: CandidateLink, manifest: Manifest): boolean {
  return references.entity === null || keyOf(references.entity, references.columns, manifest) !== null;
}

type PlainObject = Readonly<Record<string, unknown>>;

/** Creates an object without a prototype, because a database may have a column named `__proto__`. */
function members(entries: readonly (readonly [string, unknown])[]): PlainObject {
  const out: Record<string, unknown> = Object.create(null);
  for (const [name, value] of entries) out[name] = value;
  return out;
}

function labelledIn(
  candidate: AdoptionCandidate,
  manifest: Manifest,
): readonly (readonly [string, string])[] {
  const declared = manifest.connectors.get(candidate.connector)?.tables.get(tableName(candidate))?.columns;
  return candidate.columns.flatMap(({ name }): readonly (readonly [string, string])[] => {
    const label = declared?.get(name)?.sensitivity ?? null;
    return label === null ? [] : [[name, label]];
  });
}

function tableOf(candidate: AdoptionCandidate, manifest: Manifest): PlainObject {
  const known = manifest.document.connectors[candidate.connector]?.tables[tableName(candidate)]?.columns;
  const key = new Set(candidate.key);
  return {
    columns: members(
      candidate.columns.flatMap((c): readonly (readonly [string, unknown])[] => {
        const as = known?.[c.name];
        if (as !== undefined) return [[c.name, as]];
        if (!isExposable(c)) return [];
        const required = !c.nullable && !key.has(c.name);
        const { declared: type, stored, labels } = c;
        const enumeration = { ...(stored !== null && { stored }), ...(labels !== null && { labels }) };
        return [[c.name, { type, ...enumeration, ...(required ? { nullable: false } : {}) }]];
      }),
    ),
  };
}

/** Model names of exposable columns, keyed by their names in the table. */
type ExposedColumns = ReadonlyMap<string, string>;

function exposedColumns(candidate: AdoptionCandidate): ExposedColumns {
  const names = new NameAllocator(RESERVED);
  return new Map(candidate.columns.filter(isExposable).map((c) => [c.name, names.free(c.name, 'column')]));
}

/** True if the model has a type for the column, so that it can be exposed. */
export function isExposable({ type }: CandidateColumn): boolean {
  return type !== null;
}

function columnsOf(candidate: AdoptionCandidate, exposed: ExposedColumns): PlainObject {
  return members(
    candidate.columns.flatMap((c): readonly (readonly [string, unknown])[] => {
      const name = exposed.get(c.name);
      if (name === undefined) return [];
      const said = {
        ...(name === c.name ? {} : { column: c.name }),
        ...(c.comment === null ? {} : { description: c.comment }),
      };
      return [[name, Object.keys(said).length === 0 ? null : said]];
    }),
  );
}

function described({ comment }: Pick<AdoptionCandidate, 'comment'>): PlainObject {
  return comment === null ? {} : { description: comment };
}

function entityOf(candidate: AdoptionCandidate, exposed: ExposedColumns): PlainObject {
  const names = (columns: readonly string[]): readonly string[] =>
    columns.map((c) => exposed.get(c) ?? modelNameFrom(c));
  const key = names(candidate.key);
  const linked = candidate.foreign_keys.flatMap((f) => f.columns);
  const sealed = [...new Set([...key, ...names(linked.filter((c) => exposed.has(c)))])];
  return {
    ...described(candidate),
    source: candidate.id,
    ...(key.length === 0 ? {} : { primary_key: key }),
    ...(key.length === 0 || sealed.length === key.length ? {} : { entity_key_columns: sealed }),
    columns: columnsOf(candidate, exposed),
  };
}

function bridgeOf(candidate: AdoptionCandidate, exposed: ExposedColumns, manifest: Manifest): PlainObject {
  const [left, right] = bridgeSides(candidate);
  return {
    ...described(candidate),
    source: candidate.id,
    left: sideOf(left, exposed, manifest),
    right: sideOf(right, exposed, manifest),
    columns: columnsOf(candidate, exposed),
  };
}

function sideOf(link: CandidateLink | undefined, exposed: ExposedColumns, manifest: Manifest): PlainObject {
  if (link === undefined) return {};
  const { references, columns } = link;
  const entity = references.entity === null ? undefined : manifest.catalog.relations.get(references.entity);
  const ordered =
    entity === undefined
      ? columns
      : physicalKey(entity).flatMap((k) => columns[references.columns.indexOf(k)] ?? []);
  return {
    entity: references.entity ?? modelNameFrom(references.table),
    columns: ordered.map((c) => exposed.get(c) ?? modelNameFrom(c)),
  };
}

function physicalKey(relation: Relation): readonly string[] {
  return relation.primaryKey.map((k) => relation.columns.find((c) => c.name === k)?.physical ?? k);
}

/** Returns relationships for the foreign keys that refer to the primary key of an entity or of the candidate itself. */
function relationshipsOf(
  candidate: AdoptionCandidate,
  exposed: ExposedColumns,
  manifest: Manifest,
): readonly (readonly [string, unknown])[] {
  const names = new NameAllocator(manifest.relationships.keys());
  return candidate.foreign_keys.flatMap(
    ({ columns, references, ...link }): readonly (readonly [string, unknown])[] => {
      const own = references.schema === candidate.schema && references.table === candidate.table;
      const entity = own ? candidate.name : references.entity;
      const from = columns.flatMap((c) => exposed.get(c) ?? []);
      const to = own
        ? ownKey(candidate, references.columns, exposed)
        : keyOf(entity, references.columns, manifest);
      if (entity === null || to === null || from.length !== columns.length) return [];
      const unique = sameNames(candidate.key, columns);
      const kind = unique ? 'one_to_one' : 'many_to_one';
      const name = names.free(`${candidate.name}_${entity}`, modelNameFrom(link.name));
      const ends = { from: endOf(candidate.name, from), to: endOf(entity, to), kind };
      return [[name, { ...described(link), ...ends }]];
    },
  );
}

function endOf(entity: string, columns: readonly string[]): string | readonly string[] {
  const names = columns.map((c) => `${entity}.${c}`);
  return names.length === 1 ? names.join() : names;
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name) => b.includes(name));
}

/** Returns the candidate's key in model names and in the order of `referred`; null if `referred` is not that key. */
function ownKey(
  { key }: AdoptionCandidate,
  referred: readonly string[],
  exposed: ExposedColumns,
): readonly string[] | null {
  return sameNames(key, referred) ? referred.map((c) => exposed.get(c) ?? modelNameFrom(c)) : null;
}

/** Returns the primary key of `entity` in the order of `referred`; null if `referred` is not that key. */
function keyOf(
  entity: string | null,
  referred: readonly string[],
  { catalog }: Manifest,
): readonly string[] | null {
  const relation = entity === null ? undefined : catalog.relations.get(entity);
  if (relation === undefined) return null;
  const physical = physicalKey(relation);
  if (!sameNames(physical, referred)) return null;
  return referred.map((c) => relation.primaryKey[physical.indexOf(c)] ?? c);
}

function notesOf(candidate: AdoptionCandidate, exposed: ExposedColumns, labels: string): readonly string[] {
  const notes = [labels];
  const left = candidate.columns.filter((c) => !exposed.has(c.name));
  for (const c of left) {
    notes.push(`column ${c.name} is left out: the model has no type for ${c.upstream_type}`);
  }
  if (candidate.key.length === 0)
    notes.push('no key is declared: name the columns that identify a row as `primary_key`');
  for (const f of candidate.foreign_keys) {
    const { schema, table, entity } = f.references;
    if (schema === candidate.schema && table === candidate.table) continue;
    if (entity === null)
      notes.push(`${schema}.${table}, which ${f.columns.join(', ')} refers to, is not adopted`);
  }
  return notes;
}
