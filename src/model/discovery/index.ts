/**
 * Finds relations in a connector's database that the manifest lacks, and proposes how to adopt them. Stores nothing.
 */
export {
  type AdoptionCandidate,
  bridgeSides,
  type CandidateColumn,
  type CandidateLink,
  candidateFor,
  candidatesIn,
  candidatesInAll,
  NameAllocator,
  tableKey,
} from './candidates.js';
export { draftOf, isExposable, labelsNote } from './draft.js';
export {
  type CitusLayout,
  distributionColumns,
  MAX_RELATIONS,
  type ModelledType,
  modelType,
  readCitus,
  readUpstream,
  type UpstreamRelation,
  type UpstreamSchema,
} from './upstream.js';
