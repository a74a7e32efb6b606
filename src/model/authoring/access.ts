import { type Access, type Relation, versionDue, visibleColumns } from 'osl-compiler';
import { type PolicySnapshot, roleAccess } from '../../../policy/index.js';
import { columnName, entityName, facetName, governedView, metricName } from '../graph/index.js';
import type { Manifest } from '../manifest/index.js';

/** Access changes of one role. */
export interface RoleChange {
  readonly role: string;
  readonly subjects: { readonly count: number; readonly first: readonly string[] };
  readonly changes: readonly AccessChange[];
}

export interface AccessChange {
  /** Full name of a column, a metric, a facet or a derived attribute. */
  readonly object: string;
  /** `differs`: neither more nor less, but other data. */
  readonly effect: 'gains' | 'loses' | 'differs';
  /** Null if the role does not see it. */
  readonly before: RoleVisibility | null;
  readonly after: RoleVisibility | null;
}

interface RoleVisibility {
  /**
   * `clear`; `masked` or `partly_masked`; `aggregates` only; `served` for anything that is not a column; `rows` for a
   * whole entity, under the terms in `reads`.
   */
  readonly access: keyof typeof RANK | 'rows';
  /** A column of a table, the text of a facet in one version, or a metric's definition. */
  readonly reads: string;
}

const RANK = { aggregates: 1, masked: 2, partly_masked: 3, clear: 4, served: 4 } as const;

const NAMED = 20;

/** A manifest and a policy that are, or would be, served together. */
export interface ManifestAndPolicy {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** Access changes by role if `after` replaces `before`. A role missing from one of them sees nothing there. */
export function accessBetween(before: ManifestAndPolicy, after: ManifestAndPolicy): readonly RoleChange[] {
  const roles = new Set([...before.snapshot.roles.keys(), ...after.snapshot.roles.keys()]);
  return [...roles].flatMap((role): readonly RoleChange[] => {
    const changes = changesOf(sightsOf(role, before), sightsOf(role, after));
    if (changes.length === 0) return [];
    const holders = [before, after].flatMap(({ snapshot }) => [...snapshot.subjects]);
    const subjects = [...new Set(holders.filter(([, s]) => s.ceiling.has(role)).map(([name]) => name))];
    return [{ role, subjects: { count: subjects.length, first: subjects.slice(0, NAMED) }, changes }];
  });
}

type Sights = ReadonlyMap<string, RoleVisibility>;

function changesOf(before: Sights, after: Sights): readonly AccessChange[] {
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

function sightsOf(role: string, { manifest, snapshot }: ManifestAndPolicy): Sights {
  if (!snapshot.roles.has(role)) return new Map();
  const access = roleAccess(role, snapshot, manifest.catalog);
  const view = governedView(manifest, access);
  const sights = new Map<string, RoleVisibility>();
  for (const relation of manifest.catalog.relations.values()) {
    for (const [name, sight] of columnsSeen(relation, manifest, access)) sights.set(name, sight);
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

function columnsSeen(
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
    // The kind of mask matters too: a year reveals more than nothing.
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

/** Facet text served to a role: its source column, and the labels and detectors redacted in it. */
function textOf(name: string, manifest: Manifest, access: Access): string {
  const facet = manifest.facets.get(name);
  const store = manifest.catalog.facets.get(name);
  if (facet === undefined || store === undefined) return '';
  const due = versionDue(store, manifest.catalog, access);
  const version = facet.versions.get(due?.name ?? '');
  const redacted = [...(version?.redact ?? []), ...(version?.detectors ?? [])];
  const without = redacted.length === 0 ? '' : ` without ${redacted.join(', ')}`;
  return `${facet.connector}.${facet.schema}.${facet.table}.${facet.text.physical}${without}`;
}
