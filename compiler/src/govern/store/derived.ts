import type { FacetVersion } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { neededOperator } from '../../functions/index.js';
import { ascending, columnRef, operationNode } from '../../plan/nodes.js';
import type { ColumnRef, Expr, GovernedColumn, GovernedScan } from '../../plan/plan.js';
import type { GovernedPlan } from '../governed-plan.js';
import { baseOf } from '../mask.js';
import { DERIVED, derivedTable, stored } from './columns.js';
import { storePlan } from './plan.js';
import { isAbout, oneOf, SOURCES_BESIDE, type StoreView, scanStore, visiblePassages } from './scan.js';

/**
 * Derived attributes of named entities, joined to those of the passages they rest on that the caller may see; null
 * where none is wanted.
 */
export function derivedPlan(view: StoreView, version: FacetVersion): GovernedPlan | null {
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
    neededOperator('=', 'text', 'text'),
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

/** What is derived from one version's passages: holds nothing but for the passages that it is joined to. */
function scanDerived(
  { request, store }: StoreView,
  version: FacetVersion,
  pushed: readonly Expr[],
): GovernedScan {
  const { table, own } = derivedTable(store, version);
  return Object.freeze({
    kind: 'governed',
    id: request.source + SOURCES_BESIDE.derived,
    relation: Object.freeze(table),
    columns: own.map((c): GovernedColumn => {
      const { name, type } = c;
      return Object.freeze({ name, type, expr: baseOf(c), masked: 'none' });
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
