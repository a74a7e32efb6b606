/** Drafts are read, compiled and judged in a thread of their own: see decision 47. */
export { createDrafting, type DraftBaseline, type DraftCompiler } from './drafting.js';
export type { StepResult } from './messages.js';
