/** Checks authors' proposals against the served manifest and the current policy. Stores nothing. */
export type { RoleChange } from './access.js';
export { type Otherwise, otherwiseUnder } from './asked-before.js';
export type { ManifestChange } from './changes.js';
export { check, type DraftFinding, type Proposal } from './check.js';
export { type Judgement, judge, type ManifestDifference } from './judge.js';
export {
  compiledPolicy,
  judgePolicy,
  type PolicyJudgement,
} from './policy.js';
export { type PublishStep, workedOut } from './step.js';
export { type Suggestion, suggestRelation, suggestTerm } from './suggest.js';
