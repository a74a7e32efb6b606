import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { proveAtOnce } from '../../proof/lanes/thrice.js';
import { nativeOfRun, startTestService } from '../../support/service.js';
import { servePg } from '../../surfaces/pg/support.js';
import { query } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { lineageYaml } from './endpoint.js';
import { memberIn } from './openlineage-schema.js';
import { startReceiver } from './receiver.js';

/** A question of the fast lane is told as any other is. On the embedded engine nothing goes fast, and nothing is asked. */

const postgres = await nativeOfRun();
if (postgres === null) t.pass('no native Postgres for this run');
else {
  proveAtOnce();
  const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-fast-'));
  const receiver = await startReceiver();
  const lineageFile = join(dir, 'lineage.yaml');
  writeFileSync(lineageFile, `${lineageYaml(receiver.url)}window_seconds: 1\n`);
  const shop = await startTestService({ postgres, settings: { lineageFile } });
  const { port, frontend } = await servePg(t, shop);
  t.teardown(async () => {
    await receiver.close();
    await postgres.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  t.test('as many runs and rows are told as were answered, fast or not', { timeout: 120_000 }, async (t) => {
    const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
    t.teardown(() => client.end());
    const ask = () => client.ask(query('select name from customer where id < 3'));
    let asked = 0;
    for (; frontend.fastQuestions === 0; asked++) await ask();
    for (let i = 0; i < 100; i++, asked++) await ask();
    t.ok(frontend.fastQuestions > 50, `${frontend.fastQuestions} went fast`);
    const told = (): readonly { count: number; rows: number; outcomes: { ok?: number } }[] =>
      // One whose answer comes too late is sent again, under its id.
      [...new Map(receiver.received.map((r) => [r.headers['webhook-id'], r.body])).values()]
        .filter((body) => body.includes('RunEvent'))
        .map((body) => memberIn(JSON.parse(body), 'run', 'facets', 'osl_reads') as never); // as the schema says
    const sum = (what: 'count' | 'rows'): number => told().reduce((all, reads) => all + reads[what], 0);
    while (sum('count') < asked) await sleep(100);
    t.equal(sum('count'), asked);
    // A window that closes between a run and its outcome has neither its outcome nor its rows.
    const ended = told().reduce((all, { outcomes }) => all + (outcomes.ok ?? 0), 0);
    t.ok(ended > 50, `${ended} are told as ended`);
    t.equal(sum('rows'), 2 * ended);
  });
}
