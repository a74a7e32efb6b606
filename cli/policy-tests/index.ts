export { loadPolicyTests } from './document.js';
export { type Coverage, type PolicyTestRun, runPolicyTests } from './run.js';
