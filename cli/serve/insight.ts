import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Insight, JobName, Jobs } from '../../src/ask/operating/insight.js';
import type { ServiceLog } from '../../src/base/log.js';
import { ThreadJob } from '../../src/base/threads/job.js';
import { verifyJob } from '../../src/service/auditing/index.js';
import { insightOf } from '../../src/service/insight.js';
import type { OpenService } from '../../src/service/open.js';
import type { Settings } from '../../src/service/settings.js';
import { type MetricsJson, totalsOf } from '../../src/surfaces/http/telemetry.js';

/** Name that `osl policy test` looks for, beside the policy. */
const TESTS_FILE = 'policy.test.yaml';
/** Tests run once per changed rule. */
const DEADLINE_MS = 10 * 60_000;
const MEMORY_MB = 1_024;

function policyTestsJob(policyFile: string, log: ServiceLog): ThreadJob {
  const file = join(dirname(policyFile), TESTS_FILE);
  return new ThreadJob({
    name: 'the tests of the policy',
    file: new URL('../policy-tests/job-thread.js', import.meta.url),
    data: () => (existsSync(file) ? { file } : `there is no ${TESTS_FILE} beside the policy that is served`),
    deadlineMs: DEADLINE_MS,
    memoryMb: MEMORY_MB,
    log,
  });
}

/** Audit, jobs, freshness and metrics for operators. `common`: shared by several processes. */
export function serverInsight(
  { service, means }: Pick<OpenService, 'service' | 'means'>,
  settings: Settings,
  common: { readonly jobs: Jobs; gather(): Promise<readonly MetricsJson[]> } | undefined,
  figures: () => Promise<MetricsJson>,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Insight {
  const { reading, freshness, close } = insightOf(service, means, settings);
  closing.push(close);
  let jobs = common?.jobs;
  if (jobs === undefined) {
    const own = ownJobs(settings, service.log);
    closing.push(() => own.close());
    jobs = own;
  }
  const gather = common === undefined ? async () => [await figures()] : () => common.gather();
  return Object.freeze({ reading, jobs, freshness, metrics: async () => totalsOf(await gather()) });
}

export interface OwnJobs extends Jobs {
  close(): Promise<void>;
}

export function ownJobs(settings: Settings, log: ServiceLog): OwnJobs {
  const jobs = { verify: verifyJob(settings, log), policy_tests: policyTestsJob(settings.policyFile, log) };
  return Object.freeze({
    look: async (job: JobName) => jobs[job].look(),
    begin: async (job: JobName, by: string) => jobs[job].begin(by),
    close: async () => {
      await Promise.all(Object.values(jobs).map((job) => job.close()));
    },
  });
}
