import { TableStore } from '../../../audit/table/index.js';
import { appendForEver } from '../crash-load.js';

/** Run by crash.test.ts: as the crash-child of segment files, over the table that `url` names. */
const [dir = '', round = '', url = ''] = process.argv.slice(2);
await appendForEver(dir, round, {
  store: (segmentBytes) => new TableStore({ url: () => url, dir, segmentBytes, deadlineMs: 60_000 }),
});
