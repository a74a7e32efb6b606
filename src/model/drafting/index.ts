/** Compiling and checking of drafts in a separate thread: see decision 47. */
export { createDrafting, type DraftBaseline, type DraftCompiler } from './drafting.js';
export type { StepResult } from './messages.js';
