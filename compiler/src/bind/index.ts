/** Binding: resolves names, types and query forms against the objects that the caller may see. */

export type { BoundPlan } from './bind.js';
export { bind, bindSample, type SampledValue } from './bind.js';
export type { World } from './context.js';
export { couldBe } from './expressions/operands.js';
export {
  type CarriedLiterals,
  carriedText,
  LiteralSlots,
  type LiteralTest,
  WrittenLiteral,
} from './literals.js';
export { columnsOf } from './manifest/computed.js';
export {
  bindPredicate,
  type ComputedFacts,
  computedFacts,
  metricColumns,
} from './manifest/computed-facts.js';
export { bindMetrics } from './metrics/bind-metrics.js';
export { metricFault, metricType } from './metrics/metric-access.js';
export { inputsOf } from './metrics/metric-value.js';
export { mostPerHop } from './runtime/runtime-draft.js';
export { columnsFor } from './scope.js';
