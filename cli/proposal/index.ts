/** Drafts a manifest and a policy for a database. Asks no questions and writes nothing; `cli/init` does that. */
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
  lookOf,
  spread,
  suggestTreatments,
  type Treatment,
  type Treatments,
  tenantRank,
} from './labels.js';
export { CONNECTOR, type DraftedManifest, draftManifest } from './manifest.js';
export { draftPolicy, makeReader, type ReaderRole, type RowRule } from './policy.js';
export { manifestYaml, policyTestsYaml, policyYaml } from './text.js';
export { type ViewFlows, viewFlows } from './view-flows.js';
