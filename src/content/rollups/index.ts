/** Rollups: builds their tables, and determines which of them queries may use. */

export { type BuiltRollup, buildRollup, type RollupState, readStates } from './build.js';
export { RollupMonitor } from './monitor.js';
