/** Publishing by API: versions, drafts, and changes one at a time. */
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
