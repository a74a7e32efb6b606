import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ServiceLog } from '../../src/base/log.js';
import { ThreadJob } from '../../src/base/threads/job.js';

/** Beside the policy, under the name that `osl policy test` looks for. */
const TESTS_FILE = 'policy.test.yaml';
/** Each rule of the policy is changed alone, and all tests run again. */
const DEADLINE_MS = 10 * 60_000;
const MEMORY_MB = 1_024;

/** Runs the tests that lie beside the policy file of a server, in a thread with an embedded database of its own. */
export function policyTestsJob(policyFile: string, log: ServiceLog): ThreadJob {
  const file = join(dirname(policyFile), TESTS_FILE);
  return new ThreadJob({
    name: 'the tests of the policy',
    file: new URL('./job-thread.js', import.meta.url),
    data: () => (existsSync(file) ? { file } : `there is no ${TESTS_FILE} beside the policy that is served`),
    deadlineMs: DEADLINE_MS,
    memoryMb: MEMORY_MB,
    log,
  });
}
