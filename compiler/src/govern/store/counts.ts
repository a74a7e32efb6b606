import type { Relation } from '../../catalog.js';
import { columnRef, operationNode, selectOf } from '../../nodes.js';
import type { ColumnRef, Expr, Output, Select } from '../../plan.js';
import type { GovernedPlan, GovernedStore } from '../governed-plan.js';
import { count } from '../minimum.js';
import type { Passages } from '../passages.js';
import { HOLDS, TERMS } from './columns.js';
import { storePlan } from './plan.js';
import { SOURCES_BESIDE, type StoreView, scanStore, visiblePassages } from './scan.js';

/** How many passages pass the filters, counted up to slot `limit`. */
export function countUpToLimit(view: StoreView, table: Relation): GovernedPlan {
  const { facet, source } = view.request;
  const read = visiblePassages(view, scanStore(view, [facet.entityKey], [], [], table));
  const some = selectOf({
    from: read.from,
    where: read.where,
    outputs: [{ name: facet.entityKey, expr: read.ref(facet.entityKey) }],
    limit: view.slots.given('limit', 'int8'),
  });
  const from = { kind: 'derived', id: source + SOURCES_BESIDE.some, query: some } as const;
  return storePlan(view, counting({ from, where: [] }));
}

/** How many passages pass the filters, and how many of them hold a word. */
export function countPlans(view: StoreView): NonNullable<GovernedStore['counts']> {
  return Object.freeze({ all: countAll(view, []), ofTerms: countOfTerms(view) });
}

function countAll(view: StoreView, pushed: readonly Expr[]): GovernedPlan {
  const scan = scanStore(view, [view.request.facet.entityKey], [], pushed);
  return storePlan(view, counting(visiblePassages(view, scan)));
}

/** A look-up for each of the rows that slot `words` brings, where it may use an index; else one for slot `term`. */
function countOfTerms(view: StoreView): NonNullable<GovernedStore['counts']>['ofTerms'] {
  const { facet, source } = view.request;
  const scan = scanStore(view, [facet.entityKey], [TERMS], []);
  const read = visiblePassages(view, scan);
  if (read.from !== scan) {
    const pushed = [holds(TERMS.expr, view.slots.given('term', 'int4[]'))];
    return Object.freeze({ asked: 'one by one', plan: countAll(view, pushed) });
  }
  const id = source + SOURCES_BESIDE.word;
  const word: ColumnRef = columnRef(id, 'term', 'int4[]');
  const query = counting({ from: scan, where: [...read.where, holds(read.ref(TERMS.name), word)] });
  const { slot } = view.slots.given('words', 'jsonb');
  const plan = storePlan(view, {
    from: { kind: 'runtime', id, slot, columns: [{ name: 'term', type: 'int4[]' }] },
    outputs: [
      { name: 'term', expr: word },
      { name: 'count', expr: { kind: 'scalar_query', query, type: 'int8' } },
    ],
  });
  return Object.freeze({ asked: 'at once', plan });
}

const COUNT: Output = Object.freeze({ name: 'count', expr: count([], false, null) });

function counting({ from, where }: Pick<Passages, 'from' | 'where'>): Select {
  return selectOf({ grouped: true, from, where, outputs: [COUNT] });
}

function holds(terms: Expr, word: Expr): Expr {
  return operationNode(HOLDS, terms, word);
}
