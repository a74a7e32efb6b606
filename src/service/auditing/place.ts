import { readdirSync } from 'node:fs';
import { aloneIn, endedChains, workerChains } from '../seat.js';
import { sinkUrl } from '../settings/audit.js';
import type { Settings } from '../settings.js';
import type { LogPlace } from './messages.js';

/** Where the log of a server stands now: a table, or the directory's own chain and those of workers below it. */
export function logPlace({ dataDir, audit: { sink } }: Pick<Settings, 'dataDir' | 'audit'>): LogPlace {
  const url = sinkUrl(sink);
  const { auditDir } = aloneIn(dataDir);
  const workers = workerChains(auditDir).map(({ number, dir }) => ({ name: `worker-${number}`, dir }));
  // A worker that was killed as it first began has a directory with nothing in it.
  const begun = workers.filter(({ dir }) => readdirSync(dir).length > 0);
  const restored = endedChains(auditDir).map((dir) => ({ name: dir.slice(auditDir.length + 1), dir }));
  const chains = [{ name: 'server', dir: auditDir }, ...begun, ...restored];
  return url === null
    ? { kind: 'files', chains }
    : { kind: 'table', url: url(), keys: chains.map(({ dir }) => dir) };
}
