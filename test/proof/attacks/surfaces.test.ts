import t, { type Test } from 'tap';
import {
  type Asker,
  SURFACES,
  type SurfaceName,
  startFrontends,
  WireClient,
} from '../../support/frontends.js';
import * as wire from '../../wire/support/bytes.js';
import { CLERK, leaksIn, openShop, policy } from './shop.js';

/** Attacks that are no texts, on each surface as far as it has them; what is the wire's alone is in `protocol.test.ts`. */
t.setTimeout(600_000);

const shop = await openShop();
const fronts = await startFrontends(shop.open);
t.teardown(async () => {
  await fronts.stop();
  await shop.close();
});

async function askerOf(t: Test, surface: SurfaceName): Promise<Asker> {
  const asker = await fronts.asker(surface, CLERK);
  t.teardown(() => asker.end());
  return asker;
}

async function stillGoverned(t: Test, asker: Asker): Promise<void> {
  const masked = await asker.ask('select ssn from customer where id = 1');
  t.match(masked.outcome, { kind: 'rows', rows: [['[redacted]']] }, 'the mask holds');
  t.strictSame(leaksIn(masked.raw), []);
  t.match((await asker.ask('select count(*) from customer')).outcome, { rows: [['3']] }, 'the filter holds');
}

/** What a session may ask to be set, and what it may not. */
const SETTINGS = [
  "set application_name = 'SECRET-APPLICATION'",
  "set timezone = 'Asia/Tokyo'",
  "set datestyle = 'German'",
  'set extra_float_digits = 0',
  "set bytea_output = 'escape'",
];

for (const surface of SURFACES) {
  t.test(`24. RESET, DISCARD, SET ROLE: ${surface}`, async (t) => {
    const asker = await askerOf(t, surface);
    for (const text of ['reset all', 'discard all', 'set role none', 'set role postgres']) {
      const { outcome } = await asker.ask(text);
      const answered = outcome.kind === 'rows' && outcome.rows.length === 0;
      t.ok(surface === 'REST' ? outcome.kind === 'refused' : answered || outcome.kind === 'refused', text);
      await stillGoverned(t, asker);
    }
    t.match((await asker.ask('set session authorization postgres')).outcome, { kind: 'refused' });
    await stillGoverned(t, asker);
  });

  t.test(`26. policy tightened between two questions: ${surface}`, async (t) => {
    t.teardown(() => shop.govern(policy()));
    const asker = await askerOf(t, surface);
    const text = 'select score from customer where id = 1';
    t.match((await asker.ask(text)).outcome, { kind: 'rows', rows: [['1.5']] });
    await shop.govern(policy('id, name, ssn, region'));
    fronts.takeAudit();
    t.match((await asker.ask(text)).outcome, { kind: 'refused', code: 'E0512' });
    t.match(fronts.takeAudit(), [{ kind: 'decision', decision: /^(?!allow)/, code: 'E0512' }]);
    await shop.govern(policy().replaceAll('ceiling: [clerk]', 'ceiling: []'));
    t.match((await asker.ask(text)).outcome, { kind: 'refused', code: 'E2102' }, 'a ceiling that fell');
    await shop.govern(policy());
    await stillGoverned(t, asker);
  });

  t.test(`30. cancelling what is not yours: ${surface}`, async (t) => {
    const asker = await askerOf(t, surface);
    const asking = (async () => {
      for (let i = 0; i < 50; i++) {
        const { outcome } = await asker.ask('select count(*) from customer');
        t.match(outcome, { kind: 'rows', rows: [['3']] });
      }
    })();
    for (let i = 0; i < 200; i++) {
      const other = await WireClient.open(fronts.pgPort);
      other.send(wire.cancelRequest(i, Buffer.from([0, 0, 0, i])));
      other.end();
    }
    await asking;
    await stillGoverned(t, asker);
  });

  t.test(`31. what a session leaves behind: ${surface}`, async (t) => {
    const before = await (await askerOf(t, surface)).ask('select joined::text from customer where id = 1');
    const other = await WireClient.login(fronts.pgPort, CLERK.subject, await fronts.token(CLERK));
    for (const text of SETTINGS) await other.simple(text);
    await other.exchange(wire.parse('mine', 'select 1'), wire.sync);
    await other.simple('begin');
    await other.simple('select id from customer');
    const after = await (await askerOf(t, surface)).ask('select joined::text from customer where id = 1');
    t.strictSame(after.outcome, before.outcome, 'settings of one are not seen by another');
    other.end();
    await stillGoverned(t, await askerOf(t, surface));
  });
}
