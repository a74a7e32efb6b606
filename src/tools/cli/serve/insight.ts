import type { Insight } from '../../../operating/insight.js';
import type { Jobs } from '../../../operating/jobs.js';
import { insightOf } from '../../../service/insight.js';
import type { Service } from '../../../service/service.js';
import type { Settings } from '../../../service/settings.js';
import { type Figures, totalsOf } from '../../../surfaces/http/telemetry.js';
import { ownJobs } from './jobs.js';

/** What a server knows of itself for who runs it; jobs are this process' own where no other does them. */
export function serverInsight(
  service: Service,
  settings: Settings,
  common: { readonly jobs: Jobs; gather(): Promise<readonly Figures[]> } | undefined,
  figures: () => Promise<Figures>,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Insight {
  const { reading, freshness, close } = insightOf(service, settings);
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
