import { ALL_FEATURES, type Catalog, type Column } from 'osl-compiler';
import { deprecationOf, type Manifest } from '../manifest/index.js';

export interface ManifestChange {
  readonly change: 'added' | 'removed' | 'changed';
  readonly kind: PartKind;
  /** `entity`, `entity.column`, `schema.table` of a raw SQL table, or a plain name. */
  readonly name: string;
  /** Changed properties, as the manifest names them; empty unless `change` is `changed`. */
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

/** Differences between compiled manifests; comments, layout and equivalent spellings do not count. */
export function changesBetween(before: Manifest, after: Manifest): readonly ManifestChange[] {
  const [old, now] = [partsOf(before), partsOf(after)];
  const changes: ManifestChange[] = [];
  for (const [key, part] of old) {
    const other = now.get(key);
    if (other === undefined) changes.push(changeOf(part, 'removed'));
    else {
      const what = differences(part.facts, other.facts);
      if (what.length > 0) changes.push({ ...changeOf(part, 'changed'), what });
    }
  }
  for (const [key, part] of now) if (!old.has(key)) changes.push(changeOf(part, 'added'));
  return changes;
}

interface ManifestPart {
  readonly kind: PartKind;
  readonly name: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

function changeOf({ kind, name }: ManifestPart, change: ManifestChange['change']): ManifestChange {
  return { change, kind, name, what: [] };
}

function differences(before: ManifestPart['facts'], after: ManifestPart['facts']): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

function partsOf(manifest: Manifest): ReadonlyMap<string, ManifestPart> {
  const { catalog } = manifest;
  const parts: ManifestPart[] = [
    ...[...manifest.connectors.values()].map(({ name, kind, urlEnv }): ManifestPart => {
      return { kind: 'connector', name, facts: { kind, url_env: urlEnv } };
    }),
    ...relationParts(manifest),
    ...facetParts(manifest),
    ...[...manifest.relationships.values()].map(({ name, ...facts }): ManifestPart => {
      return {
        kind: 'relationship',
        name,
        facts: { ...facts, deprecated: deprecationOf(manifest, 'relationships', name) },
      };
    }),
    ...[...catalog.metrics.values()].map(({ name, ...facts }): ManifestPart => {
      return {
        kind: 'metric',
        name,
        facts: { ...facts, deprecated: deprecationOf(manifest, 'metrics', name) },
      };
    }),
    ...[...manifest.lexicon.values()].map(({ term, refersTo, synonyms }): ManifestPart => {
      return { kind: 'term', name: term, facts: { refers_to: refersTo, synonyms } };
    }),
    ...[...(catalog.rawTables ?? new Map<string, never>()).keys()].map((name): ManifestPart => {
      return { kind: 'raw_table', name, facts: {} };
    }),
    ...featureParts(catalog),
  ];
  return new Map(parts.map((part) => [`${part.kind} ${part.name}`, part]));
}

function featureParts({ features = ALL_FEATURES, joins = 'declared' }: Catalog): readonly ManifestPart[] {
  return [
    { kind: 'feature', name: 'joins', facts: { joins } },
    ...Object.entries(features).map(([name, on]): ManifestPart => ({ kind: 'feature', name, facts: { on } })),
  ];
}

function relationParts(manifest: Manifest): readonly ManifestPart[] {
  return [...manifest.catalog.relations.values()].flatMap((relation): readonly ManifestPart[] => {
    if (relation.kind === 'facet') return []; // the store of a facet; `facetParts` has its source
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
      ...(entity === undefined ? {} : { composition: entity.composition, legs: entity.legs }),
    };
    const computed = (relation.computed ?? []).map(
      ({ name: column, type, description, expression, sensitivity }): ManifestPart => {
        const facts = { type, description, expression, sensitivity };
        return { kind: 'column', name: `${name}.${column}`, facts };
      },
    );
    return [{ kind, name, facts }, ...relation.columns.map((c) => columnPart(name, c)), ...computed];
  });
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
      return { kind: 'derived', name: `${facet.entity}.${attribute}`, facts: { ...more, facet: name } };
    });
    return [{ kind: 'facet', name, facts }, ...metadata.map((c) => columnPart(name, c)), ...attributes];
  });
}

/** Key domains are left out: they follow from links, which are parts themselves. */
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
  return { kind: 'column', name: `${owner}.${name}`, facts };
}
