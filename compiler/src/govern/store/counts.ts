import { accessTo, filtersOf } from '../../access/access.js';
import type { FacetVersion, Relation } from '../../catalog/catalog.js';
import { requireOperator } from '../../functions/resolve.js';
import { caseNode, columnRef, equalsAny, operationNode } from '../../plan/nodes.js';
import type {
  ColumnRef,
  CommonTable,
  Expr,
  GovernedColumn,
  GovernedScan,
  PlanOutput,
  Select,
  SourceId,
} from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import type { GovernedPlan, GovernedStore } from '../governed-plan.js';
import { count } from '../minimum.js';
import { isTimeless, SNAPSHOT, TERMS, WORDS_CONTAIN, WORDS_OVERLAP, wordsTable } from './columns.js';
import {
  type Passages,
  SOURCE_OFFSETS,
  type StoreView,
  scanStore,
  secondView,
  storePlan,
  visiblePassages,
} from './scan.js';

/** Returns the plan that counts the visible passages, up to the number in slot `limit`. */
export function countUpToLimit(view: StoreView, table: Relation): GovernedPlan {
  const { facet, source } = view.request;
  const read = visiblePassages(view, scanStore(view, [facet.entityKey], [], [], table));
  const some = selectOf({
    from: read.from,
    where: read.where,
    outputs: [{ name: facet.entityKey, expr: read.ref(facet.entityKey) }],
    limit: view.slots.given('limit', 'int8'),
  });
  const from = { kind: 'derived', id: source + SOURCE_OFFSETS.some, query: some } as const;
  return storePlan(view, counting({ from, where: [] }));
}

/** Returns two plans that count the visible passages containing each word; `whole` also counts all visible passages. */
export function countPlans(view: StoreView, version: FacetVersion): NonNullable<GovernedStore['counts']> {
  const { request, entity, access } = view;
  const scan = scanStore(view, [request.facet.entityKey], [], []);
  const all = counting(visiblePassages(view, scan));
  const isWhole =
    scan.filter === null &&
    request.filters.length === 0 &&
    filtersOf(accessTo(entity, access).grants) === null;
  const beside = secondView(view);
  const ofWords = (documents: boolean): GovernedPlan =>
    isWhole ? lookedUp(beside, version, all, documents) : amongFound(beside, all, documents);
  return Object.freeze({ whole: ofWords(true), ofWords: ofWords(false), timeless: isTimeless(all) });
}

/**
 * Returns a plan that takes the indexer's counts if the caller sees every passage. Otherwise the plan counts the
 * visible passages for each word of slot `words`, using the index of words.
 *
 * @param all the query that counts the visible passages
 */
function lookedUp(view: StoreView, version: FacetVersion, all: Select, documents: boolean): GovernedPlan {
  const { facet, source } = view.request;
  const read = visiblePassages(view, scanStore(view, [facet.entityKey], [TERMS], []));
  const term = columnRef(source + SOURCE_OFFSETS.word, 'term', 'int4[]');
  const holds = operationNode(WORDS_CONTAIN, read.ref(TERMS.name), term);
  const looked = counting({ from: read.from, where: [...read.where, holds] });
  const zero = view.slots.literal('0', 'int4');
  const seen = (place: number): Expr => {
    const id = source + SOURCE_OFFSETS.common + place;
    const query = selectOf({
      from: { kind: 'cte', id, table: BESIDE },
      outputs: [{ name: 'count', expr: columnRef(id, 'c1', 'int8') }],
    });
    return { kind: 'scalar_query', query, type: 'int8' };
  };
  const isComplete = operationNode(
    requireOperator('=', 'int8', 'int8'),
    seen(0),
    indexed(view, version, zero, 1),
  );
  const own: Expr = {
    kind: 'conditional',
    form: 'coalesce',
    args: [indexed(view, version, wordOf(source), 2), view.slots.literal('0', 'int8')],
    type: 'int8',
  };
  const count = caseNode(isComplete, own, { kind: 'scalar_query', query: looked, type: 'int8' });
  const outputs: readonly PlanOutput[] = documents ? [{ name: 'documents', expr: seen(3) }] : [];
  return countOfWords(view, count, outputs, [{ id: BESIDE, query: all, materialized: true }]);
}

const INDEXED: readonly GovernedColumn[] = [
  { name: 'term', type: 'int4', masked: 'none', expr: { kind: 'base', column: 'term', type: 'int4' } },
  {
    name: 'passages',
    type: 'int8',
    masked: 'none',
    expr: { kind: 'base', column: 'passages', type: 'int8' },
  },
];

/**
 * Returns the number of passages in the store that contain `word`, as counted by the indexer; word 0 stands for all
 * passages. Correct only for a caller who may see all of them, and must not be read for anyone else.
 */
function indexed(view: StoreView, version: FacetVersion, word: Expr, place: number): Expr {
  const id = view.request.source + SOURCE_OFFSETS.indexed + place;
  const scan: GovernedScan = Object.freeze({
    kind: 'governed',
    id,
    relation: wordsTable(view.store, version),
    columns: INDEXED,
    filter: null,
    pushed: [],
    fenced: false,
    minimum: null,
  });
  const isIt = operationNode(requireOperator('=', 'int4', 'int4'), columnRef(id, 'term', 'int4'), word);
  const query = selectOf({
    from: scan,
    where: [isIt],
    outputs: [{ name: 'passages', expr: columnRef(id, 'passages', 'int8') }],
  });
  return { kind: 'scalar_query', query, type: 'int8' };
}

/** Returns a plan that finds once the visible passages with any word of slot `terms`, and counts each word in them. */
function amongFound(view: StoreView, all: Select, documents: boolean): GovernedPlan {
  const { facet, source } = view.request;
  const any = operationNode(WORDS_OVERLAP, TERMS.expr, view.slots.given('terms', 'int4[]'));
  const read = visiblePassages(view, scanStore(view, [facet.entityKey], [TERMS], [any]));
  const terms: PlanOutput = { name: 'terms', expr: read.ref(TERMS.name) };
  const found = selectOf({ from: read.from, where: read.where, outputs: [terms] });
  const common = source + SOURCE_OFFSETS.common;
  const holds = equalsAny(
    requireOperator('=', 'int4', 'int4'),
    wordOf(source),
    columnRef(common, 'c1', 'int4[]'),
  );
  const query = counting({ from: { kind: 'cte', id: common, table: BESIDE }, where: [holds] });
  const count: Expr = { kind: 'scalar_query', query, type: 'int8' };
  const counted: Expr = { kind: 'scalar_query', query: all, type: 'int8' };
  const outputs: readonly PlanOutput[] = documents ? [{ name: 'documents', expr: counted }] : [];
  return countOfWords(view, count, outputs, [{ id: BESIDE, query: found, materialized: true }]);
}

/** The id of the only common table in a counting statement. */
const BESIDE = 1;

function wordOf(source: SourceId): ColumnRef {
  return columnRef(source + SOURCE_OFFSETS.word, 'word', 'int4');
}

/** Counts for each row in slot `words`, which has a `word` and, as `term`, an array with only that word. */
function countOfWords(
  view: StoreView,
  count: Expr,
  outputs: readonly PlanOutput[],
  tables: readonly CommonTable[],
): GovernedPlan {
  const word = wordOf(view.request.source);
  const { slot } = view.slots.given('words', 'jsonb');
  return storePlan(view, {
    with: tables,
    from: {
      kind: 'runtime',
      id: word.source,
      slot,
      columns: [
        { name: 'word', type: 'int4' },
        { name: 'term', type: 'int4[]' },
      ],
      sealed: [],
    },
    outputs: [{ name: 'word', expr: word }, { name: 'count', expr: count }, ...outputs, SNAPSHOT],
  });
}

const COUNT: PlanOutput = Object.freeze({ name: 'count', expr: count([], false, null) });

function counting({ from, where }: Pick<Passages, 'from' | 'where'>): Select {
  return selectOf({ grouped: true, from, where, outputs: [COUNT] });
}
