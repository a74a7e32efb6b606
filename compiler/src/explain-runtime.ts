import { assertNever } from './errors/errors.js';
import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  stepsOfWalk,
} from './govern/governed-plan.js';
import type { Expr, Query, Slot } from './plan/plan.js';
import { EVIDENCE, type Page } from './plan/runtime.js';
import { leavesOf } from './plan/walk.js';

/** What is told of rows that are worked out before the statement runs. */
export interface RuntimeExplanation {
  readonly step: string;
  readonly detail: Readonly<Record<string, unknown>>;
  /** The governed statements behind them, where there is one for each step. */
  readonly steps: readonly GovernedPlan[];
}

export function explainRuntime(runtime: GovernedRuntime, slots: readonly Slot[]): RuntimeExplanation {
  switch (runtime.kind) {
    case 'retrieval':
      return { step: 'retrieve', detail: retrieval(runtime, slots), steps: [] };
    case 'traversal': {
      const { anchor, target, hops, repeats, maxHops, perHop } = runtime.relation;
      const path = hops.map((h) => `${h.from} → ${h.edge} → ${h.to}`);
      const detail = { anchor, target, path, repeats, max_hops: maxHops, per_hop: perHop };
      return { step: 'traverse', detail, steps: stepsOfWalk(runtime) };
    }
    case 'hydration': {
      const { entity, columns } = runtime.relation;
      const used = columns.map((c) => c.name).filter((name) => name !== 'key');
      const detail = {
        object: `osl.entities.${entity}`,
        facets: runtime.stores.map(({ facet, version }) => `${facet.name} in version ${version}`),
        passages: used.includes(EVIDENCE),
        derived: used.filter((name) => name !== EVIDENCE),
      };
      return { step: 'hydrate', detail, steps: [] };
    }
    case 'operated': {
      const { operators, most } = runtime.relation;
      const detail = { operators: operators.map((o) => o.operator), max_rows: most };
      return { step: 'operators over rows', detail, steps: [runtime.rows] };
    }
    default:
      return assertNever(runtime);
  }
}

type Retrieval = Extract<GovernedRuntime, { kind: 'retrieval' }>;

function retrieval(
  { relation, store, checkedKeys }: Retrieval,
  slots: readonly Slot[],
): Record<string, unknown> {
  const { facet, topK, page, rerank, filters, operators, columns } = relation;
  return {
    object: `osl.facets.${facet.name}`,
    version: store?.version ?? 'none is due: no passages',
    ...legsOf(relation),
    lane: laneOf(relation, store),
    top_k: statedNumber(topK, slots),
    max_top_k: facet.maxTopK,
    ...pageOf(page, slots),
    ...(rerank === null ? {} : { rerank: { reranker: rerank.name, candidates: rerank.candidates } }),
    // They hold in the store, before the best are taken.
    metadata_filters: filters.length,
    ...(relation.keyFilters.length === 0 ? {} : { semi_joins: relation.keyFilters.length }),
    ...(store === null ? {} : { row_filter: isFiltered(store.passages.query) ? 'applied' : 'none' }),
    operators: operators.map((o) => o.operator),
    // A passage in which one is redacted refuses the question.
    ...(checkedKeys.size === 0 ? {} : { checked_keys: [...checkedKeys.keys()] }),
    columns: columns.map((c) => c.name).filter((name) => !name.startsWith('#')),
  };
}

/**
 * How passages are found: where few are permitted, and where many are. Which of the two it is this time would need a
 * look at the data, which an explanation does not take.
 */
function laneOf({ facet, legs }: Retrieval['relation'], store: GovernedStore | null): unknown {
  if (legs.mode === 'lexical') return 'exact';
  const indexed = facet.approximate && (store === null || store.nearest?.byIndex !== null);
  return { few: 'exact', many: indexed ? 'approximate index' : 'signs, then exact' };
}

/** A number that the text states; one that comes beside it is not known yet. */
function statedNumber(expr: Expr, slots: readonly Slot[]): unknown {
  const slot = expr.kind === 'parameter' ? slots[expr.slot] : undefined;
  return slot?.kind === 'literal' ? Number(slot.value) : 'a parameter';
}

/** By which legs, of a facet that has two. */
function legsOf({ facet, legs }: Retrieval['relation']): Record<string, unknown> {
  if (facet.lexicalLeg === undefined) return {};
  return legs.mode === 'hybrid' ? { mode: legs.mode, fuse: legs.fuse } : { mode: legs.mode };
}

function pageOf({ per, skip, minScore, diversity }: Page, slots: readonly Slot[]): Record<string, unknown> {
  return {
    ...(per === 'passage' ? {} : { per }),
    ...(skip === null ? {} : { skip: statedNumber(skip, slots) }),
    ...(minScore === null ? {} : { min_score: statedNumber(minScore, slots) }),
    ...(diversity === null ? {} : { diversity: statedNumber(diversity, slots) }),
  };
}

/** Whether the store's own scan has a filter; that of its entity has one of its own. */
function isFiltered(query: Query): boolean {
  if (query.kind !== 'select') return false;
  return leavesOf(query.from).some((leaf) =>
    leaf.kind === 'derived' ? isFiltered(leaf.query) : leaf.kind === 'governed' && leaf.filter !== null,
  );
}

/** What the asker of `plan` is told beside the answer, whatever the answer is. */
export function noticesOf({ runtime }: GovernedPlan): readonly string[] {
  if (runtime.length === 0) return [];
  return [...new Set(runtime.flatMap((r) => (r.kind === 'retrieval' ? r.notices : [])))];
}
