/** Those who keep checkpoints of the audit log beside it. */
export { objectStoreWitness } from './object-store.js';
export { witnessAt } from './places.js';
export { signedHeaders } from './sigv4.js';
export { WITNESS_SCHEMA, witnessGrants } from './table.js';
export { Witnesses, witnessed } from './witness.js';
