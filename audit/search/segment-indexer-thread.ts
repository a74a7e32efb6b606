import { workerData } from 'node:worker_threads';
import { buildMissingIndexes } from './index-files.js';

/** Worker thread started by index-files.ts: builds missing segment indexes. */
const { dir } = workerData as { dir: string }; // set by index-files.ts
await buildMissingIndexes(dir);
