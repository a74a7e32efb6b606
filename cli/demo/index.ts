export { ensureDemo, loadDemo } from './load.js';
export { lockFingerprint } from './package.js';
export { readSupplyChain } from './read.js';

export { DemoProblem } from './tables.js';
