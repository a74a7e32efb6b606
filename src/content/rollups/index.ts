/** Pre-aggregations: how their tables are built, and which of them questions may be answered from. */

export { type BuiltRollup, buildRollup } from './build.js';
export { RollupStanding } from './standing.js';
export { type RollupState, readStates } from './state.js';
