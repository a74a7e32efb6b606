/** The audit log of a server, read by the server itself for who may: in threads, one thing at a time. */
export { AuditReader, verifyJob } from './reader.js';
