/** What is published by API: its versions, its drafts, and one change of it at a time. */
export { Drafts, draftId, MAX_DRAFTS, type StoredDraft } from './drafts.js';
export { createPublishing, type PublicationStore } from './publishing.js';
export { type NewVersion, unseal, type Version, type VersionSummary } from './version.js';
export {
  headIn,
  PublishedDamaged,
  type VersionFile,
  VersionStore,
  writeVersions,
} from './versions.js';
