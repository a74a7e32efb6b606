import { type Access, type RelationAccess, rowAccess, sameRows } from '../../access/access.js';
import { columnsFor, type LiteralSlots } from '../../bind/index.js';
import type { Catalog, FacetVersion, Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { requireOperator } from '../../functions/resolve.js';
import { baseColumn, columnRef, operationNode } from '../../plan/nodes.js';
import type { ColumnRef, Expr, GovernedColumn, GovernedScan } from '../../plan/plan.js';
import { ascending } from '../../plan/select-nodes.js';
import { servedAccess, servedVersion } from '../facet-version.js';
import type { GovernedPlan, GovernedStore } from '../governed-plan.js';
import { columnRule } from '../mask.js';
import { GovernedSlots } from '../slots.js';
import { DERIVED, derivedTable, passageTable, stored } from './columns.js';
import { countPlans } from './counts.js';
import { commonWordsPlan, namedPlan, nearestPlans, passagePlan } from './passages.js';
import {
  isAbout,
  oneOf,
  SOURCE_OFFSETS,
  type StoreRequest,
  type StoreView,
  scanStore,
  storePlan,
  visiblePassages,
} from './scan.js';

/**
 * Returns the governed plans that read one facet: the caller's version, its row filter, and only passages whose entity
 * the caller may see. Null if the caller may see no passage (see `servedVersion`).
 */
export function governedStore(
  request: StoreRequest,
  catalog: Catalog,
  access: Access,
  planSlots: GovernedSlots,
  literals: LiteralSlots,
): GovernedStore | null {
  const { facet } = request;
  const relation = catalog.relations.get(facet.name);
  const entity = catalog.relations.get(facet.entity);
  const allowed = rowAccess(facet.name, access);
  const version = servedVersion(facet, catalog, access);
  if (relation === undefined || entity === undefined || allowed === undefined || version === null)
    return null;
  const shown = shownFields(relation, allowed);
  const served = servedAccess(allowed, version);
  const view: StoreView = {
    request,
    store: passageTable(relation, facet, version),
    allowed: served,
    shown,
    entity,
    access,
    catalog,
    slots: new GovernedSlots(planSlots.finish()),
    literals,
  };
  const search = request.by.kind === 'search';
  const lexical = search && facet.lane === 'lexical';
  return Object.freeze({
    facet,
    version: version.name,
    fields: Object.freeze({
      shown,
      masked: new Set(shown.filter((name) => columnRule(relation, name, served).masked === 'all')),
    }),
    redacts: version.searched || version.redacts.size > 0,
    mayDecode: sameRows(
      allowed.grants.filter((g) => g.decode === true),
      allowed.grants,
    ),
    passages: passagePlan(view),
    named: request.by.kind === 'search' && request.by.named && !lexical ? namedPlan(view) : null,
    nearest: search && !lexical ? nearestPlans(view, version) : null,
    derived: derivedPlan(view, version),
    counts: lexical ? countPlans(view, version) : null,
    commonWords: lexical ? commonWordsPlan(view) : null,
  });
}

function shownFields(relation: Relation, allowed: RelationAccess): readonly string[] {
  return Object.freeze(
    [...columnsFor(relation, allowed).values()].filter((c) => !c.denied).map((c) => c.name),
  );
}

/**
 * Returns the plan for derived attributes of named entities, joined to the visible passages that support them; null if
 * the statement uses none.
 */
function derivedPlan(view: StoreView, version: FacetVersion): GovernedPlan | null {
  const { by, facet } = view.request;
  if (by.kind !== 'named' || by.derived.length === 0) return null;
  const scan = scanStore(view, [facet.entityKey, stored('chunk_id')], [], [isAbout(view, by.keys)]);
  const passages = visiblePassages(view, scan);
  const wanted = view.slots.literal(by.derived, 'text[]');
  const derived = scanDerived(view, version, [
    oneOf({ kind: 'base', column: 'attribute', type: 'text' }, wanted),
    isAbout(view, by.keys),
  ]);
  const on = operationNode(
    requireOperator('=', 'text', 'text'),
    refTo(derived, stored('chunk_id')),
    passages.ref(stored('chunk_id')),
  );
  const outputs = [
    { name: facet.entityKey, expr: passages.ref(facet.entityKey) },
    ...DERIVED.map(([name]) => ({ name: stored(name), expr: refTo(derived, stored(name)) })),
  ];
  return storePlan(view, {
    from: {
      kind: 'join',
      sealed: true,
      made: true,
      type: 'inner',
      left: derived,
      right: passages.from,
      on: [on],
    },
    where: passages.where,
    outputs,
    orderBy: outputs.map(({ expr }) => ascending(expr)),
    limit: view.slots.given('limit', 'int8'),
  });
}

/** Scans derived attributes without a row filter: they must be joined to the visible passages. */
function scanDerived(
  { request, store }: StoreView,
  version: FacetVersion,
  pushed: readonly Expr[],
): GovernedScan {
  const { table, own } = derivedTable(store, version);
  return Object.freeze({
    kind: 'governed',
    id: request.source + SOURCE_OFFSETS.derived,
    relation: Object.freeze(table),
    columns: own.map((c): GovernedColumn => {
      const { name, type } = c;
      return Object.freeze({ name, type, expr: baseColumn(c), masked: 'none' });
    }),
    filter: null,
    pushed,
    fenced: false,
    minimum: null,
  });
}

function refTo(scan: GovernedScan, name: string): ColumnRef {
  const column = scan.columns.find((c) => c.name === name);
  if (column === undefined) throw new InternalError(`the store has no column ${name}`);
  return columnRef(scan.id, name, column.type);
}
