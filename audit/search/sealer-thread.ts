import { workerData } from 'node:worker_threads';
import { sealMissing } from './seals.js';

/** Run by sealer.ts: makes the seals of a directory that are missing at its end, and ends. */
const { dir } = workerData as { dir: string }; // what sealer.ts gives
await sealMissing(dir);
