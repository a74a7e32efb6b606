import {
  allLeaves,
  type Expr,
  fullName,
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  type MaskKind,
  type Relation,
  type RelationGrant,
  visibleColumns,
} from 'osl-compiler';
import type { EffectiveAccess, PolicySnapshot } from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';

/** One of the two compared policies, with a caller's rights under it. */
export interface PolicySide {
  readonly access: EffectiveAccess;
  readonly snapshot: PolicySnapshot;
}

/** Protection that a column would get: a mask, visible only in aggregates, or hidden. */
export type ColumnProtection = MaskKind | 'aggregates' | 'hidden';

/** Effect of the shadow policy on one statement's reads of one object. */
export interface ObjectDifference {
  /** Full name, such as `osl.entities.person`. */
  readonly object: string;
  /** Columns that the statement reads and that would be less visible, with the protection they would get. */
  readonly masked: ReadonlyMap<string, ColumnProtection>;
  /** Columns that the statement reads and that would be more visible than under the served policy. */
  readonly shown: readonly string[];
  readonly rows: 'same' | 'narrower' | 'wider' | 'other';
  /** True if a column would be masked in other rows or with another mask, or if a facet's served version differs. */
  readonly otherMasks: boolean;
  /** True if the minimum group size or another rule for groups differs. */
  readonly groups: boolean;
}

/** Effect of the shadow policy on one statement of one caller. */
export type PlanComparison =
  | { readonly kind: 'same' }
  | { readonly kind: 'refused' | 'allowed'; readonly code: string; readonly objects: readonly string[] }
  | { readonly kind: 'differs'; readonly objects: readonly ObjectDifference[] };

/** Returns the differences between the two plans of one statement, by object; empty if there are none. */
export function comparePlans(
  served: PlanOfSide,
  shadow: PlanOfSide,
  manifest: Manifest,
): readonly ObjectDifference[] {
  const before = readsOf(served.plan);
  const after = readsOf(shadow.plan);
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const relation = manifest.catalog.relations.get(name);
    if (relation === undefined) return [];
    const reads = { before: before.get(name) ?? NOTHING_READ, after: after.get(name) ?? NOTHING_READ };
    const found = compareObject(relation, reads, served.side, shadow.side, manifest);
    const isSame =
      found.masked.size === 0 && found.shown.length === 0 && found.rows === 'same' && !found.otherMasks;
    return isSame && !found.groups ? [] : [found];
  });
}

export interface PlanOfSide {
  readonly plan: GovernedPlan;
  readonly side: PolicySide;
}

/** Reads of one relation by one plan. */
interface RelationReads {
  readonly columns: Set<string>;
  /** Minimum-group rules for rows that may only be counted in groups, as JSON; empty if no such rule applies. */
  readonly minimums: Set<string>;
  /** Redacted versions of the facet that are searched. */
  readonly versions: Set<string>;
}

const NOTHING_READ: RelationReads = {
  columns: new Set(),
  minimums: new Set(),
  versions: new Set(),
};

function readsOf(plan: GovernedPlan, into = new Map<string, RelationReads>()): Map<string, RelationReads> {
  const of = (name: string): RelationReads => {
    const known = into.get(name) ?? { columns: new Set(), minimums: new Set(), versions: new Set() };
    into.set(name, known);
    return known;
  };
  for (const leaf of allLeaves(plan.query)) {
    if (leaf.kind !== 'governed') continue;
    const { columns, minimums } = of(leaf.relation.name);
    for (const { name } of leaf.columns) columns.add(name);
    const { minimum } = leaf;
    if (minimum !== null)
      minimums.add(JSON.stringify([minimum.size, minimum.distinct, minimum.dominance, minimum.everyRow]));
  }
  for (const runtime of plan.runtime) {
    for (const { facet, version } of storesOf(runtime)) {
      const { columns, versions } = of(facet.name);
      versions.add(version);
      if ('columns' in runtime.relation) for (const { name } of runtime.relation.columns) columns.add(name);
    }
    for (const step of stepsOf(runtime)) readsOf(step, into);
  }
  return into;
}

function storesOf(runtime: GovernedRuntime): readonly GovernedStore[] {
  switch (runtime.kind) {
    case 'retrieval':
      return [runtime.store, runtime.lexical].filter((store) => store !== null);
    case 'hydration':
      return runtime.stores;
    case 'traversal':
    case 'operated':
      return [];
  }
}

function stepsOf(runtime: GovernedRuntime): readonly GovernedPlan[] {
  switch (runtime.kind) {
    case 'traversal':
      return runtime.start === null ? runtime.hops : [runtime.start, ...runtime.hops];
    case 'operated':
      return [runtime.rows];
    case 'retrieval':
    case 'hydration':
      return storesOf(runtime).map(({ passages }) => passages);
  }
}

function compareObject(
  relation: Relation,
  { before, after }: { readonly before: RelationReads; readonly after: RelationReads },
  served: PolicySide,
  shadow: PolicySide,
  { catalog }: Manifest,
): ObjectDifference {
  const sees = ({ access }: PolicySide) =>
    new Map(
      visibleColumns(relation, catalog, access).map(
        ({ column, rows, masked }): [string, ColumnVisibility] => [
          column.name,
          rows ? SHOWN[masked] : 'aggregates',
        ],
      ),
    );
  const [old, now] = [sees(served), sees(shadow)];
  const of = (sights: ReadonlyMap<string, ColumnVisibility>, name: string): ColumnVisibility =>
    sights.get(name) ?? 'nothing';
  const used = [...new Set([...before.columns, ...after.columns])].sort();
  const masked = new Map<string, ColumnProtection>();
  const shown: string[] = [];
  let otherMasks = !sameItems(before.versions, after.versions);
  for (const name of used) {
    const [was, is] = [of(old, name), of(now, name)];
    if (isMore(was, is)) masked.set(name, hidingOf(is) ?? maskOf(relation, name, shadow));
    else if (isMore(is, was)) shown.push(name);
    else if (is === 'masked' || is === 'partly_masked')
      otherMasks ||= maskText(relation, name, served) !== maskText(relation, name, shadow);
  }
  const grouped = { before: before.minimums.size > 0, after: after.minimums.size > 0 };
  return {
    object: fullName(relation.kind === 'facet' ? 'facets' : 'entities', relation.name),
    masked,
    shown,
    rows: compareRows(rowsOf(relation, served, grouped.before), rowsOf(relation, shadow, grouped.after)),
    otherMasks,
    groups: !sameItems(before.minimums, after.minimums),
  };
}

/** Degrees of visibility of a column, most visible first. */
const VISIBILITIES = ['clear', 'partly_masked', 'masked', 'aggregates', 'nothing'] as const;
type ColumnVisibility = (typeof VISIBILITIES)[number];
const SHOWN = { none: 'clear', some: 'partly_masked', all: 'masked' } as const;

function isMore(a: ColumnVisibility, b: ColumnVisibility): boolean {
  return VISIBILITIES.indexOf(a) < VISIBILITIES.indexOf(b);
}

function hidingOf(is: ColumnVisibility): 'aggregates' | 'hidden' | null {
  return is === 'nothing' ? 'hidden' : is === 'aggregates' ? is : null;
}

function maskOf(relation: Relation, name: string, { access }: PolicySide): MaskKind {
  const label = relation.columns.find((column) => column.name === name)?.sensitivity ?? null;
  const declared = label === null ? undefined : access.relations.get(relation.name)?.masks.get(label);
  return declared === undefined || declared === 'deny' ? 'redact' : declared;
}

/**
 * Returns the mask of a column and the conditions of the rows that show the column in the clear, as text to compare.
 */
function maskText(relation: Relation, name: string, side: PolicySide): string {
  const label = relation.columns.find((column) => column.name === name)?.sensitivity ?? null;
  const clear = grantsOf(relation, side)
    .filter(({ columns, unmask }) => columns.has(name) && (label === null || unmask.has(label)))
    .map(({ filter }) => JSON.stringify([...conditions(filter, side)].sort()));
  return JSON.stringify([maskOf(relation, name, side), [...new Set(clear)].sort()]);
}

function grantsOf({ name }: Relation, { access }: PolicySide): readonly RelationGrant[] {
  return access.relations.get(name)?.grants ?? [];
}

/**
 * A disjunction of conjunctions, each a set of conditions as text. A row is visible if all conditions of one set hold.
 */
type RowConditions = readonly ReadonlySet<string>[];

function rowsOf(relation: Relation, side: PolicySide, grouped: boolean): RowConditions {
  return grantsOf(relation, side)
    .filter(({ groups }) => grouped || groups === undefined)
    .map(({ filter }) => conditions(filter, side))
    .filter((all) => !all.has(NEVER));
}

/**
 * Compares row filters by the text of their conditions: a filter with more conditions is narrower, one with fewer is
 * wider. Otherwise the result is `other`. With `narrower` or `wider`, the rows may still be equal, but never the
 * opposite.
 */
function compareRows(served: RowConditions, shadow: RowConditions): ObjectDifference['rows'] {
  const [less, more] = [isWithin(shadow, served), isWithin(served, shadow)];
  if (less && more) return 'same';
  return less ? 'narrower' : more ? 'wider' : 'other';
}

/** True if every row that `inner` accepts is certainly accepted by `outer`; false if that is uncertain. */
function isWithin(inner: RowConditions, outer: RowConditions): boolean {
  return inner.every((all) => outer.some((fewer) => [...fewer].every((one) => all.has(one))));
}

const NEVER = 'false';

/** Returns the conditions of a row filter, which must all hold, as texts. Equal conditions have equal texts. */
function conditions(filter: Expr | null, side: PolicySide): ReadonlySet<string> {
  const all = new Set<string>();
  const add = (expr: Expr): void => {
    if (expr.kind === 'and') for (const arg of expr.args) add(arg);
    else if (expr.kind !== 'boolean') all.add(textOf(expr, side));
    else if (!expr.value) all.add(NEVER);
  };
  if (filter !== null) add(filter);
  return all;
}

/** Returns a condition as text, including the values of attributes, which are compared but never reported. */
function textOf(expr: Expr, side: PolicySide): string {
  return JSON.stringify(expr, (_key, value: unknown) => {
    if (!isAttributeMatch(value)) return value;
    const { subject, attribute, arg } = value;
    return ['attribute', arg, subject?.index, attributeText(subject?.index ?? 0, attribute, side)];
  });
}

function isAttributeMatch(value: unknown): value is Extract<Expr, { kind: 'attribute_match' }> {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'attribute_match';
}

/**
 * Returns the text by which an attribute is compared: the definition if it is read from an entity, otherwise its
 * values.
 */
function attributeText(index: number, name: string, { access, snapshot }: PolicySide): string {
  const read = snapshot.tableAttributes.get(name);
  if (read === undefined) return JSON.stringify([...access.attributeValues(index, name)].sort());
  return JSON.stringify(['read', read.relation.name, read.column, read.filter]);
}

function sameItems(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((item) => b.has(item));
}
