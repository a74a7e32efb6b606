import type { ServiceLog } from '../../base/log.js';
import { Job } from '../../base/threads/job.js';
import type { Settings } from '../settings.js';
import { logPlace } from './place.js';

/** A log of some hundred million records. */
const DEADLINE_MS = 6 * 3_600_000;
const MEMORY_MB = 1_024;

/** Verifies the whole log of a server, all its chains. */
export function verifyJob(settings: Pick<Settings, 'dataDir' | 'audit'>, log: ServiceLog): Job {
  return new Job({
    name: 'verifying the audit log',
    file: new URL('./verify-thread.js', import.meta.url),
    data: () => ({ place: logPlace(settings) }),
    deadlineMs: DEADLINE_MS,
    memoryMb: MEMORY_MB,
    log,
  });
}
