/** Proofs about policies by an SMT solver: claims, comparisons of roles, and rules without effect. */

export {
  type Counterexample,
  type CounterexampleCaller,
  columnValue,
  counterexampleOf,
  OTHER_VALUES,
  softConstraintsOf,
} from './counterexample.js';
export {
  applicationKey,
  castKey,
  columnKey,
  expressionKey,
  literalKey,
  NULL_KEY,
  operationKey,
} from './expression-key.js';
export {
  and,
  boolean,
  equal,
  FALSE,
  type Formula,
  ifThenElse,
  not,
  number,
  or,
  TRUE,
  text,
  variable,
} from './formula.js';
export { lint, type PolicyFinding } from './lint.js';
export { type Check, type Claim, comparisons, type Obligation, obligationsOf } from './obligations.js';
export { type ModelValue, type Script, type SolverModel, scriptOf } from './smt.js';
export {
  anyOf,
  argumentsOf,
  type ComparedValue,
  choice,
  coalesceTruth,
  comparison,
  definite,
  Encoder,
  type RowVariable,
  type Truth,
  type Value,
} from './values.js';
export { type ProvenPolicy, type View, viewOf } from './views.js';
