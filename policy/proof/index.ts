/** Proofs about policies: claims, comparisons and rules that do nothing, as questions to a solver. */

export {
  type Counterexample,
  type CounterexampleCaller,
  counterexampleOf,
  wishesOf,
} from './counterexample.js';
export { type Formula, or } from './formula.js';
export { type Finding, lint, type Path } from './lint.js';
export { type Check, type Claim, comparisons, type Obligation, obligationsOf } from './obligations.js';
export { type ModelValue, type Script, scriptOf } from './script.js';
export type { Encoder } from './values.js';
export type { ProvenPolicy } from './views.js';
