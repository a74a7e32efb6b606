/** The audit log: durable, chained, signed. The design is in `docs/decisions`, the bytes are in `format.ts`. */
export {
  CHECKPOINTS_FILE,
  checkpointNotes,
  LATEST_FILE,
  PUBLIC_KEY_FILE,
  RETAINED_FILE,
} from './checkpoint.js';
export { AuditDamaged, AuditLocked, AuditUnavailable } from './errors.js';
export { Fingerprints } from './fingerprint.js';
export type { RecordForm } from './form.js';
export {
  encodeFrame,
  encodeHeader,
  framesOf,
  keyName,
  leafHash,
  type SegmentHeader,
  segmentName,
} from './format.js';
export { Frontier } from './frontier.js';
export { causeOf } from './gap.js';
export type { AppendDone } from './group.js';
export type { AuditGap, AuditLog, AuditLogOptions, AuditObserver, AuditStats } from './interface.js';
export { openAuditLog } from './log.js';
export { type AuditProof, checkProof, type ProofVerdict, type ProveOptions, prove } from './proof.js';
export { readFrames, readRecords, recordIn, type StoredFrame } from './read.js';
export { type AuditReadEvent, noteReading } from './readings.js';
export type {
  AuditDecision,
  AuditEntry,
  AuditKind,
  AuditOutcome,
  AuditRecord,
  AuditSurface,
  CommonEntry,
} from './record.js';
export {
  beginningOf,
  type RecoverBase,
  type RecoveredLog,
  type RecoverOptions,
  recoverLog,
} from './recover.js';

export type { Retention, RetirementPlan } from './retention.js';
export {
  type AuditFilter,
  type AuditQuery,
  decisionIn,
  fingerprintsOf,
  matches,
  namesOf,
  undeclaredObject,
} from './search/filter.js';
export { type SearchStep, searchNewest } from './search/newest.js';
export { byTime, searchRecords } from './search/search.js';
export { keepSegmentKey } from './segments.js';
export type { Signer } from './signer.js';
export {
  directorySource,
  type KnownPlace,
  type LogIndex,
  type LogLeaf,
  type LogSource,
  type StoredRecord,
} from './source.js';
export type { LogStore, NoteStore, ReadingQueue, SegmentStore } from './store.js';
export type { LeafRange } from './tree.js';
export type { AuditVerdict } from './verdict.js';
export { type VerifyProgress, verifyAuditLog } from './verify.js';
