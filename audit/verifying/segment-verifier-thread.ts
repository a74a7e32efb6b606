import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import {
  type VerifiedSegment,
  type VerifyRequest,
  type VerifyResponse,
  verifySegment,
} from './verify-segment.js';

const { cuts } = workerData as { cuts: Float64Array }; // set by verify-segment.ts

parentPort?.on('message', ({ segment, file }: VerifyRequest) => {
  parentPort?.postMessage({ segment, verified: verified(file) } satisfies VerifyResponse);
});

function verified(file: string): VerifiedSegment | null {
  try {
    return verifySegment(readFileSync(file), cuts);
  } catch {
    return null; // the sequential pass reports the reason
  }
}
