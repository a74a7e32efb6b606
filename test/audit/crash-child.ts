import { openAuditLog } from '../../audit/index.js';
import { appendForEver } from './crash-load.js';

/** Run by crash.test.ts. With `idle` it opens the log, says so, and does nothing (lock.test.ts). */
const [dir = '', round = '', sync] = process.argv.slice(2);
if (round === 'idle') {
  await openAuditLog({ dir, segmentBytes: 64 * 1024 });
  process.send?.('open');
  setInterval(() => undefined, 1_000);
} else {
  await appendForEver(dir, round, { sync: sync === 'kernel' ? 'kernel' : 'disk' });
}
