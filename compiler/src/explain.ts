import type { GovernedPlan, GovernedRuntime } from './govern/governed-plan.js';
import { type FromItem, GROUP_KEY, type Query } from './plan.js';
import { columnsOf } from './walk.js';

/** One step of a logical plan, as its reader may see it: no filter's columns, no role names, no values. */
export interface Explanation {
  readonly step: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly inputs: readonly Explanation[];
}

/** The logical plan of a governed query, from the outside in. */
export function explain(plan: GovernedPlan): Explanation {
  const lanes = plan.runtime.flatMap((r) => (r.kind === 'retrieval' ? [explainRetrieval(r)] : []));
  const whole = explainQuery(plan.query);
  return lanes.length === 0 ? whole : step(whole.step, whole.detail, [...whole.inputs, ...lanes]);
}

/**
 * How passages are found: where few are permitted, and where many are. Which of the two it is this time would need a
 * look at the data, which an explanation does not take.
 */
function explainRetrieval({ relation, store }: Extract<GovernedRuntime, { kind: 'retrieval' }>): Explanation {
  const { facet } = relation;
  const object = `osl.facets.${facet.name}`;
  if (facet.lane === 'lexical') return step('retrieve', { object, lane: 'exact' }, []);
  const indexed = facet.approximate && (store === null || store.nearest?.byIndex !== null);
  const lanes = { few: 'exact', many: indexed ? 'approximate index' : 'signs, then exact' };
  return step('retrieve', { object, lane: lanes }, []);
}

function explainQuery(query: Query): Explanation {
  switch (query.kind) {
    case 'values':
      return step('values', { rows: query.rows.length }, []);
    case 'set_operation':
      return step(
        query.operator,
        { all: query.all, ordered: query.orderBy.length > 0, limited: query.limit !== null },
        [
          ...query.with.map((t) => explainQuery(t.query)),
          explainQuery(query.left),
          explainQuery(query.right),
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
          ...query.with.map((t) => explainQuery(t.query)),
          ...(query.from === null ? [] : [explainFrom(query.from)]),
        ],
      );
    default: {
      const unknown: never = query;
      return unknown;
    }
  }
}

function explainFrom(item: FromItem): Explanation {
  switch (item.kind) {
    case 'entity':
      return step('scan', { object: item.relation.name, governed: false }, []);
    case 'governed':
      return step(
        'scan',
        {
          object: `osl.entities.${item.relation.name}`,
          columns: item.columns
            .filter((c) => c.name !== GROUP_KEY)
            .map((c) => ({ name: c.name, masked: c.masked })),
          row_filter: item.filter === null ? 'none' : 'applied',
          fenced: item.fenced,
          ...(item.minimum === null ? {} : { minimum_group_size: item.minimum.size }),
        },
        [],
      );
    case 'derived':
      return explainQuery(item.query);
    case 'cte':
      return step('common table', { table: item.table }, []);
    case 'runtime':
      return step('runtime rows', { columns: item.columns.map((c) => c.name) }, []);
    case 'join':
      return step(
        `${item.type} join`,
        item.sealed ? { keys: item.on.length } : { predicates: item.on.length },
        [explainFrom(item.left), explainFrom(item.right)],
      );
    default: {
      const unknown: never = item;
      return unknown;
    }
  }
}

function step(name: string, detail: Record<string, unknown>, inputs: readonly Explanation[]): Explanation {
  return Object.freeze({ step: name, detail: Object.freeze(detail), inputs: Object.freeze([...inputs]) });
}
