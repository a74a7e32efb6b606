/** Pre-aggregations: how their tables are built, and which of them questions may be answered from. */

export { type BuiltRollup, buildRollup, type RollupState, readStates } from './build.js';
export { RollupStanding } from './standing.js';
