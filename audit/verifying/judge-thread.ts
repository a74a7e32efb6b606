import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { judgeSegment, type VerifiedSegment } from './judge.js';

/** Run by judges.ts: judges the segments whose files it is sent, in turn. */
export interface JudgeAsked {
  readonly segment: number;
  readonly file: string;
}

export interface JudgeAnswer {
  readonly segment: number;
  readonly judged: VerifiedSegment | null;
}

const { cuts } = workerData as { cuts: Float64Array }; // what judges.ts gives

parentPort?.on('message', ({ segment, file }: JudgeAsked) => {
  parentPort?.postMessage({ segment, judged: judged(file) } satisfies JudgeAnswer);
});

function judged(file: string): VerifiedSegment | null {
  try {
    return judgeSegment(readFileSync(file), cuts);
  } catch {
    return null; // whoever reads it next says why
  }
}
