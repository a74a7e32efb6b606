import { parentPort, workerData } from 'node:worker_threads';
import { verifyAuditLog } from '../../../audit/index.js';
import type { JobReply } from '../../base/threads/job.js';
import { yieldToOthers } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import { type ChainVerdict, type LogPlace, withChains } from './reader.js';

/** Entry point of the thread that verifies all chains of a log; started by `verifyJob`. */

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
const say = (reply: JobReply): void => port.postMessage(reply);
const REPORT_MS = 100;

yieldToOthers();
const { place } = workerData as { place: LogPlace }; // cast: set by `verifyJob`

try {
  const verdicts = await withChains(place, async (chains) => {
    const all: ChainVerdict[] = [];
    for (const [i, { name, source }] of chains.entries()) {
      const heard = reporter(i + 1, chains.length);
      const verdict = await verifyAuditLog(source, { progress: heard });
      const key = await source.verifierKey();
      all.push({ chain: name, verifier_key: key?.trim() ?? null, ...verdict });
    }
    return all;
  });
  const ok = verdicts.every((v) => v.integrity === 'intact' && v.completeness === 'complete');
  say({ kind: 'done', result: { ok, chains: verdicts } });
} catch (error) {
  say({ kind: 'failed', reason: messageOf(error) });
}

function reporter(chain: number, chains: number) {
  let last = Number.NEGATIVE_INFINITY;
  return (at: {
    readonly records: number;
    readonly segments: number;
    readonly allSegments: number;
  }): void => {
    const now = performance.now();
    if (now - last < REPORT_MS && at.segments < at.allSegments) return;
    last = now;
    const { records, segments, allSegments: all_segments } = at;
    say({ kind: 'progress', progress: { chain, chains, records, segments, all_segments } });
  };
}
