/** Checks authors' proposals against the served manifest and the current policy. Stores nothing. */

export { type Otherwise, otherwiseUnder } from './asked-before.js';
export type { ManifestChange, RoleChange } from './changes.js';
export {
  check,
  type DraftFinding,
  type Judgement,
  judge,
  type ManifestDifference,
  type Proposal,
  type Suggestion,
  suggestRelation,
  suggestTerm,
} from './check.js';
export {
  compiledPolicy,
  judgePolicy,
  type PolicyJudgement,
} from './policy.js';
export { type PublishStep, workedOut } from './step.js';
