import type { JobState } from '../../base/threads/job.js';

/** Long work that who runs the server begins: one of each kind at a time, in all processes together. */
export const JOBS = ['verify', 'policy_tests'] as const;
export type JobName = (typeof JOBS)[number];

/** What does it. */
export interface Jobs {
  look(job: JobName): Promise<JobState>;
  /** Begins it, unless it runs already; gives how it stands then. @param by who begins it */
  begin(job: JobName, by: string): Promise<JobState>;
}
