import { assertNever, InternalError } from './errors/errors.js';
import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  stepsOfWalk,
} from './govern/governed-plan.js';
import { equatesColumns } from './plan/keys.js';
import {
  type Expr,
  type FromItem,
  isGroupColumn,
  type Join,
  type Query,
  type RuntimeScan,
  SHOWN,
  type Slot,
} from './plan/plan.js';
import { EVIDENCE, type PassagePage } from './plan/runtime.js';
import { columnsOf, leavesOf } from './plan/walk.js';

/** A step of a logical plan, safe to show to the caller: without filter columns, role names or values. */
export interface PlanExplanation {
  readonly step: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly inputs: readonly PlanExplanation[];
}

/** Returns the logical plan of a governed query, outermost step first. */
export function explain(plan: GovernedPlan): PlanExplanation {
  const explained = explainQuery(plan.query, plan);
  const passed = plan.passedRollups;
  if (passed.length === 0) return explained;
  const why = Object.fromEntries(passed.map((p) => [p.name, p.why]));
  return step(explained.step, { ...explained.detail, rollups_not_used: why }, explained.inputs);
}

function explainQuery(query: Query, plan: GovernedPlan): PlanExplanation {
  switch (query.kind) {
    case 'values':
      return step('values', { rows: query.rows.length }, []);
    case 'set_operation':
      return step(
        query.operator,
        { all: query.all, ordered: query.orderBy.length > 0, limited: query.limit !== null },
        [
          ...query.with.map((t) => explainQuery(t.query, plan)),
          explainQuery(query.left, plan),
          explainQuery(query.right, plan),
        ],
      );
    case 'select':
      return step(
        'select',
        {
          columns: columnsOf(query).map((c) => c.name),
          predicates: query.where.length,
          grouped: query.grouped,
          distinct: query.distinct || query.distinctOn.length > 0,
          ordered: query.orderBy.length > 0,
          limited: query.limit !== null,
        },
        [
          ...query.with.map((t) => explainQuery(t.query, plan)),
          ...(query.from === null ? [] : [explainFrom(query.from, plan)]),
        ],
      );
    default:
      return assertNever(query);
  }
}

function explainFrom(item: FromItem, plan: GovernedPlan): PlanExplanation {
  switch (item.kind) {
    case 'entity':
      return step('scan', { object: item.relation.name, governed: false }, []);
    case 'governed':
      return step(
        'scan',
        {
          object: `osl.entities.${item.relation.name}`,
          columns: item.columns
            .filter((c) => !isGroupColumn(c.name) && c.name !== SHOWN)
            .map((c) => ({ name: c.name, masked: c.masked })),
          row_filter: item.filter === null ? 'none' : 'applied',
          guarded: item.columns.some((c) => c.name === SHOWN),
          fenced: item.fenced,
          ...(item.relation.rollup === undefined ? {} : { rollup: item.relation.rollup.name }),
          ...(item.minimum === null ? {} : { minimum_group_size: item.minimum.size }),
        },
        [],
      );
    case 'derived':
      return explainQuery(item.query, plan);
    case 'cte':
      return step('common table', { table: item.table }, []);
    case 'recursion':
      return step('rows of the step before', { table: item.table }, []);
    case 'spine':
      return step('periods', { grain: item.grain }, [explainQuery(item.bounds, plan)]);
    case 'rows':
      return step('rows of a function', { function: item.definition.name, columns: item.columns.length }, []);
    case 'runtime':
      return explainRows(item, plan);
    case 'join':
      return step(`${item.type} join`, conditionsIn(item), [
        explainFrom(item.left, plan),
        explainFrom(item.right, plan),
      ]);
    default:
      return assertNever(item);
  }
}

function conditionsIn({ sealed, on }: Join): { keys?: number; predicates?: number } {
  const keys = sealed ? on.filter(equatesColumns).length : 0;
  const predicates = on.length - keys;
  return { ...(sealed ? { keys } : {}), ...(sealed && predicates === 0 ? {} : { predicates }) };
}

function explainRows(item: RuntimeScan, plan: GovernedPlan): PlanExplanation {
  const slot = plan.slots[item.slot];
  const runtime = slot?.kind === 'runtime' ? plan.runtime[slot.index] : undefined;
  if (runtime === undefined) throw new InternalError(`no rows are worked out for slot ${item.slot}`);
  const { step: name, detail, steps } = explainRuntime(runtime, plan.slots);
  return step(name, { ...detail }, steps.map(explain));
}

function step(
  name: string,
  detail: Record<string, unknown>,
  inputs: readonly PlanExplanation[],
): PlanExplanation {
  return Object.freeze({ step: name, detail: Object.freeze(detail), inputs: Object.freeze([...inputs]) });
}

interface RuntimeExplanation {
  readonly step: string;
  readonly detail: Readonly<Record<string, unknown>>;
  /** The governed statements that compute the rows, if any. */
  readonly steps: readonly GovernedPlan[];
}

function explainRuntime(runtime: GovernedRuntime, slots: readonly Slot[]): RuntimeExplanation {
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

type GovernedRetrieval = Extract<GovernedRuntime, { kind: 'retrieval' }>;

function retrieval(
  { relation, store, checkedKeys }: GovernedRetrieval,
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
    // Applied in the store, before the best passages are chosen.
    metadata_filters: filters.length,
    ...(relation.keyFilters.length === 0 ? {} : { semi_joins: relation.keyFilters.length }),
    ...(store === null ? {} : { row_filter: isFiltered(store.passages.query) ? 'applied' : 'none' }),
    operators: operators.map((o) => o.operator),
    // The query is refused if a passage's key is redacted.
    ...(checkedKeys.size === 0 ? {} : { checked_keys: [...checkedKeys.keys()] }),
    columns: columns.map((c) => c.name).filter((name) => !name.startsWith('#')),
  };
}

/**
 * Returns the search methods for few and for many permitted passages. Which of the two is used depends on the data,
 * which explain does not read.
 */
function laneOf({ facet, legs }: GovernedRetrieval['relation'], store: GovernedStore | null): unknown {
  if (legs.mode === 'lexical') return 'exact';
  const indexed = facet.approximate && (store === null || store.nearest?.byIndex !== null);
  return { few: 'exact', many: indexed ? 'approximate index' : 'signs, then exact' };
}

function statedNumber(expr: Expr, slots: readonly Slot[]): unknown {
  const slot = expr.kind === 'parameter' ? slots[expr.slot] : undefined;
  return slot?.kind === 'literal' ? Number(slot.value) : 'a parameter';
}

function legsOf({ facet, legs }: GovernedRetrieval['relation']): Record<string, unknown> {
  if (facet.lexicalLeg === undefined) return {};
  return legs.mode === 'hybrid' ? { mode: legs.mode, fuse: legs.fuse } : { mode: legs.mode };
}

function pageOf(
  { per, skip, minScore, diversity }: PassagePage,
  slots: readonly Slot[],
): Record<string, unknown> {
  return {
    ...(per === 'passage' ? {} : { per }),
    ...(skip === null ? {} : { skip: statedNumber(skip, slots) }),
    ...(minScore === null ? {} : { min_score: statedNumber(minScore, slots) }),
    ...(diversity === null ? {} : { diversity: statedNumber(diversity, slots) }),
  };
}

/** True if the scan of the store itself has a row filter. The scan of its entity has a separate one. */
function isFiltered(query: Query): boolean {
  if (query.kind !== 'select') return false;
  return leavesOf(query.from).some((leaf) =>
    leaf.kind === 'derived' ? isFiltered(leaf.query) : leaf.kind === 'governed' && leaf.filter !== null,
  );
}

/** Returns the notices to send with every result of `plan`. */
export function noticesOf({ runtime }: GovernedPlan): readonly string[] {
  if (runtime.length === 0) return [];
  return [...new Set(runtime.flatMap((r) => (r.kind === 'retrieval' ? r.notices : [])))];
}
