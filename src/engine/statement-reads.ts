import { type GovernedPlan, relationsRead, type Slot } from 'osl-compiler';
import type { StatementReads, ValueSource } from './statement.js';

/** The source of a slot's value; parts added by policy, a metric or the compiler belong to the gateway. */
export function sourceOf(slot: Slot): ValueSource {
  if (slot.kind === 'client') return { kind: 'client', type: slot.type, number: slot.index + 1 };
  return slot.kind === 'literal' && slot.written ? { kind: 'literal', type: slot.type } : { kind: 'gateway' };
}

/** The objects and tables that a plan reads, for messages about its failure. */
export function readsOf({ query, objects, outputs }: GovernedPlan): StatementReads {
  const relations = relationsRead(query);
  return {
    objects: namedIn(objects),
    relations: relations.map((r) => r.name),
    tables: relations.map((r) => `${r.schema}.${r.table}`),
    columns: outputs.map((output) => output.source ?? output.name),
  };
}

const METRICS = 'osl.metrics.';

/** The names to show; definitions of metrics are hidden from callers who query the metrics. */
function namedIn(objects: readonly string[]): readonly string[] {
  const metrics = objects.filter((name) => name.startsWith(METRICS));
  return (metrics.length > 0 ? metrics : objects).map((name) => name.slice(name.lastIndexOf('.') + 1));
}
