import type { FacetVersion, Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { requireFunction } from '../../functions/resolve.js';
import { columnRef, operationNode } from '../../plan/nodes.js';
import type {
  Aggregate,
  BaseColumn,
  ColumnRef,
  CommonTable,
  Expr,
  GovernedColumn,
  PlanOutput,
  Select,
  SortKey,
} from '../../plan/plan.js';
import { ascending, selectOf } from '../../plan/select-nodes.js';
import type { GovernedPlan, GovernedStore } from '../governed-plan.js';
import { count } from '../minimum.js';
import {
  bitsTable,
  LEXICAL_VECTOR,
  MODEL_VECTOR,
  NGRAM_VECTOR,
  SNAPSHOT,
  STORED,
  stored,
  TERMS,
  WORDS_OVERLAP,
} from './columns.js';
import { countUpToLimit } from './counts.js';
import {
  callersFilters,
  distanceTo,
  isAbout,
  oneOf,
  SOURCE_OFFSETS,
  type StoreView,
  scanStore,
  secondView,
  storePlan,
  visibleFlags,
  visiblePassages,
} from './scan.js';

/** Returns the plan for the requested passages, best first, with all visible columns. */
export function passagePlan(view: StoreView): GovernedPlan {
  return shownPassages(view, null);
}

/**
 * Like `passagePlan`, for a query with a word that most passages contain: every passage is scored. All weights are
 * above 0, so only a passage without any of the words has score 0, and these come last.
 */
export function commonWordsPlan(view: StoreView): GovernedPlan {
  return shownPassages(view, null, () => []);
}

/** Returns the plan for the passages with the ids in slot `ids`. */
export function namedPlan(view: StoreView): GovernedPlan {
  const id: BaseColumn = { kind: 'base', column: 'chunk_id', type: 'text' };
  return shownPassages(view, null, ({ slots }) => [oneOf(id, slots.given('ids', 'text[]'))]);
}

/** Returns search plans for stores with many passages: one compares signs of vectors, one uses an approximate index. */
export function nearestPlans(view: StoreView, version: FacetVersion): NonNullable<GovernedStore['nearest']> {
  const bits = bitsTable(view.store, version);
  const beside = secondView(view);
  const signs = distanceTo(beside, '<~>', 'bit', 'bits');
  const product = distanceTo(beside, '<#>', 'vector', MODEL_VECTOR);
  // Filters that may fail run above a fence (a subquery with OFFSET 0), where no index can provide the order.
  const isFenced = callersFilters(view, scanStore(view, [], [], [])).others.length > 0;
  const indexed = view.request.facet.approximate && !isFenced;
  const among = (candidates: Select): GovernedPlan => shownPassages(view, candidates);
  return Object.freeze({
    some: countUpToLimit(view, bits),
    bySigns: among(candidatesOf(beside, bits, signs, [signs.name, stored('chunk_id')])),
    // Ordered by distance only: an index cannot break ties by id.
    byIndex: indexed ? among(candidatesOf(beside, view.store, product, [product.name])) : null,
  });
}

/**
 * Returns the plan for passages, best first, with all visible columns.
 *
 * @param candidates chunk ids and distances of the passages to choose from; null: all passages
 * @param ofWords conditions on the words of a passage
 */
function shownPassages(
  view: StoreView,
  candidates: Select | null,
  ofWords: (view: StoreView) => readonly Expr[] = sharesWords,
): GovernedPlan {
  const { by, facet, metadata } = view.request;
  const computed = [...(by.kind === 'search' ? searchColumns(view, by) : []), ...visibleFlags(view)];
  const pushed = by.kind === 'named' ? [isAbout(view, by.keys)] : by.kind === 'search' ? ofWords(view) : [];
  const shown = [
    ...STORED.map(([name]) => stored(name)),
    facet.entityKey,
    ...metadata.filter((m) => m !== facet.entityKey),
  ];
  const first = by.kind === 'search' ? stored('distance') : facet.entityKey;
  const outputs = [...shown, ...computed.map((c) => c.name)];
  const told = view.request.facet.lane === 'lexical' && by.kind === 'search' ? [SNAPSHOT] : [];
  const limit = view.slots.given('limit', 'int8');
  const order = [first, stored('chunk_id')];
  const page = by.kind === 'search' ? by.page : null;
  const offset = page === null || page.skip === null ? null : view.slots.given('offset', 'int8');
  const ofDocuments = page?.per === 'document';
  const wanted: PassageQuery = { shown, computed, pushed, outputs, order, limit, offset, ofDocuments };
  if (candidates === null) {
    const best = bestPassages(view, wanted);
    return storePlan(view, { ...best, outputs: [...best.outputs, ...told] });
  }
  const among = commonCandidates(view, candidates);
  const best = bestPassages(view, { ...wanted, where: [among.holds] });
  return storePlan(view, {
    ...best,
    with: [among.table],
    outputs: [...best.outputs, ...among.outputs],
  });
}

/** Returns ids and distances of the nearest passages, up to the number in slot `candidates`. */
function candidatesOf(
  view: StoreView,
  table: Relation,
  distance: GovernedColumn,
  order: readonly string[],
): Select {
  const id = stored('chunk_id');
  return selectOf(
    bestPassages(view, {
      shown: [id, view.request.facet.entityKey],
      computed: [distance],
      pushed: [],
      outputs: [id, distance.name],
      order,
      limit: view.slots.given('candidates', 'int8'),
      table,
    }),
  );
}

/** Returns candidates as a common table, a condition that a passage is one, and their number and largest distance. */
function commonCandidates({ request }: StoreView, candidates: Select) {
  const table: CommonTable = { id: CANDIDATES, query: candidates, materialized: true };
  const first = request.source + SOURCE_OFFSETS.common;
  const read = (id: number, grouped: boolean, expr: Expr): Select =>
    selectOf({ from: { kind: 'cte', id, table: CANDIDATES }, grouped, outputs: [{ name: 'of', expr }] });
  const holds: Expr = {
    kind: 'in_query',
    arg: columnRef(request.source, stored('chunk_id'), 'text'),
    query: read(first, false, columnRef(first, 'c1', 'text')),
    negated: false,
    type: 'bool',
  };
  const counted = read(first + 1, true, count([], false, null));
  const farthest = read(first + 2, true, greatest(columnRef(first + 2, 'c2', 'float8')));
  const outputs: readonly PlanOutput[] = [
    { name: stored('candidates'), expr: { kind: 'scalar_query', query: counted, type: 'int8' } },
    { name: stored('farthest'), expr: { kind: 'scalar_query', query: farthest, type: 'float8' } },
  ];
  return { table, holds, outputs };
}

/** The id of the only common table in a store's statement. */
const CANDIDATES = 1;

function greatest(distance: ColumnRef): Aggregate {
  const { definition } = requireFunction('max', ['float8']);
  const { type } = distance;
  return {
    kind: 'aggregate',
    definition,
    args: [distance],
    distinct: false,
    filter: null,
    orderBy: [],
    metric: null,
    type,
  };
}

interface PassageQuery {
  readonly shown: readonly string[];
  readonly computed: readonly GovernedColumn[];
  readonly pushed: readonly Expr[];
  readonly outputs: readonly string[];
  readonly order: readonly string[];
  readonly limit: Expr;
  readonly offset?: Expr | null;
  /** True to return only the best passage of each document. */
  readonly ofDocuments?: boolean;
  /** Further conditions on visible passages. */
  readonly where?: readonly Expr[];
  readonly table?: Relation;
}

/** Returns visible passages in a given order, up to a limit. */
function bestPassages(view: StoreView, wanted: PassageQuery) {
  const { shown, computed, pushed, outputs, order, limit, where, table } = wanted;
  const { offset = null, ofDocuments = false } = wanted;
  const read = visiblePassages(view, scanStore(view, shown, computed, pushed, table), where);
  const named = outputs.map((name): PlanOutput => ({ name, expr: read.ref(name) }));
  const found = { from: read.from, where: read.where, outputs: named };
  const best = ofDocuments
    ? bestOfDocuments(view, found, order)
    : { ...found, orderBy: order.map((name) => ascending(read.ref(name))) };
  return { ...best, limit, offset };
}

/** Returns the distance of each passage and, on request, its vector and the weights of its words. */
function searchColumns(
  view: StoreView,
  { vectors, weights }: { readonly vectors: boolean; readonly weights: boolean },
): readonly GovernedColumn[] {
  const lexical = view.request.facet.lane === 'lexical';
  // INVARIANT: an index for `<#>` cannot serve `<=>`, so ordering by `<=>` is exact, whatever indexes exist.
  const distance = lexical
    ? distanceTo(view, '<#>', 'sparsevec', LEXICAL_VECTOR)
    : distanceTo(view, '<=>', 'vector', MODEL_VECTOR);
  const vector: GovernedColumn = {
    name: stored('vector'),
    type: 'float4[]',
    masked: 'none',
    expr: { kind: 'stored_vector', column: lexical ? NGRAM_VECTOR : MODEL_VECTOR, type: 'float4[]' },
  };
  const ofWords: GovernedColumn = {
    name: stored('weights'),
    type: 'text',
    masked: 'none',
    expr: { kind: 'stored_vector', column: LEXICAL_VECTOR, type: 'text' },
  };
  return [distance, ...(vectors ? [vector] : []), ...(weights && lexical ? [ofWords] : [])];
}

/** In the lexical lane, excludes passages without any word of the query, since they have no score. */
function sharesWords({ request, slots }: StoreView): readonly Expr[] {
  if (request.facet.lane !== 'lexical') return [];
  const right = slots.given('terms', 'int4[]');
  return [operationNode(WORDS_OVERLAP, TERMS.expr, right)];
}

/** Keeps the first passage of each document by `order`, with the same outputs. */
function bestOfDocuments(
  { request }: StoreView,
  found: Pick<Select, 'from' | 'where' | 'outputs'>,
  order: readonly string[],
): Pick<Select, 'from' | 'where' | 'outputs' | 'orderBy'> {
  const within = (name: string): Expr => outputNamed(found.outputs, name).expr;
  const document = within(stored('doc_id'));
  const query = selectOf({
    ...found,
    distinctOn: [document],
    orderBy: [document, ...order.map(within)].map(ascending),
  });
  const id = request.source + SOURCE_OFFSETS.documents;
  const outputs = found.outputs.map(({ name, expr }, i): PlanOutput => {
    return { name, expr: columnRef(id, `c${i + 1}`, expr.type) };
  });
  const orderBy = order.map((name): SortKey => ascending(outputNamed(outputs, name).expr));
  return { from: { kind: 'derived', id, query }, where: [], outputs, orderBy };
}

function outputNamed(outputs: readonly PlanOutput[], name: string): PlanOutput {
  const output = outputs.find((o) => o.name === name);
  if (output === undefined) throw new InternalError(`the passages have no column ${name}`);
  return output;
}
