/** What a connector's database holds beyond the manifest, and what could become of it. Stores nothing. */
export {
  type AdoptionCandidate,
  type CandidateColumn,
  type CandidateLink,
  candidateFor,
  candidatesIn,
  tableKey,
} from './candidates.js';

export { draftOf, isExposable, labelsNote } from './draft.js';
export { MAX_RELATIONS, readUpstream } from './read.js';
export type { UpstreamRelation, UpstreamSchema } from './upstream.js';
export { type ModelledType, modelType } from './upstream.js';
