import type { JobState } from '../../base/threads/job.js';
import type { RequestCall } from '../index.js';
import type { JobName } from './jobs.js';
import { type InsightParts, look } from './look.js';

const ACTIONS: Readonly<Record<JobName, string>> = {
  verify: 'admin_audit_verify',
  policy_tests: 'admin_policy_tests',
};

/** How a job stands. @throws QueryError E2101, and as `respond` */
export function lookAtJob(parts: InsightParts, call: RequestCall, job: JobName): Promise<JobState> {
  return look(parts, call, 'admin_show', () => parts.insight.jobs.look(job));
}

/** Begins a job that does not run yet; of one that runs, how it stands. Throws as `lookAtJob`. */
export function beginJob(parts: InsightParts, call: RequestCall, job: JobName): Promise<JobState> {
  return look(parts, call, ACTIONS[job], ({ identity }) => parts.insight.jobs.begin(job, identity.subject));
}
