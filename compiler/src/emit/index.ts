import { InternalError } from '../errors.js';
import { GovernedPlan } from '../govern/governed-plan.js';
import type { Slot } from '../plan.js';
import { emitQuery } from './query.js';
import { Writer } from './writer.js';

/** Governed SQL for Postgres. */
export interface Emitted {
  /** `$1 … $n`, each with an explicit type, are the values of `slots` in order. */
  readonly sql: string;
  readonly slots: readonly Slot[];
}

const known = new WeakMap<GovernedPlan, Emitted>();

/** The SQL of a governed plan, the same text each time. Nothing that a caller wrote is in it. */
export function emit(plan: GovernedPlan): Emitted {
  if (!GovernedPlan.is(plan)) throw new InternalError('only a GovernedPlan can be emitted');
  const before = known.get(plan);
  if (before !== undefined) return before;
  const writer = new Writer(plan.slots);
  emitQuery(plan.query, writer);
  const emitted = Object.freeze({ sql: writer.text(), slots: writer.slotsUsed() });
  known.set(plan, emitted);
  return emitted;
}
