/** Judges what authors propose: against the served manifest, and against the policy of now. Stores nothing. */
export type { RoleChange } from './access.js';
export { type Otherwise, otherwiseUnder } from './asked-before.js';
export type { Change } from './changes.js';
export { check, type Finding, type Proposal } from './check.js';
export { type Difference, type Judgement, judge } from './judge.js';
export {
  compiledPolicy,
  judgePolicy,
  type PolicyJudgement,
} from './policy.js';
export { type Step, workedOut } from './step.js';
export { type Suggestion, suggestRelation, suggestTerm } from './suggest.js';
