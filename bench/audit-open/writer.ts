import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openAuditLog } from '../../audit/index.js';
import { storedIndex } from '../../audit/search/index-files.js';
import { segmentNumbers } from '../../audit/source.js';
import { TableStore } from '../../audit/table/index.js';
import { questionAbout } from '../support/audit-entry.js';

/**
 * Run by the bench: writes a given number of records with the real writer, reports completion, and waits to be killed.
 */
const [dir = '', text = '', url = null] = process.argv.slice(2);
const records = Number(text);
/** Number of concurrent callers; fills a commit group without exceeding its limit. */
const CALLERS = 8_000;
/** Generous deadline, because the database responds slowly under the load of the bench. */
const DEADLINE_MS = 60_000;

const common = questionAbout('osl.entities.account');

const store =
  url === null
    ? {}
    : {
        deadlineMs: DEADLINE_MS,
        store: (segmentBytes: number) =>
          new TableStore({ url: () => url, dir, segmentBytes, deadlineMs: DEADLINE_MS }),
      };
const log = await openAuditLog({ dir, tenant: 'bench', ...store });
// One decision without an outcome: the next start has to find it, however far back it is.
await log.append({ ...common, kind: 'decision', decision: 'allow', request_id: 'never-answered' });
const decision = log.form({ ...common, kind: 'decision', decision: 'allow' });
const outcome = log.form({ ...common, kind: 'outcome', outcome: 'ok' });
const statement = `1.${'x'.repeat(43)}`;
let asked = 0;
const caller = (done: () => void): void => {
  if (asked >= records) {
    done();
    return;
  }
  asked += 2;
  const id = randomUUID();
  log.appendForm(decision, id, statement, null, null, (error) => {
    if (error) throw error;
    log.appendForm(outcome, id, statement, 1, 250, (failure) => {
      if (failure) throw failure;
      caller(done);
    });
  });
};
await Promise.all(Array.from({ length: CALLERS }, () => new Promise<void>((resolve) => caller(resolve))));
while (log.stats().anchored < log.stats().records) await sleep(20);
// As on a server that has run for a while: all complete segments except the newest are sealed.
for (;;) {
  const complete = url === null ? (await segmentNumbers(dir)).slice(0, -1) : [];
  const newest = complete.at(-2);
  if (newest === undefined || (await storedIndex(dir, newest)) !== null) break;
  await sleep(100);
}
process.stdout.write(`${log.stats().records}\n`);
setInterval(() => undefined, 1_000);
