/** Drafts are read, compiled and judged in a thread of their own: see decision 47. */
export { createDrafting, type Drafting, type Served } from './drafting.js';
export type { Stepped } from './messages.js';
