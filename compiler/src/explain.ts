import { assertNever, InternalError } from './errors/errors.js';
import { explainRuntime } from './explain-runtime.js';
import type { GovernedPlan } from './govern/governed-plan.js';
import { equatesColumns } from './plan/key-equality.js';
import { type FromItem, isGroupColumn, type Join, type Query, type RuntimeScan, SHOWN } from './plan/plan.js';
import { columnsOf } from './plan/walk.js';

/** One step of a logical plan, as its reader may see it: no filter's columns, no role names, no values. */
export interface Explanation {
  readonly step: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly inputs: readonly Explanation[];
}

/** The logical plan of a governed query, from the outside in. */
export function explain(plan: GovernedPlan): Explanation {
  const explained = explainQuery(plan.query, plan);
  const passed = plan.passedRollups;
  if (passed.length === 0) return explained;
  const why = Object.fromEntries(passed.map((p) => [p.name, p.why]));
  return step(explained.step, { ...explained.detail, rollups_not_used: why }, explained.inputs);
}

function explainQuery(query: Query, plan: GovernedPlan): Explanation {
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

function explainFrom(item: FromItem, plan: GovernedPlan): Explanation {
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
          ...(item.relation.rollup === undefined ? {} : { rollup: item.relation.rollup }),
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

/** Of how many keys, and how many other predicates. */
function conditionsIn({ sealed, on }: Join): { keys?: number; predicates?: number } {
  const keys = sealed ? on.filter(equatesColumns).length : 0;
  const predicates = on.length - keys;
  return { ...(sealed ? { keys } : {}), ...(sealed && predicates === 0 ? {} : { predicates }) };
}

function explainRows(item: RuntimeScan, plan: GovernedPlan): Explanation {
  const slot = plan.slots[item.slot];
  const runtime = slot?.kind === 'runtime' ? plan.runtime[slot.index] : undefined;
  if (runtime === undefined) throw new InternalError(`no rows are worked out for slot ${item.slot}`);
  const { step: name, detail, steps } = explainRuntime(runtime, plan.slots);
  return step(name, { ...detail }, steps.map(explain));
}

function step(name: string, detail: Record<string, unknown>, inputs: readonly Explanation[]): Explanation {
  return Object.freeze({ step: name, detail: Object.freeze(detail), inputs: Object.freeze([...inputs]) });
}
