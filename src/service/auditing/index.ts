/** The audit log of a server, read by the server itself for who may: in threads, one thing at a time. */
export { verifyJob } from './jobs.js';

export { AuditReader } from './reader.js';
