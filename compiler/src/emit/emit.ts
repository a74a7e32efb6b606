import { InternalError } from '../errors/errors.js';
import { GovernedPlan } from '../govern/governed-plan.js';
import type { Query, Slot } from '../plan/plan.js';
import { emitQuery } from './query.js';
import { Writer } from './writer.js';

/** Governed SQL for Postgres. */
export interface EmittedSql {
  /** The parameters `$1 … $n`, each with an explicit type, are the values of `slots` in order. */
  readonly sql: string;
  readonly slots: readonly Slot[];
}

/** The SQL that plans share which differ only in values. */
interface Text {
  readonly sql: string;
  /** Indices of slots in the order in which the text uses them. */
  readonly order: readonly number[];
}

const texts = new WeakMap<Query, Text>();

/** The SQL of a governed plan, always the same text. It contains nothing that a caller wrote. */
export function emit(plan: GovernedPlan): EmittedSql {
  if (!GovernedPlan.is(plan)) throw new InternalError('only a GovernedPlan can be emitted');
  const { sql, order } = sqlOf(plan);
  return { sql, slots: order.map((i) => slotAt(plan, i)) };
}

/** Plans that share a query differ only in values of literals, which are not in the text. */
function sqlOf({ query, slots }: GovernedPlan): Text {
  const before = texts.get(query);
  if (before !== undefined) return before;
  const writer = new Writer(slots);
  emitQuery(query, writer);
  const text = Object.freeze({ sql: writer.text(), order: writer.slotsUsed() });
  texts.set(query, text);
  return text;
}

function slotAt(plan: GovernedPlan, index: number): Slot {
  const slot = plan.slots[index];
  if (slot === undefined) throw new InternalError(`parameter ${index} has no slot`);
  return slot;
}
