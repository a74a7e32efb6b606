import { test } from 'tap';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { startTestService } from '../../support/service.js';
import { query } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { ENDLESS } from './fuzz/traces.js';

const STOPPED = ['E FATAL 57P01 terminating connection due to administrator command', 'closed'];
/** Time enough to hear of it, also on a machine that stands still for a while. */
const DEADLINE_MS = 5_000;

test('a gateway that stops lets statements end, and tells everybody why', async (t) => {
  const shop = await startTestService();
  t.teardown(() => shop.close());
  const frontend = createPgFrontend(shop.service, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  const connect = async (): Promise<Client> => Client.login(port, 'user:ann', await shop.token('user:ann'));
  const idle = await connect();
  const inBlock = await connect();
  await inBlock.ask(query('begin'));
  await inBlock.ask(query('declare c cursor for select id from customer order by id'));
  t.same(await inBlock.ask(query('fetch 1 from c')), ['T id:23:text', 'D 1', 'C FETCH 1', 'Z T']);
  const running = await connect();
  running.send(query(ENDLESS));
  while ((await shop.records()).filter((r) => r.action === 'query' && r.kind === 'decision').length < 2)
    await new Promise((resolve) => setTimeout(resolve, 5));

  let over = false;
  const last = running.rest().finally(() => {
    over = true;
  });
  const stopped = frontend.stop(DEADLINE_MS);
  t.same(await idle.rest(), STOPPED, 'an idle session at once');
  t.same(await inBlock.rest(), STOPPED, 'one in a block at once');
  t.equal(over, false, 'before the deadline');
  t.same((await last).slice(-2), STOPPED, 'a statement that goes on is ended at the deadline');
  await stopped;
  t.equal(frontend.connections, 0);
  const outcomes = (await shop.records()).filter((r) => r.kind === 'outcome' && r.action === 'query');
  t.equal(outcomes.at(-1)?.kind === 'outcome' && outcomes.at(-1)?.outcome, 'cancelled', 'which is on record');
  t.match(await shop.verdict(), { integrity: 'intact', completeness: 'complete' });
});
