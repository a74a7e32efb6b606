/** Publishing through the API: versions, drafts, and changes made one at a time. */
export { Drafts, draftId, MAX_DRAFTS, type StoredDraft } from './drafts.js';
export {
  createPublishing,
  headIn,
  type NewVersion,
  type PublicationStore,
  PublishedDamaged,
  unseal,
  type Version,
  type VersionFile,
  VersionStore,
  type VersionSummary,
  writeVersions,
} from './versions.js';
