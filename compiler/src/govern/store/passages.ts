import type { FacetVersion, Relation } from '../../catalog.js';
import { ascending, operationNode } from '../../nodes.js';
import type { BaseColumn, Expr, GovernedColumn, Output } from '../../plan.js';
import type { GovernedPlan, GovernedStore } from '../governed-plan.js';
import {
  bitsTable,
  LEXICAL_VECTOR,
  MODEL_VECTOR,
  NGRAM_VECTOR,
  SHARES,
  STORED,
  stored,
  TERMS,
} from './columns.js';
import { countUpToLimit } from './counts.js';
import { storePlan } from './plan.js';
import {
  callersFilters,
  distanceTo,
  isAbout,
  oneOf,
  type StoreView,
  scanStore,
  visibleFlags,
  visiblePassages,
} from './scan.js';

/**
 * The passages that are asked for, best first, with all that is shown of them.
 *
 * @param among whether only the chunks of slot `chunks` come into question
 */
export function passagePlan(view: StoreView, among = false): GovernedPlan {
  const { by, facet, metadata } = view.request;
  const computed = [...(by.kind === 'search' ? searchColumns(view, by.vectors) : []), ...visibleFlags(view)];
  const wanted =
    by.kind === 'search' ? sharesWords(view) : by.kind === 'named' ? [isAbout(view, by.keys)] : [];
  const id: BaseColumn = { kind: 'base', column: 'chunk_id', type: 'text' };
  const pushed = among ? [...wanted, oneOf(id, view.slots.given('chunks', 'text[]'))] : wanted;
  const shown = [
    ...STORED.map(([name]) => stored(name)),
    facet.entityKey,
    ...metadata.filter((m) => m !== facet.entityKey),
  ];
  const first = by.kind === 'search' ? stored('distance') : facet.entityKey;
  const outputs = [...shown, ...computed.map((c) => c.name)];
  return bestPassages(view, { shown, computed, pushed, outputs, order: [first, stored('chunk_id')] });
}

/** The steps of the lanes for many passages. */
export function nearestPlans(view: StoreView, version: FacetVersion): NonNullable<GovernedStore['nearest']> {
  const bits = bitsTable(view.store, version);
  const signs = distanceTo(view, '<~>', 'bit', 'bits');
  const product = distanceTo(view, '<#>', 'vector', MODEL_VECTOR);
  // Behind a fence no index gives an order.
  const isFenced = callersFilters(view, scanStore(view, [], [], [])).others.length > 0;
  const indexed = view.request.facet.approximate && !isFenced;
  return Object.freeze({
    some: countUpToLimit(view, bits),
    bySigns: candidates(view, bits, signs, [signs.name, stored('chunk_id')]),
    // An index gives no order between equal distances.
    byIndex: indexed ? candidates(view, view.store, product, [product.name]) : null,
    among: passagePlan(view, true),
  });
}

function candidates(
  view: StoreView,
  table: Relation,
  distance: GovernedColumn,
  order: readonly string[],
): GovernedPlan {
  const id = stored('chunk_id');
  const shown = [id, view.request.facet.entityKey];
  return bestPassages(view, {
    shown,
    computed: [distance],
    pushed: [],
    outputs: [id, distance.name],
    order,
    table,
  });
}

interface Wanted {
  readonly shown: readonly string[];
  readonly computed: readonly GovernedColumn[];
  readonly pushed: readonly Expr[];
  readonly outputs: readonly string[];
  readonly order: readonly string[];
  readonly table?: Relation;
}

/** Visible passages in an order, up to slot `limit`. */
function bestPassages(view: StoreView, wanted: Wanted): GovernedPlan {
  const { shown, computed, pushed, outputs, order, table } = wanted;
  const read = visiblePassages(view, scanStore(view, shown, computed, pushed, table));
  return storePlan(view, {
    from: read.from,
    where: read.where,
    outputs: outputs.map((name): Output => ({ name, expr: read.ref(name) })),
    orderBy: order.map((name) => ascending(read.ref(name))),
    limit: view.slots.given('limit', 'int8'),
  });
}

/** What a search computes of each passage: how far it is, and where operators compare it, its vector. */
function searchColumns(view: StoreView, vectors: boolean): readonly GovernedColumn[] {
  const lexical = view.request.facet.lane === 'lexical';
  // INVARIANT: an index for `<#>` cannot serve `<=>`, so what is ordered by `<=>` is exact, whatever indexes there are.
  const distance = lexical
    ? distanceTo(view, '<#>', 'sparsevec', LEXICAL_VECTOR)
    : distanceTo(view, '<=>', 'vector', MODEL_VECTOR);
  const vector: GovernedColumn = {
    name: stored('vector'),
    type: 'float4[]',
    masked: 'none',
    expr: { kind: 'stored_vector', column: lexical ? NGRAM_VECTOR : MODEL_VECTOR, type: 'float4[]' },
  };
  return vectors ? [distance, vector] : [distance];
}

/** In the lexical lane a passage without a word of the query has no score and does not fill the answer. */
function sharesWords({ request, slots }: StoreView): readonly Expr[] {
  if (request.facet.lane !== 'lexical') return [];
  const right = slots.given('terms', 'int4[]');
  return [operationNode(SHARES, TERMS.expr, right)];
}
