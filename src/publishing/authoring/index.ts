/** Judges what authors propose: against the served manifest, and against the policy of now. Stores nothing. */
export type { AccessChange, RoleChange, Sight } from './access.js';
export { type AskedBefore, type Otherwise, otherwiseUnder } from './asked-before.js';
export type { Change } from './changes.js';
export { type Checked, check, type Finding, type Proposal } from './check.js';
export { type Difference, type Judgement, judge } from './judge.js';
export {
  compiledPolicy,
  judgePolicy,
  type PolicyDifference,
  type PolicyJudgement,
  type SubjectChange,
} from './policy.js';
export { type Ground, type Step, type Worked, workedOut } from './step.js';
export { type Suggestion, suggestRelation, suggestTerm } from './suggest.js';
