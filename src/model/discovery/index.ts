/**
 * Finds relations in a connector's database that the manifest lacks, and proposes how to adopt them. Stores nothing.
 */
export {
  type AdoptionCandidate,
  type CandidateColumn,
  type CandidateLink,
  candidateFor,
  candidatesIn,
  NameAllocator,
  tableKey,
} from './candidates.js';

export { type CitusLayout, distributionColumns, readCitus } from './citus.js';
export { draftOf, isExposable, labelsNote } from './draft.js';
export type { UpstreamRelation, UpstreamSchema } from './upstream.js';
export { MAX_RELATIONS, type ModelledType, modelType, readUpstream } from './upstream.js';
