/** External witnesses that store checkpoints of the audit log. */
export { objectStoreWitness, signedHeaders, WITNESS_SCHEMA, witnessAt, witnessGrants } from './places.js';
export { parseCheckpointNote, type Witness, Witnesses } from './witness.js';
