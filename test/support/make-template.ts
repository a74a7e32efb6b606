import { ensureTemplate } from './embedded-data.js';

// What `run.ts` starts before the tests.
await ensureTemplate();
