import {
  type Access,
  ALL_FEATURES,
  type Catalog,
  type Column,
  type Relation,
  servedVersion,
  visibleColumns,
} from 'osl-compiler';
import { type PolicySnapshot, roleAccess } from '../../../policy/index.js';
import {
  columnName,
  entityName,
  facetName,
  type GraphPart,
  governedView,
  metricName,
} from '../graph/index.js';
import { deprecationOf, type EntityFacts, type Manifest } from '../manifest/index.js';

export interface ManifestChange {
  readonly change: 'added' | 'removed' | 'changed';
  readonly kind: PartKind;
  /** Plain name; `entity.column` for a column or derived attribute; `schema.table` for a table open to raw SQL. */
  readonly name: string;
  /** Changed properties, named as in the manifest; empty unless `change` is `changed`. */
  readonly what: readonly string[];
}

type PartKind =
  | 'connector'
  | 'entity'
  | 'bridge'
  | 'facet'
  | 'column'
  | 'derived'
  | 'relationship'
  | 'metric'
  | 'term'
  | 'raw_table'
  | 'feature';

interface ManifestDifferences {
  readonly changes: readonly ManifestChange[];
  /** The changed objects. */
  readonly touched: readonly TouchedObject[];
}

/** A changed object. For a column or a derived attribute, `name` is that of the relation that it belongs to. */
interface TouchedObject {
  readonly kind: PartKind;
  readonly name: string;
}

/** Returns the differences between two compiled manifests. Comments, layout and equivalent spellings are ignored. */
export function changesBetween(before: Manifest, after: Manifest): ManifestDifferences {
  const [old, now] = [partsOf(before), partsOf(after)];
  const changes: ManifestChange[] = [];
  const touched: TouchedObject[] = [];
  const add = (
    { kind, name, of }: ManifestPart,
    change: ManifestChange['change'],
    what: readonly string[],
  ) => {
    changes.push({ change, kind, name, what });
    touched.push({ kind, name: of });
  };
  for (const [key, part] of old) {
    const other = now.get(key);
    const what = other === undefined ? [] : differences(part.facts, other.facts);
    if (other === undefined) add(part, 'removed', what);
    else if (what.length > 0) add(part, 'changed', what);
  }
  for (const [key, part] of now) if (!old.has(key)) add(part, 'added', []);
  return { changes, touched };
}

interface ManifestPart {
  readonly kind: PartKind;
  readonly name: string;
  /** Name of the relation that a column or derived attribute belongs to; for any other part, its own name. */
  readonly of: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

function part(kind: PartKind, name: string, facts: ManifestPart['facts'], of = name): ManifestPart {
  return { kind, name, of, facts };
}

function differences(before: ManifestPart['facts'], after: ManifestPart['facts']): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

function partsOf(manifest: Manifest): ReadonlyMap<string, ManifestPart> {
  const { catalog } = manifest;
  const parts: ManifestPart[] = [
    ...[...manifest.connectors.values()].map(({ name, kind, urlEnv, standbys, rowSecurity }) =>
      part('connector', name, { kind, url_env: urlEnv, standbys, row_security: rowSecurity }),
    ),
    ...relationParts(manifest),
    ...facetParts(manifest),
    ...[...manifest.relationships.values()].map(({ name, ...facts }) =>
      part('relationship', name, { ...facts, deprecated: deprecationOf(manifest, 'relationships', name) }),
    ),
    ...[...catalog.metrics.values()].map(({ name, ...facts }) =>
      part('metric', name, { ...facts, deprecated: deprecationOf(manifest, 'metrics', name) }),
    ),
    ...[...manifest.lexicon.values()].map(({ term, refersTo, synonyms }) =>
      part('term', term, { refers_to: refersTo, synonyms }),
    ),
    ...[...(catalog.rawTables?.keys() ?? [])].map((name) => part('raw_table', name, {})),
    ...featureParts(catalog),
  ];
  return new Map(parts.map((part) => [`${part.kind} ${part.name}`, part]));
}

function featureParts({ features = ALL_FEATURES, joins = 'declared' }: Catalog): readonly ManifestPart[] {
  return [
    part('feature', 'joins', { joins }),
    ...Object.entries(features).map(([name, on]) => part('feature', name, { on })),
  ];
}

function relationParts(manifest: Manifest): readonly ManifestPart[] {
  return [...manifest.catalog.relations.values()].flatMap((relation): readonly ManifestPart[] => {
    if (relation.kind === 'facet') return []; // the relation is the facet's store; `facetParts` compares its source
    const { kind, name, connector, schema, table, description, primaryKey, sealedKeys } = relation;
    const bridge = manifest.bridges.get(name);
    const entity = manifest.entities.get(name);
    const facts = {
      source: `${connector}.${schema}.${table}`,
      description,
      deprecated: deprecationOf(manifest, bridge === undefined ? 'entities' : 'bridges', name),
      primary_key: primaryKey,
      entity_key_columns: sealedKeys,
      time_dimension: relation.timeDimension ?? null,
      column_order: relation.columns.map((c) => c.name),
      ...(bridge === undefined ? {} : { left: bridge.left, right: bridge.right }),
      ...(entity === undefined ? {} : entityFacts(manifest, entity)),
    };
    const computed = (relation.computed ?? []).map(
      ({ name: column, type, description, expression, sensitivity }): ManifestPart => {
        const facts = { type, description, expression, sensitivity };
        return part('column', `${name}.${column}`, facts, name);
      },
    );
    return [part(kind, name, facts), ...relation.columns.map((c) => columnPart(name, c)), ...computed];
  });
}

function entityFacts({ document }: Manifest, { name, composition, legs }: EntityFacts) {
  return { composition, legs, cache: document.entities[name]?.cache };
}

function facetParts(manifest: Manifest): readonly ManifestPart[] {
  return [...manifest.facets.values()].flatMap((facet): readonly ManifestPart[] => {
    const { name, connector, schema, table, metadata, derived, text, versions, lexicalLeg, ...rest } = facet;
    const facts = {
      ...rest,
      hybrid: lexicalLeg !== null,
      deprecated: deprecationOf(manifest, 'facets', name),
      source: `${connector}.${schema}.${table}`,
      text: text.physical,
      metadata: metadata.map((c) => c.name),
      versions: [...versions.values()],
    };
    const attributes = derived.map(({ name: attribute, ...more }): ManifestPart => {
      return part('derived', `${facet.entity}.${attribute}`, { ...more, facet: name }, name);
    });
    return [part('facet', name, facts), ...metadata.map((c) => columnPart(name, c)), ...attributes];
  });
}

/** Key domains are omitted: they follow from links, which are compared separately. */
function columnPart(
  owner: string,
  { name, physical, type, form, stored, labels, description, nullable, sensitivity }: Column,
): ManifestPart {
  const facts = {
    column: physical,
    type: form?.sql ?? type,
    ...(stored !== undefined && { stored }),
    ...(labels !== undefined && { labels }),
    description,
    nullable,
    sensitivity,
  };
  return part('column', `${owner}.${name}`, facts, owner);
}

/** Access changes of one role. */
export interface RoleChange {
  readonly role: string;
  readonly subjects: { readonly count: number; readonly first: readonly string[] };
  readonly changes: readonly AccessChange[];
}

export interface AccessChange {
  /** Full name of a column, a metric, a facet or a derived attribute. */
  readonly object: string;
  /** `differs`: the access changes in a way that is neither only a gain nor only a loss. */
  readonly effect: 'gains' | 'loses' | 'differs';
  readonly before: RoleVisibility | null;
  readonly after: RoleVisibility | null;
}

interface RoleVisibility {
  /**
   * `clear`, `masked`, `partly_masked` or `aggregates` (only in aggregates) for a column; `served` for anything else;
   * `rows` for the rows of an entity, with their conditions in `reads`.
   */
  readonly access: keyof typeof RANK | 'rows';
  /** The data that the role reads: a table's column, a facet's text in one version, or a metric's definition. */
  readonly reads: string;
}

const RANK = { aggregates: 1, masked: 2, partly_masked: 3, clear: 4, served: 4 } as const;

const MAX_NAMED_SUBJECTS = 20;

/** A manifest and a policy that are, or would be, served together. */
interface ManifestAndPolicy {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/**
 * Returns the access changes of each role if `after` replaces `before`. A role that exists in only one of them has no
 * access in the other.
 *
 * @param touched the changed objects of the manifest: only objects that depend on them are compared, since comparing
 * thousands of entities takes seconds for each role. Must be null, which compares all, if the policy has changed
 */
export function accessBetween(
  before: ManifestAndPolicy,
  after: ManifestAndPolicy,
  touched: readonly TouchedObject[] | null = null,
): readonly RoleChange[] {
  const roles = new Set([...before.snapshot.roles.keys(), ...after.snapshot.roles.keys()]);
  const names = touched === null ? null : dependentsOf(touched, [before.manifest, after.manifest]);
  const [old, now] = [before, after].map(({ manifest }) => partNamed(names, manifest));
  return [...roles].flatMap((role): readonly RoleChange[] => {
    const changes = changesOf(visibilitiesOf(role, before, old), visibilitiesOf(role, after, now));
    if (changes.length === 0) return [];
    const holders = [before, after].flatMap(({ snapshot }) => [...snapshot.subjects]);
    const subjects = [...new Set(holders.filter(([, s]) => s.ceiling.has(role)).map(([name]) => name))];
    return [
      { role, subjects: { count: subjects.length, first: subjects.slice(0, MAX_NAMED_SUBJECTS) }, changes },
    ];
  });
}

/** Names of the relations and metrics whose visibility may change. Facets are relations too. */
interface AffectedNames {
  readonly relations: Set<string>;
  readonly metrics: Set<string>;
}

/** Returns everything whose visibility may depend on the touched objects; null if that may be any object. */
function dependentsOf(
  touched: readonly TouchedObject[],
  manifests: readonly Manifest[],
): AffectedNames | null {
  const relations = new Set<string>();
  const metrics = new Set<string>();
  for (const { kind, name } of touched)
    switch (kind) {
      case 'term':
        break;
      case 'metric':
        metrics.add(name);
        break;
      case 'entity':
      case 'bridge':
      case 'facet':
      case 'column':
      case 'derived':
        relations.add(name);
        break;
      case 'relationship':
        for (const { relationships } of manifests) {
          const { from, to } = relationships.get(name) ?? {};
          for (const end of [from, to]) if (end !== undefined) relations.add(end.entity);
        }
        break;
      case 'connector':
      case 'raw_table':
      case 'feature':
        return null;
    }
  for (const { catalog } of manifests) {
    // A computed column may read its entity's parents.
    if (relations.size > 0)
      for (const { name, computed = [] } of catalog.relations.values())
        if (computed.length > 0) relations.add(name);
    for (const { name, entity } of catalog.facets.values())
      if (relations.has(name) || relations.has(entity)) relations.add(name).add(entity);
    for (const { name, type, entity } of catalog.metrics.values()) {
      // All metrics except simple ones refer to others.
      if (type !== 'simple' || (entity !== null && relations.has(entity))) metrics.add(name);
    }
    for (const name of metrics) {
      const entity = catalog.metrics.get(name)?.entity ?? null;
      if (entity !== null) relations.add(entity);
    }
  }
  return { relations, metrics };
}

/** Returns the objects with these names; all objects of the catalog if `names` is null. */
function partNamed(names: AffectedNames | null, { catalog }: Manifest): GraphPart {
  if (names === null) return catalog;
  const { relations, metrics } = names;
  return {
    relations: chosen(catalog.relations, relations),
    metrics: chosen(catalog.metrics, metrics),
    facets: chosen(catalog.facets, relations),
  };
}

/** Returns the members of `all` with these names, in the order of `all`. */
function chosen<T>(all: ReadonlyMap<string, T>, names: ReadonlySet<string>): ReadonlyMap<string, T> {
  return new Map([...all].filter(([name]) => names.has(name)));
}

type Visibilities = ReadonlyMap<string, RoleVisibility>;

function changesOf(before: Visibilities, after: Visibilities): readonly AccessChange[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .sort()
    .flatMap((object): readonly AccessChange[] => {
      const [old, now] = [before.get(object) ?? null, after.get(object) ?? null];
      if (old?.access === now?.access && old?.reads === now?.reads) return [];
      return [{ object, effect: effectOf(rankOf(old), rankOf(now)), before: old, after: now }];
    });
}

function rankOf(sight: RoleVisibility | null): number {
  return sight === null || sight.access === 'rows' ? 0 : RANK[sight.access];
}

function effectOf(before: number, after: number): AccessChange['effect'] {
  if (before === after) return 'differs';
  return before < after ? 'gains' : 'loses';
}

function visibilitiesOf(
  role: string,
  { manifest, snapshot }: ManifestAndPolicy,
  within: GraphPart = manifest.catalog,
): Visibilities {
  if (!snapshot.roles.has(role)) return new Map();
  const access = roleAccess(role, snapshot, manifest.catalog);
  const view = governedView(manifest, access, within);
  const sights = new Map<string, RoleVisibility>();
  for (const relation of within.relations.values()) {
    for (const [name, sight] of columnVisibilities(relation, manifest, access)) sights.set(name, sight);
  }
  for (const { name } of view.metrics) {
    const reads = JSON.stringify(manifest.catalog.metrics.get(name));
    sights.set(metricName(name), { access: 'served', reads });
  }
  for (const { name } of view.facets)
    sights.set(facetName(name), { access: 'served', reads: textOf(name, manifest, access) });
  for (const entity of view.entities) {
    for (const { name, facet } of entity.derived)
      sights.set(columnName(entity.name, name), {
        access: 'served',
        reads: textOf(facet, manifest, access),
      });
  }
  return sights;
}

function columnVisibilities(
  relation: Relation,
  { catalog }: Manifest,
  access: Access,
): readonly (readonly [string, RoleVisibility])[] {
  const rights = access.relations.get(relation.name);
  if (rights === undefined) return [];
  const { kind, name, connector, schema, table } = relation;
  const owner = kind === 'facet' ? facetName(name) : entityName(name);
  return visibleColumns(relation, catalog, access).map(({ column, masked, rows, computed }) => {
    const shown = masked === 'none' ? 'clear' : masked === 'some' ? 'partly_masked' : 'masked';
    // The kind of mask matters too: a year reveals more than a null.
    const { sensitivity } = column;
    const how =
      sensitivity === null ? 'without what is redacted' : `as ${rights.masks.get(sensitivity) ?? 'deny'}`;
    const mask = masked === 'none' ? '' : ` ${how}`;
    const reads =
      computed === undefined
        ? `${connector}.${schema}.${table}.${column.physical}${mask}`
        : `${computed.expression}${mask}`;
    return [`${owner}.${column.name}`, { access: rows ? shown : 'aggregates', reads }];
  });
}

/** Describes the facet text that a role is served: the source column, and the redacted labels and detectors. */
function textOf(name: string, manifest: Manifest, access: Access): string {
  const facet = manifest.facets.get(name);
  const store = manifest.catalog.facets.get(name);
  if (facet === undefined || store === undefined) return '';
  const due = servedVersion(store, manifest.catalog, access);
  const version = facet.versions.get(due?.name ?? '');
  const redacted = [...(version?.redact ?? []), ...(version?.detectors ?? [])];
  const without = redacted.length === 0 ? '' : ` without ${redacted.join(', ')}`;
  return `${facet.connector}.${facet.schema}.${facet.table}.${facet.text.physical}${without}`;
}
