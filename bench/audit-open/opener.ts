import { openAuditLog } from '../../audit/index.js';

/** Run by the bench: opens the log left by a killed writer and prints the time taken. */
const [dir = ''] = process.argv.slice(2);
const started = performance.now();
const log = await openAuditLog({ dir, tenant: 'bench' });
const seconds = (performance.now() - started) / 1_000;
const { records } = log.stats();
await log.close();
process.stdout.write(
  `${JSON.stringify({ seconds, records, mib: process.resourceUsage().maxRSS / 1_024 })}\n`,
);
