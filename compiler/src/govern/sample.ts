import { type Access, accessTo, rowAccess } from '../access/access.js';
import { GROUPS_ONLY } from '../access/groups-only.js';
import { type BoundPlan, bindSample, columnsFor, LiteralSlots, type SampledValue } from '../bind/index.js';
import type { Catalog, Relation } from '../catalog/catalog.js';
import { InternalError, queryError } from '../errors/errors.js';
import { allOf, columnRef, truthTest } from '../plan/nodes.js';
import type { EntityScan, Expr, GovernedScan, Select } from '../plan/plan.js';
import { PASSAGE_COLUMNS } from '../plan/runtime.js';
import { ascending } from '../plan/select-nodes.js';
import { nearest } from '../text/text.js';
import { isComparable, type TypeName } from '../types/types.js';
import { visibleColumnName } from './column-names.js';
import { governWith } from './govern.js';
import type { GovernedPlan, GovernedStore } from './governed-plan.js';
import { clearColumn, columnRule, keyColumn, rowFilter, visibleColumn } from './mask.js';
import { clearKey } from './order.js';
import type { ScanAccess } from './scan-access.js';
import { GovernedSlots } from './slots.js';
import { governedStore } from './store/governed-store.js';

/** The kind of sampled object: an entity, or the text of a facet. */
export type SampleKind = 'table' | 'facet';

/** One column of a sample. */
export interface SampledColumn {
  readonly name: string;
  readonly type: TypeName;
  /**
   * Name of the plan's output that is true in rows where the cell may be read; otherwise the cell is redacted, whatever
   * its value. Null if every cell may be read, and for a facet, whose passages contain this information.
   */
  readonly visible: string | null;
}

/** The first rows of one object, as this caller may see them. The plans have a slot `limit`. */
export interface GovernedSample {
  readonly form: 'structured' | 'retrieve';
  /** `osl.entities.<name>` or `osl.facets.<name>`. */
  readonly objects: readonly string[];
  readonly source:
    | { readonly kind: 'table'; readonly plan: GovernedPlan }
    /** `store` is null if the caller has no grant, and therefore no passages. */
    | { readonly kind: 'facet'; readonly store: GovernedStore | null };
  /** The columns of the table; for a facet, its key and metadata, without the columns that every passage has. */
  readonly columns: readonly SampledColumn[];
}

/**
 * Returns a sample of the entity or facet `name`, in an order that always shows the same caller the same rows: rows by
 * primary key, or by all stored values if the caller may not read it; passages by entity key and id.
 *
 * @throws QueryError E0254 for an entity that is not declared, or not visible to this caller; E0241 for a facet that is
 * not declared; E2101 if the object or every column is denied; E2103 if no grant shows rows
 */
export function governSample(
  kind: SampleKind,
  name: string,
  catalog: Catalog,
  access: Access,
): GovernedSample {
  return kind === 'table' ? sampleTable(name, catalog, access) : sampleFacet(name, catalog, access);
}

function sampleTable(name: string, catalog: Catalog, access: Access): GovernedSample {
  const relation = catalog.relations.get(name);
  if (relation?.kind === 'entity' && access.denied?.has(name) === true)
    throw queryError('denied', { object: name });
  if (relation?.kind !== 'entity' || !access.relations.has(name)) {
    throw queryError('unknownModel', { model: name, near: nearest(name, entitiesOf(catalog, access)) });
  }
  const shown = inRows(access);
  const allowed = shown.relations.get(name);
  if (allowed === undefined) {
    throw queryError('groupsOnly', { relation: name, ...GROUPS_ONLY.sampled(name) });
  }
  const bound = bindSample(relation, catalog, shown);
  if (bound.values.length === 0) throw queryError('denied', { object: name });
  const cells = bound.values.map((value) => cellOf(value, shown));
  const slots = new GovernedSlots(bound.plan.slots);
  const asked = sampledRows(bound.plan, cells, orderOf(cells, clearKey(relation, allowed)), slots);
  const plan = governWith(asked, slots, sampleScan, shown, catalog, () => {
    throw new InternalError('a sample walks nowhere');
  });
  return Object.freeze({
    form: 'structured',
    objects: plan.objects,
    source: Object.freeze({ kind: 'table', plan }),
    columns: Object.freeze(cells.map(sampledColumn)),
  });
}

/** Returns `access` without the grants that allow only aggregates. */
function inRows(access: Access): Access {
  const shown = [...access.relations].map(([name, all]) => [name, all, rowAccess(name, access)] as const);
  if (shown.every(([, all, rows]) => all === rows)) return access;
  const relations = new Map(
    shown.flatMap(([name, , rows]) => (rows === undefined ? [] : [[name, rows] as const])),
  );
  return Object.freeze({ ...access, relations });
}

/** A value, with a flag that is true if its cell may be read; the flag is null if every cell may be read. */
interface SampledCell {
  readonly value: SampledValue;
  readonly flag: Expr | null;
}

/** Returns a cell that is readable if all its source columns are. Columns of a missing parent row count as readable. */
function cellOf(value: SampledValue, access: Access): SampledCell {
  const flags = value.reads.flatMap(({ relation, ref, ofParent }): readonly Expr[] => {
    if (columnRule(relation, ref.name, accessTo(relation, access)).masked === 'none') return [];
    const flag = columnRef(ref.source, visibleColumnName(ref.name), 'bool');
    return ofParent ? [truthTest(flag, 'false', true)] : [flag];
  });
  return { value, flag: flags.length === 0 ? null : allOf(flags) };
}

function sampledColumn({ value: { name, expr }, flag }: SampledCell): SampledColumn {
  return Object.freeze({ name, type: expr.type, visible: flag === null ? null : visibleColumnName(name) });
}

/** Returns the sort keys: the primary key if readable, else every stored value and its flag. */
function orderOf(cells: readonly SampledCell[], key: readonly string[] | null): readonly Expr[] {
  const stored = cells.filter(({ value }) => value.stored);
  if (key !== null)
    return key.flatMap((name) => stored.filter((c) => c.value.name === name).map((c) => c.value.expr));
  const values = stored.map(({ value }) => value.expr).filter((e) => isComparable(e.type));
  return [...values, ...stored.flatMap(({ flag }) => flag ?? [])];
}

/** Returns `plan` with the cells as its outputs, followed by their flags, and a slot for the limit. */
function sampledRows(
  plan: BoundPlan,
  cells: readonly SampledCell[],
  order: readonly Expr[],
  slots: GovernedSlots,
): BoundPlan {
  if (plan.query.kind !== 'select') throw new InternalError('a sample is a SELECT');
  const values = cells.map(({ value: { name, expr } }) => Object.freeze({ name, expr }));
  const flags = cells.flatMap(({ value: { name }, flag }) =>
    flag === null ? [] : [Object.freeze({ name: visibleColumnName(name), expr: flag })],
  );
  const outputs = Object.freeze([...values, ...flags]);
  const query: Select = Object.freeze({
    ...plan.query,
    outputs,
    orderBy: Object.freeze(order.map(ascending)),
    limit: slots.given('limit', 'int8'),
  });
  const columns = Object.freeze(outputs.map(({ name, expr }) => Object.freeze({ name, type: expr.type })));
  return Object.freeze({ ...plan, query, columns });
}

/** Returns the scan with NULL instead of masks, and an additional flag for each masked column. */
function sampleScan(
  scan: EntityScan,
  { access }: ScanAccess,
  keys: ReadonlySet<string> | undefined,
  slots: GovernedSlots,
): GovernedScan {
  const rules = scan.columns.map((name) => columnRule(scan.relation, name, access));
  const shown = rules.map((r) => clearColumn(r, slots));
  const joined = rules.filter((r) => keys?.has(r.column.name) === true).map((r) => keyColumn(r, slots));
  const flags = rules.filter((r) => r.masked !== 'none').map((r) => visibleColumn(r, slots));
  return Object.freeze({
    kind: 'governed',
    id: scan.id,
    relation: scan.relation,
    columns: Object.freeze([...shown, ...joined, ...flags]),
    filter: rowFilter(access, slots),
    pushed: Object.freeze([]),
    fenced: false,
    minimum: null,
  });
}

/** Returns the names that may be suggested: those that this caller may see. */
function entitiesOf(catalog: Catalog, access: Access): readonly string[] {
  return [...access.relations.keys()].filter((n) => catalog.relations.get(n)?.kind === 'entity');
}

/** Returns the fields of a facet that `*` yields for this caller. */
function readable(relation: Relation, access: Access): readonly string[] {
  return [...columnsFor(relation, accessTo(relation, access)).values()]
    .filter((c) => c.starred)
    .map((c) => c.name);
}

const SOURCE = 1;

function sampleFacet(name: string, catalog: Catalog, access: Access): GovernedSample {
  const facet = catalog.facets.get(name);
  const relation = catalog.relations.get(name);
  if (facet === undefined || relation === undefined) throw queryError('unknownFacet', { facet: name });
  if (access.denied?.has(name) === true) throw queryError('denied', { object: name });
  const allowed = rowAccess(name, access);
  // The columns of every passage take precedence over metadata of the same name.
  const names =
    allowed === undefined ? [] : readable(relation, access).filter((c) => !PASSAGE_COLUMNS.has(c));
  const request = { source: SOURCE, facet, filters: [], metadata: names, by: { kind: 'first' } } as const;
  // A sample contains no literal of the caller.
  const store = governedStore(request, catalog, access, new GovernedSlots([]), new LiteralSlots([]));
  const types = new Map(relation.columns.map((c) => [c.name, c.type]));
  const columns =
    store === null
      ? []
      : names.map((column) =>
          Object.freeze({ name: column, type: types.get(column) ?? 'text', visible: null }),
        );
  return Object.freeze({
    form: 'retrieve',
    objects: Object.freeze([`osl.facets.${name}`]),
    source: Object.freeze({ kind: 'facet', store }),
    columns: Object.freeze(columns),
  });
}
