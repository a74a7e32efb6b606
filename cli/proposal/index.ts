/** Makes a manifest and a policy of a database that is there. Asks nobody and writes nothing: see `cli/init`. */
export {
  chooseTables,
  columnId,
  type ExcludedTable,
  parseTablePatterns,
  type TableSelection,
  tableOf,
} from './choose.js';

export { countKey, declaredKey, type FoundKey } from './find-key.js';
export {
  alongViews,
  spread,
  suggestTreatments,
  type Treatment,
  type Treatments,
} from './labels.js';
export type { LostLink } from './links.js';
export { type DraftedManifest, draftManifest } from './manifest.js';
export { lookOf, tenantRank } from './personal.js';
export { draftPolicy, type RowRule } from './policy.js';
export { makeReader, type ReaderRole } from './reader-role.js';
export { manifestYaml, policyTestsYaml, policyYaml } from './text.js';
export { type ViewFlows, viewFlows } from './view-flows.js';
