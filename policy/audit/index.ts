/** The audit log: durable, chained, signed. The design is in `docs/decisions`, the bytes are in `format.ts`. */
export { AuditDamaged, AuditLocked, AuditUnavailable, type UnavailableReason } from './errors.js';
export type { RecordForm } from './form.js';
export { leafHash } from './format.js';
export { causeOf } from './gap.js';
export type { AppendDone } from './group.js';
export type { AuditGap, AuditLog, AuditLogOptions, AuditObserver, AuditStats } from './interface.js';
export { openAuditLog } from './log.js';
export { type AuditProof, checkProof, type ProofVerdict, prove } from './proof.js';
export { type ReadOptions, readFrames, readRecords, recordIn, type StoredFrame } from './read.js';
export { noteReading, type Reading } from './readings.js';
export type {
  AuditDecision,
  AuditEntry,
  AuditKind,
  AuditOutcome,
  AuditRecord,
  AuditSurface,
  AuditVersions,
  CommonEntry,
} from './record.js';

export type { AuditFilter } from './search/filter.js';
export { type SearchOptions, searchRecords } from './search/search.js';
export type { AuditProblem, AuditVerdict, ProblemKind } from './verdict.js';
export { type VerifyOptions, verifyAuditLog } from './verify.js';
