import type { Relation } from 'osl-compiler';
import {
  conditionsIn,
  effectiveAccess,
  hypotheticalClaims,
  type IdentityClaims,
  type PolicySnapshot,
} from '../../../policy/index.js';
import { objectName, objectNamed, VISIBILITIES, type Visibility, visibilities } from '../graph/index.js';
import type { Manifest } from '../manifest/index.js';

/** An earlier query, as recorded in the audit log. */
interface RecordedQuery {
  /** The chain of actors, root first; the last one sent the query. */
  readonly chain: readonly string[];
  readonly objects: readonly string[];
}

/** Difference in a caller's access to an object. */
export interface AccessDifference {
  /** Full name, such as `osl.entities.person`; for a metric, that of the entity it is measured over. */
  readonly object: string;
  /** Columns that would be less visible or hidden. */
  readonly loses: readonly string[];
  readonly gains: readonly string[];
  /** True if row filters, group sizes, masks or conditions differ. */
  readonly terms: boolean;
}

/** Two policies to compare against one manifest. */
export interface Policies {
  readonly manifest: Manifest;
  readonly before: PolicySnapshot;
  readonly after: PolicySnapshot;
}

/**
 * Returns a function that finds, for an earlier query, the objects to which its caller's access would change. The log
 * does not contain token claims, so a caller is assumed to have every role within its ceilings, and any change in the
 * text of a grant condition counts as a difference. False alarms are preferred to omissions.
 */
export function accessDifferences(policies: Policies): (asked: RecordedQuery) => readonly AccessDifference[] {
  const known = new Map<string, AccessDifference | null>();
  return ({ chain, objects }) => {
    return recordedRelations(objects, policies.manifest).flatMap((relation) => {
      const key = JSON.stringify([chain, relation.name]);
      const found = known.get(key);
      const otherwise = found === undefined ? accessDifference(chain, relation, policies) : found;
      known.set(key, otherwise);
      return otherwise ?? [];
    });
  };
}

/** Returns the relations that a recorded query read, without those that are no longer declared. */
export function recordedRelations(objects: readonly string[], manifest: Manifest): readonly Relation[] {
  return [...new Set(objects.flatMap((object) => relationOf(object, manifest) ?? []))];
}

function relationOf(object: string, { catalog }: Manifest): Relation | undefined {
  const metric = /^osl\.metrics\.(.+)$/.exec(object)?.[1];
  const name = metric === undefined ? nameIn(object) : (catalog.metrics.get(metric)?.entity ?? undefined);
  return name === undefined ? undefined : catalog.relations.get(name);
}

/** Returns the relation that a recorded name refers to; undefined for the fingerprints logged for undeclared names. */
function nameIn(object: string): string | undefined {
  return /^osl\.(entities|facets)\./.test(object) ? objectNamed(object).relation : undefined;
}

function accessDifference(
  chain: readonly string[],
  relation: Relation,
  { manifest, before, after }: Policies,
): AccessDifference | null {
  const [old, now] = [before, after].map((snapshot) => roleViewOf(chain, relation, snapshot, manifest));
  if (old === undefined || now === undefined || (old.text === now.text && same(old.columns, now.columns)))
    return null;
  const names = [...new Set([...old.columns.keys(), ...now.columns.keys()])].sort();
  const rank = (sights: RoleView['columns'], name: string) =>
    VISIBILITIES.indexOf(sights.get(name) ?? 'nothing');
  const changed = (sign: 1 | -1) =>
    names.filter((name) => Math.sign(rank(now.columns, name) - rank(old.columns, name)) === sign);
  return {
    object: objectName(relation),
    loses: changed(1),
    gains: changed(-1),
    terms: old.text !== now.text,
  };
}

interface RoleView {
  readonly columns: ReadonlyMap<string, Visibility>;
  /** Row filters, group sizes, masks, conditions and attributes, as JSON. */
  readonly text: string;
}

function roleViewOf(
  chain: readonly string[],
  relation: Relation,
  snapshot: PolicySnapshot,
  { catalog }: Manifest,
): RoleView {
  const identity = hypotheticalClaims({ chain, roles: null }, snapshot);
  const access = effectiveAccess(identity, snapshot, catalog);
  const rights = access.relations.get(relation.name);
  const columns = new Map(visibilities(relation, catalog, access).map(({ name, sees }) => [name, sees]));
  const terms = (rights?.grants ?? [])
    .map(({ filter, groups, unmask, decode, columns: of }) =>
      JSON.stringify([filter, groups, [...unmask].sort(), decode, [...of].sort()], asLists),
    )
    .sort();
  const conditions = [...access.dataRoles].flatMap((role) => conditionsOf(role, relation.name, snapshot));
  const filtered = (rights?.grants ?? []).some(({ filter }) => filter !== null);
  const attributes = filtered ? attributesOf(identity, snapshot) : [];
  const text = JSON.stringify([terms, rights?.masks, rights?.order, conditions, attributes], asLists);
  return { columns, text };
}

function conditionsOf(role: string, on: string, { document }: PolicySnapshot): readonly unknown[] {
  return (document.roles[role]?.grants ?? []).filter(
    (grant) => grant.on === on && conditionsIn(grant) !== null,
  );
}

function attributesOf({ chain }: IdentityClaims, { subjects }: PolicySnapshot): readonly unknown[] {
  return chain.map((subject) => subjects.get(subject)?.attributes);
}

function asLists(_key: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value;
}

function same(a: RoleView['columns'], b: RoleView['columns']): boolean {
  return JSON.stringify([...a]) === JSON.stringify([...b]);
}
