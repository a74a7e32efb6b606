import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type VerifiedSegment, verifySegment } from './verify-segment.js';

/** Message from segment-verifiers.ts to a worker thread: verify one segment. */
export interface VerifyRequest {
  readonly segment: number;
  readonly file: string;
}

export interface VerifyResponse {
  readonly segment: number;
  readonly verified: VerifiedSegment | null;
}

const { cuts } = workerData as { cuts: Float64Array }; // set by segment-verifiers.ts

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
