/** Rollups: building their tables, and choosing those that queries may use. */

export { type BuiltRollup, buildRollup, type RollupState, readStates } from './build.js';
export { RollupMonitor } from './monitor.js';
