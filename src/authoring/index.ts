/** Judges what authors propose: against the served manifest, and against the policy of now. Stores nothing. */
export { type Checked, check, type Finding, type Proposal } from './check.js';
export { type Suggestion, suggestRelation, suggestTerm } from './suggest.js';
