/** The closed set of the language's functions, operators and casts, and Postgres' rules for resolving them. */

export { HYPOTHETICAL, isHypothetical } from './aggregate.js';
export { CATALOG_CASTS, castBetween, commonType, type Operand } from './conversions.js';
export type {
  ArgumentType,
  CastDefinition,
  FunctionDefinition,
  OperatorDefinition,
} from './define.js';
export { OPERATORS } from './operators.js';
export {
  FUNCTIONS,
  type FunctionResolution,
  functionsNamed,
  type OperatorResolution,
  requireFunction,
  requireOperator,
  resolveFunction,
  resolveOperator,
} from './resolve.js';
export { ENCODING_FUNCTIONS } from './scalar.js';
export { columnsOfRows } from './set-returning.js';
export { CONFIGURATIONS, isConfigured, PATH_FUNCTIONS } from './special-types.js';
