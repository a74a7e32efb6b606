/** Compiles and checks drafts in a separate thread: see decision 47. */

export type { StepResult } from './drafting.js';
export { createDrafting, type DraftBaseline, type DraftCompiler } from './drafting.js';
