import { parentPort, workerData } from 'node:worker_threads';
import { verifyAuditLog } from '../../../audit/index.js';
import type { JobReply } from '../../base/threads/job.js';
import { yieldToOthers } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import { type ChainVerdict, type LogLocation, withChains } from './reader.js';

/** Entry point of the thread that verifies all chains of a log; started by `verifyJob`. */

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
const post = (reply: JobReply): void => port.postMessage(reply);
const REPORT_MS = 100;

yieldToOthers();
const { place } = workerData as { place: LogLocation }; // cast: set by `verifyJob`

try {
  const verdicts = await withChains(place, async (chains) => {
    const verdictsOfChains: ChainVerdict[] = [];
    for (const [i, { name, source }] of chains.entries()) {
      const progress = progressReporter(i + 1, chains.length);
      const verdict = await verifyAuditLog(source, { progress: progress });
      const key = await source.verifierKey();
      verdictsOfChains.push({ chain: name, verifier_key: key?.trim() ?? null, ...verdict });
    }
    return verdictsOfChains;
  });
  const ok = verdicts.every((v) => v.integrity === 'intact' && v.completeness === 'complete');
  post({ kind: 'done', result: { ok, chains: verdicts } });
} catch (error) {
  post({ kind: 'failed', reason: messageOf(error) });
}

function progressReporter(chain: number, chains: number) {
  let lastReport = Number.NEGATIVE_INFINITY;
  return (state: {
    readonly records: number;
    readonly segments: number;
    readonly allSegments: number;
  }): void => {
    const now = performance.now();
    if (now - lastReport < REPORT_MS && state.segments < state.allSegments) return;
    lastReport = now;
    const { records, segments, allSegments: all_segments } = state;
    post({ kind: 'progress', progress: { chain, chains, records, segments, all_segments } });
  };
}
