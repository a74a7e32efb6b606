/** What is published by API: its versions, its drafts, and one change of it at a time. */
export { type Draft, Drafts, draftId, isDraftId, MAX_DRAFTS, type Validation } from './drafts.js';
export { createPublishing, type FileLayer, type Publishing } from './publishing.js';
export { isVersionId, type NewVersion, type Version, type VersionSummary } from './version.js';
export { headIn, PublishedDamaged, type Sealed, Versions } from './versions.js';
