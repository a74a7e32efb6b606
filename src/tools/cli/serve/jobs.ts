import type { ServiceLog } from '../../../base/log.js';
import type { JobName, Jobs } from '../../../operating/jobs.js';
import { verifyJob } from '../../../service/auditing/index.js';
import type { Settings } from '../../../service/settings.js';
import { policyTestsJob } from '../../policy-tests/job.js';

/** The jobs of a server, in the process that does them: the only one, or the supervisor. */
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
