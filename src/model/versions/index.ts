/** What is published by API: its versions, its drafts, and one change of it at a time. */
export { type Draft, Drafts, draftId, MAX_DRAFTS } from './drafts.js';
export { createPublishing, type Publishing } from './publishing.js';
export { type NewVersion, unseal, type Version, type VersionSummary } from './version.js';
export {
  headIn,
  PublishedDamaged,
  type Sealed,
  Versions,
  writeVersions,
} from './versions.js';
