import { type Access, accessTo, rowAccess } from '../access.js';
import { columnsFor, LiteralSlots } from '../bind/index.js';
import { type Catalog, columnOf, type Relation } from '../catalog.js';
import { InternalError, queryError } from '../errors.js';
import { ascending, columnRef, selectOf } from '../nodes.js';
import type { GovernedColumn, GovernedScan } from '../plan.js';
import { PASSAGE_COLUMNS } from '../runtime.js';
import { nearest } from '../text.js';
import type { TypeName } from '../types.js';
import { type GovernedPlan, type GovernedStore, mint, type OutputColumn } from './governed-plan.js';
import { clearColumn, columnRule, type Masked, rowFilter, visibleColumn, visibleColumnName } from './mask.js';
import { clearKey } from './order.js';
import { GovernedSlots } from './slots.js';
import { governedStore } from './store/governed-store.js';
import { verify } from './verify.js';

/** What is sampled: an entity, or the text of a facet. */
export type SampleKind = 'table' | 'facet';

/** One column of a sample. */
export interface SampledColumn {
  readonly name: string;
  readonly type: TypeName;
  /**
   * The plan's output that says of each row whether the cell may be read; where it says no, the cell is redacted,
   * whatever it holds. Null where every cell may be read, and of a facet, whose passages say it themselves.
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
    /** No store: the caller has no grant, and there are no passages. */
    | { readonly kind: 'facet'; readonly store: GovernedStore | null };
  /** Of a facet: its key and its metadata; what every passage has comes beside them. */
  readonly columns: readonly SampledColumn[];
}

/**
 * A sample of the entity or the facet `name`. Its order is that of the keys that the caller may read, so that
 * the same caller sees the same rows.
 *
 * @throws QueryError E0254 for an entity that is not declared, or is not for this caller; E0241 for a facet that
 *   is not declared; E2101 where every column is denied; E2103 where no grant shows rows
 */
export function governSample(
  kind: SampleKind,
  name: string,
  catalog: Catalog,
  access: Access,
): GovernedSample {
  return kind === 'table' ? sampleTable(name, catalog, access) : sampleFacet(name, catalog, access);
}

const SOURCE = 1;

function sampleTable(name: string, catalog: Catalog, access: Access): GovernedSample {
  const relation = catalog.relations.get(name);
  if (relation?.kind === 'entity' && access.denied?.has(name) === true)
    throw queryError('denied', { object: name });
  if (relation?.kind !== 'entity' || !access.relations.has(name)) {
    throw queryError('unknownModel', { model: name, near: nearest(name, entitiesOf(catalog, access)) });
  }
  const allowed = rowAccess(name, access);
  if (allowed === undefined) {
    throw queryError('groupsOnly', { relation: name, detail: 'a sample would show some of them' });
  }
  const slots = new GovernedSlots([]);
  const rules = readable(relation, access).map((c) => columnRule(relation, c, allowed));
  if (rules.length === 0) throw queryError('denied', { object: name });
  const shown = rules.map((r) => ({ ...clearColumn(r, slots), masked: r.masked }));
  const flags = rules.filter((r) => r.masked !== 'none').map((r) => visibleColumn(r, slots));
  const scan: GovernedScan = Object.freeze({
    kind: 'governed',
    id: SOURCE,
    relation,
    columns: Object.freeze([...shown, ...flags]),
    filter: rowFilter(allowed, slots),
    pushed: Object.freeze([]),
    fenced: false,
    minimum: null,
  });
  const order = clearKey(relation, allowed) ?? scan.columns.map((c) => c.name);
  const plan = planOf(scan, order, slots, catalog, access);
  return Object.freeze({
    form: 'structured',
    objects: plan.objects,
    source: Object.freeze({ kind: 'table', plan }),
    columns: Object.freeze(rules.map((r) => sampledColumn(r.column.name, r.column.type, r.masked))),
  });
}

/** Names that may be suggested: those that this caller may see. */
function entitiesOf(catalog: Catalog, access: Access): readonly string[] {
  return [...access.relations.keys()].filter((n) => catalog.relations.get(n)?.kind === 'entity');
}

/** What `*` means for this caller. */
function readable(relation: Relation, access: Access): readonly string[] {
  return [...columnsFor(relation, accessTo(relation, access)).values()]
    .filter((c) => c.starred)
    .map((c) => c.name);
}

function sampledColumn(name: string, type: TypeName, masked: Masked): SampledColumn {
  return Object.freeze({ name, type, visible: masked === 'none' ? null : visibleColumnName(name) });
}

function planOf(
  scan: GovernedScan,
  order: readonly string[],
  slots: GovernedSlots,
  catalog: Catalog,
  access: Access,
): GovernedPlan {
  const { relation, columns } = scan;
  const ref = ({ name, type }: GovernedColumn) => columnRef(SOURCE, name, type);
  const orderBy = order.map((name) => {
    const column = columns.find((c) => c.name === name);
    if (column === undefined) throw new InternalError(`the sample has no column ${name}`);
    return ascending(ref(column));
  });
  const query = selectOf({
    from: scan,
    outputs: Object.freeze(columns.map((c) => Object.freeze({ name: c.name, expr: ref(c) }))),
    orderBy: Object.freeze(orderBy),
    limit: slots.given('limit', 'int8'),
  });
  const grounded = slots.finish();
  verify(query, grounded, 'structured');
  const object = `osl.entities.${relation.name}`;
  const masked = columns.filter((c) => c.masked !== 'none').map((c) => c.name);
  const maskedColumns = Object.freeze(masked.map((name) => `${relation.name}.${name}`).sort());
  return mint({
    form: 'structured',
    query,
    runtime: [],
    slots: grounded,
    clientOids: [],
    outputs: Object.freeze(columns.map((c) => outputOf(c, object, relation))),
    objects: Object.freeze([object]),
    redactedColumns: maskedColumns,
    maskedColumns,
    passageFields: new Set<string>(),
    partialColumns: Object.freeze([]),
    connector: relation.connector,
    accessSignature: access.signature,
    catalogVersion: catalog.version,
    policyVersion: access.policyVersion,
    grants: Object.freeze(
      accessTo(relation, access)
        .grants.map((g) => g.id)
        .sort(),
    ),
  });
}

function outputOf({ name, type, masked }: GovernedColumn, object: string, relation: Relation): OutputColumn {
  const source = columnOf(relation, name) === null ? null : `${object}.${name}`;
  return Object.freeze({ name, type, source, redacted: masked !== 'none', passageKey: false });
}

function sampleFacet(name: string, catalog: Catalog, access: Access): GovernedSample {
  const facet = catalog.facets.get(name);
  const relation = catalog.relations.get(name);
  if (facet === undefined || relation === undefined) throw queryError('unknownFacet', { facet: name });
  if (access.denied?.has(name) === true) throw queryError('denied', { object: name });
  const allowed = rowAccess(name, access);
  // What every passage has keeps its meaning where a facet declares metadata of the same name.
  const names =
    allowed === undefined ? [] : readable(relation, access).filter((c) => !PASSAGE_COLUMNS.has(c));
  const request = { source: SOURCE, facet, filters: [], metadata: names, by: { kind: 'first' } } as const;
  // No caller's literal is in it.
  const store = governedStore(request, catalog, access, new GovernedSlots([]), new LiteralSlots([]));
  const types = new Map(relation.columns.map((c) => [c.name, c.type]));
  const columns =
    store === null ? [] : names.map((column) => sampledColumn(column, types.get(column) ?? 'text', 'none'));
  return Object.freeze({
    form: 'retrieve',
    objects: Object.freeze([`osl.facets.${name}`]),
    source: Object.freeze({ kind: 'facet', store }),
    columns: Object.freeze(columns),
  });
}
