/** Search and verification of the audit log, in threads. */
export { AuditReader, verifyJob } from './reader.js';
