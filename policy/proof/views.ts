import type { Catalog, Relation } from 'osl-compiler';
import type { PolicyGrant, PolicySnapshot } from '../snapshot.js';
import { and, FALSE, type Formula, or, TRUE } from './formula.js';
import type { Encoder } from './values.js';

/** A policy and the catalog that it was compiled against. */
export interface ProvenPolicy {
  readonly snapshot: PolicySnapshot;
  readonly catalog: Catalog;
}

/** The rows and columns of one relation visible to members of some roles, as formulas over a row and a caller. */
export interface View {
  readonly relation: Relation;
  /** True if the row is in answers, whichever of its columns are visible. */
  readonly row: Formula;
  /** By column: true if its value is shown. */
  readonly unmasked: ReadonlyMap<string, Formula>;
  /** By column: true if its value or its mask is shown. */
  readonly shown: ReadonlyMap<string, Formula>;
  /** By column, group rule and unmasked labels (JSON): true if the column may be aggregated under this rule. */
  readonly aggregated: ReadonlyMap<string, Formula>;
  /** By unmasked labels (a JSON list): true if a grant on a facet shows passages with all other labels redacted. */
  readonly versions: ReadonlyMap<string, Formula>;
  /** True if the passages of a facet may be sent to a language model. */
  readonly decoded: Formula;
}

/** Encodes what a caller with exactly these roles sees. The conditions of a grant are represented by a variable. */
export function viewOf(
  roles: readonly string[],
  { snapshot, catalog }: ProvenPolicy,
  encoder: Encoder,
): View {
  const { relation } = encoder;
  const grants = grantsOf(roles, relation.name, snapshot);
  const rowGrants = grants.filter((g) => g.groups === undefined);
  const denied = deniedColumns(roles, relation, snapshot);
  const entity = catalog.facets.get(relation.name)?.entity;
  const isEntityDenied = roles.some((role) => snapshot.roles.get(role)?.denied.get(entity ?? '') === 'all');
  const isDenied = isEntityDenied || relation.columns.every((c) => denied.has(c.name));
  const accessFormula = (some: readonly PolicyGrant[]): Formula =>
    isDenied ? FALSE : or(...some.map((g) => and(conditionOf(g, encoder), encoder.accepts(g.filter))));
  const byColumn = (covers: (grant: PolicyGrant, column: Relation['columns'][number]) => boolean) =>
    new Map(
      relation.columns.map((column) => [
        column.name,
        denied.has(column.name) ? FALSE : accessFormula(rowGrants.filter((g) => covers(g, column))),
      ]),
    );
  const unmasked = byColumn(
    (g, c) => g.columns.has(c.name) && (c.sensitivity === null || g.unmask.has(c.sensitivity)),
  );
  const masks = snapshot.masks.get(relation.name) ?? new Map();
  const isHidden = (c: Relation['columns'][number]): boolean =>
    c.sensitivity !== null &&
    (masks.get(c.sensitivity) ?? 'deny') === 'deny' &&
    unmasked.get(c.name) === FALSE;
  return {
    relation,
    row: accessFormula(rowGrants),
    unmasked,
    shown: byColumn((g, c) => g.columns.has(c.name) && !isHidden(c)),
    aggregated: aggregatedBy(grants, denied, accessFormula),
    versions: versionsBy(relation.kind === 'facet' ? rowGrants : [], accessFormula),
    decoded: accessFormula(grants.filter((g) => g.decode === true)),
  };
}

function grantsOf(
  roles: readonly string[],
  relation: string,
  snapshot: PolicySnapshot,
): readonly PolicyGrant[] {
  return roles.flatMap((role) => snapshot.roles.get(role)?.grants.get(relation) ?? []);
}

function conditionOf({ conditions }: PolicyGrant, encoder: Encoder): Formula {
  return conditions === null ? TRUE : encoder.condition(conditions.key);
}

function deniedColumns(
  roles: readonly string[],
  relation: Relation,
  snapshot: PolicySnapshot,
): ReadonlySet<string> {
  const rules = roles.flatMap((role) => snapshot.roles.get(role)?.denied.get(relation.name) ?? []);
  const all = rules.includes('all');
  const named = rules.flatMap((rule) => (rule === 'all' ? [] : [...rule]));
  return new Set(all ? relation.columns.map((c) => c.name) : named);
}

function aggregatedBy(
  grants: readonly PolicyGrant[],
  denied: ReadonlySet<string>,
  accessFormula: (some: readonly PolicyGrant[]) => Formula,
): ReadonlyMap<string, Formula> {
  const byKey = new Map<string, PolicyGrant[]>();
  for (const grant of grants) {
    if (grant.groups === undefined) continue;
    const rule = JSON.stringify(grant.groups, (_, value: unknown) =>
      value instanceof Map ? [...value] : value instanceof Set ? [...value].sort() : value,
    );
    for (const column of grant.columns) {
      if (denied.has(column)) continue;
      const key = JSON.stringify([column, rule, [...grant.unmask].sort()]);
      byKey.set(key, [...(byKey.get(key) ?? []), grant]);
    }
  }
  return new Map([...byKey].map(([key, some]) => [key, accessFormula(some)]));
}

function versionsBy(
  grants: readonly PolicyGrant[],
  accessFormula: (some: readonly PolicyGrant[]) => Formula,
): ReadonlyMap<string, Formula> {
  const keys = new Set(grants.map((g) => JSON.stringify([...g.unmask].sort())));
  return new Map(
    [...keys].map((key) => [
      key,
      accessFormula(grants.filter((g) => JSON.stringify([...g.unmask].sort()) === key)),
    ]),
  );
}

/** Returns the labels in a key of `versions`. */
export function unmaskedLabels(key: string): readonly string[] {
  return JSON.parse(key);
}

/** Returns the column in a key of `aggregated`. */
export function aggregatedColumn(key: string): string {
  const [column]: readonly string[] = JSON.parse(key);
  return column ?? '';
}

/** Finds the relation with a name such as `customer` or `osl.entities.customer`; null if it does not exist. */
export function relationNamed(name: string, catalog: Catalog): Relation | null {
  return catalog.relations.get(name.replace(/^osl\.(?:entities|facets)\./, '')) ?? null;
}

/** Returns the roles that have a grant on a relation. */
export function rolesOn(relation: string, snapshot: PolicySnapshot): readonly string[] {
  return [...snapshot.roles].filter(([, { grants }]) => grants.has(relation)).map(([name]) => name);
}
