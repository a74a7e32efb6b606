/** Closed table of the language's functions, operators and casts, and Postgres' resolution rules. */

export { HYPOTHETICAL, isHypothetical } from './aggregate.js';
export { CATALOG_CASTS, castBetween } from './casts.js';
export type {
  ArgumentType,
  CastDefinition,
  FunctionDefinition,
  OperatorDefinition,
} from './definition.js';
export { PATH_FUNCTIONS } from './json.js';
export { OPERATORS } from './operators.js';
export { CONFIGURATIONS, isConfigured } from './place.js';
export { commonType, type Operand } from './polymorphic.js';
export {
  FUNCTIONS,
  type FunctionResolution,
  functionsNamed,
  neededFunction,
  neededOperator,
  type OperatorResolution,
  resolveFunction,
  resolveOperator,
} from './resolve.js';
export { columnsOfRows } from './rows.js';
export { ENCODING_FUNCTIONS } from './string.js';
