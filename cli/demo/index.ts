export { ensureDemo, loadDemo } from './load.js';
export { lockFingerprint } from './lock.js';
export { readSupplyChain } from './read.js';

export { DemoProblem } from './rows.js';
