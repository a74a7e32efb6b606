/** Checks authors' proposals against the served manifest and the current policy. Stores nothing. */

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
export { type AccessDifference, accessDifferences, recordedRelations } from './earlier-queries.js';
export {
  compiledPolicy,
  judgePolicy,
  type PolicyJudgement,
} from './policy.js';
export { applyStep, type PublishStep } from './publish-step.js';
