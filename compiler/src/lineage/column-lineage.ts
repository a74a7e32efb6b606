import type { GovernedPlan } from '../govern/governed-plan.js';
import { type Influence, Influences } from './influence.js';
import { Sources } from './sources.js';
import { LineageTrace } from './trace.js';

export type { DirectKind, IndirectKind, Influence, Transformation } from './influence.js';

/** Where an answer comes from, column by column, policy included. */
export interface ColumnLineage {
  /** By the plan's outputs, in their order. `name` is the caller's own word for it. */
  readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
  /** What decides which rows there are, how many, and in which order. */
  readonly rows: readonly Influence[];
}

/**
 * The column lineage of a governed plan. A column that is not named has no part in the answer: whatever its values,
 * the answer is the same.
 */
export function columnLineage(plan: GovernedPlan): ColumnLineage {
  const sources = new Sources(plan.query);
  const gather = (follow: (trace: LineageTrace) => void): readonly Influence[] => {
    const found = new Influences();
    follow(new LineageTrace(plan, sources, found));
    return found.list();
  };
  const outputs = plan.outputs.map(({ name }, i) =>
    Object.freeze({ name, inputs: gather((trace) => trace.output(i)) }),
  );
  return Object.freeze({
    outputs: Object.freeze(outputs),
    rows: gather((trace) => trace.rows(plan.query)),
  });
}
