import { workerData } from 'node:worker_threads';
import { buildMissingIndexes } from './index-files.js';

/** Worker thread started by segment-indexer.ts. */
const { dir } = workerData as { dir: string }; // set by segment-indexer.ts
await buildMissingIndexes(dir);
