/** The one closed table of the language's functions, operators and casts, and Postgres' rules over it. */

export { CATALOG_CASTS, castBetween } from './casts.js';
export { commonType, type Operand } from './coercion.js';
export type {
  ArgumentType,
  CastDefinition,
  FunctionDefinition,
  OperatorDefinition,
} from './definition.js';
export { HYPOTHETICAL, isHypothetical } from './hypothetical.js';
export { PATH_FUNCTIONS } from './json.js';
export { neededFunction, neededOperator } from './needed.js';
export { OPERATORS } from './operators.js';
export {
  FUNCTIONS,
  type FunctionResolution,
  functionsNamed,
  type OperatorResolution,
  resolveFunction,
  resolveOperator,
} from './resolve.js';
export { columnsOfRows } from './rows.js';
export { CONFIGURATIONS, isConfigured } from './searches.js';
export { ENCODING_FUNCTIONS } from './string.js';
