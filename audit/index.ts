/** The audit log: durable, hash-chained, signed. See `format.ts` for its binary format. */
export {
  CHECKPOINTS_FILE,
  checkpointNotes,
  LATEST_FILE,
  openCheckpoint,
  PUBLIC_KEY_FILE,
  parseVerifierKey,
  RETAINED_FILE,
} from './checkpoint.js';
export type { AppendDone } from './commit-group.js';
export { AuditDamaged, AuditLocked, AuditUnavailable } from './errors.js';
export { keepSegmentKey } from './file-store.js';
export { Fingerprints } from './fingerprint.js';
export {
  encodeFrame,
  encodeHeader,
  framesOf,
  keyName,
  leafHash,
  type SegmentHeader,
  segmentName,
  splitHashes,
} from './format.js';
export { Frontier } from './frontier.js';
export type { AuditGap, AuditLog, AuditLogOptions, AuditObserver, AuditStats } from './interface.js';
export { causeOf, openAuditLog } from './log.js';
export {
  type AuditProof,
  checkProof,
  type InclusionVerdict,
  type ProvenCheckpoint,
  type ProveOptions,
  prove,
  recordOfProof,
} from './proof.js';
export { coseReceipt } from './proof-formats.js';
export { readFrames, readRecords, recordIn, type StoredFrame } from './read.js';
export { type AuditReadEvent, announceRead } from './read-events.js';
export type {
  AuditDecision,
  AuditEntry,
  AuditKind,
  AuditOutcome,
  AuditRecord,
  AuditSurface,
  CommonEntry,
  ReceiptDigests,
  RecordTemplate,
  RowOrder,
} from './record.js';
export {
  beginningOf,
  type RecoverBase,
  type RecoveredLog,
  type RecoverOptions,
  recoverLog,
} from './recover.js';
export {
  type AuditFilter,
  type AuditQuery,
  decisionIn,
  fingerprintsOf,
  matches,
  namesOf,
  undeclaredObject,
} from './search/filter.js';
export { byTime, type SearchStep, searchNewest, searchRecords } from './search/search.js';
export type { Signer } from './signer.js';
export {
  directorySource,
  type KnownBoundary,
  type LogIndex,
  type LogLeaf,
  type LogSource,
  type StoredRecord,
} from './source.js';
export type { LogStore, NoteStore, ReadingQueue, RetirementPlan, SegmentStore } from './store.js';
export type { LeafRange } from './tree.js';
export type { AuditVerdict } from './verdict.js';
export { type VerifyProgress, verifyAuditLog } from './verify.js';
