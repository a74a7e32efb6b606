export { loadPolicyTests, type PolicyTests, UnclearTest } from './document.js';
export { type Coverage, type PolicyTestRun, runPolicyTests, type TestResult } from './run.js';
export { POLICY_TESTS_SCHEMA } from './schema.js';
export { UnfitRows } from './tables.js';
