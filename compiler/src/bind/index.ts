/** Binding: names, types and forms of what was asked, against what its caller may see. */
export { bind } from './bind.js';
export type { BoundPlan } from './bound-plan.js';
export { couldBe } from './coerce.js';
export { columnsOf } from './computed.js';
export { type ComputedFacts, computedFacts } from './computed-facts.js';
export type { World } from './context.js';
export { fanOutOf } from './fan-out.js';
export { type Carried, carriedText, LiteralSlots, type LiteralTest, WrittenLiteral } from './literals.js';
export { metricColumns } from './metric-columns.js';
export { bindMetrics } from './metrics/bind-metrics.js';
export { inputsOf } from './metrics/inputs.js';
export { metricFault, metricType } from './metrics/readable.js';
export { mostPerHop } from './runtime-draft.js';
export { bindSample, type SampledRead, type SampledValue } from './sample.js';
export { columnsFor, visibleColumn } from './scope.js';
export { bindPredicate } from './standalone.js';
