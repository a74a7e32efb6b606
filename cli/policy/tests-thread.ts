import { parentPort, workerData } from 'node:worker_threads';
import { ready } from 'osl-compiler';
import type { JobReply } from '../../src/base/threads/job.js';
import { yieldToOthers } from '../../src/base/threads/thread.js';
import { messageOf } from '../../src/base/thrown.js';
import { loadModel } from '../../src/service/model.js';
import { claimReports } from '../policy-proof/claims.js';
import { loadPolicyTests } from '../policy-tests/document.js';
import { runPolicyTests } from '../policy-tests/run.js';

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
const say = (reply: JobReply): void => port.postMessage(reply);
const REPORT_MS = 100;

yieldToOthers();
const { file } = workerData as { file: string }; // set by the thread's owner

try {
  await ready();
  const tests = await loadPolicyTests(file);
  const { manifest, snapshot } = await loadModel(tests.manifestFile, tests.policyFile, null);
  const tested = { manifest: manifest.version, policy: snapshot?.version ?? null };
  const { ok, results, coverage } = await runPolicyTests(tests, true, reporter());
  const policy = snapshot === null ? null : { snapshot, catalog: manifest.catalog };
  const claims = policy === null || tests.claims.length === 0 ? [] : await claimReports(tests, policy);
  const isRefuted = claims.some(({ verdict }) => verdict === 'refuted');
  say({ kind: 'done', result: { ok: ok && !isRefuted, results, coverage, claims, tested } });
} catch (error) {
  say({ kind: 'failed', reason: messageOf(error) });
}

function reporter(): (tests: number, changes: number) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (tests, changes) => {
    const now = performance.now();
    if (now - last < REPORT_MS) return;
    last = now;
    say({ kind: 'progress', progress: { tests, changes } });
  };
}
