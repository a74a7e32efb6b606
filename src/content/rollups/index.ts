/** Builds the tables of rollups and tracks which rollups queries may use. */

export { type BuiltRollup, buildRollup, type RollupState, readStates } from './build.js';
export { RollupMonitor } from './monitor.js';
