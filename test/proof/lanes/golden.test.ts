import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { startFrontends } from '../../support/frontends.js';
import { nativeOfRun, startTestService } from '../../support/service.js';
import { bind, close, describe, execute, flush, parse, sync } from '../../wire/support/bytes.js';
import { type Case, parseCases } from '../golden/cases.js';
import { SHOP_SQL } from '../golden/catalog.js';
import { CASES, caseFiles } from '../golden/files.js';
import { goldenCaller, goldenManifest, goldenPolicy } from './golden-world.js';
import { proveAtOnce, Tally, ThriceAsker } from './thrice.js';

/**
 * The golden cases over the wire, each asked slowly, until it makes a route, and by that route: the same bytes, the same
 * records. On the embedded engine nothing goes fast, and nothing is asked here.
 */

t.setTimeout(600_000);

const native = await nativeOfRun();
if (native === null) t.pass('no native Postgres for this run');
else {
  await native.stop();
  proveAtOnce();
  t.test('every golden case that can be asked over the wire is the same in both lanes', suite);
}

/** The messages with which clients ask, beside one Query. */
const SCRIPTS: Readonly<Record<string, (text: string) => readonly Buffer[]>> = {
  unnamed: (text) => [parse('', text), bind('', ''), describe('P'), execute(), sync],
  'described before it is bound': (text) => [parse('', text), describe('S'), bind('', ''), execute(), sync],
  'not described': (text) => [parse('', text), bind('', ''), execute(), sync],
  'in binary': (text) => [parse('', text), bind('', '', { results: [1] }), describe('P'), execute(), sync],
  'a portal of a name, closed': (text) => [
    parse('', text),
    bind('p', ''),
    describe('P', 'p'),
    execute('p'),
    close('P', 'p'),
    sync,
  ],
  'two rows at a time': (text) => [parse('', text), bind('', ''), execute('', 2), execute('', 2), sync],
  'twice, flushed between': (text) => [
    parse('', text),
    bind('', ''),
    execute(),
    flush,
    bind('', ''),
    execute(),
    sync,
  ],
};

const SCRIPTED = [
  'select id, name, email, born from customer order by id',
  'select region, measure(orders) from "order" group by region order by region',
  'select c.name, o.amount from customer c join "order" o on o.customer_id = c.id order by o.id',
];

/** A metrics body is not for the wire, and one service has one set of switches. */
function isAsked({ query, joins, off }: Case): boolean {
  return !query.startsWith('{') && joins === 'declared' && off.length === 0;
}

async function suite(t: Test): Promise<void> {
  const shop = await startTestService({
    manifest: goldenManifest(),
    policy: goldenPolicy(),
    script: `create schema shop; ${SHOP_SQL}`,
  });
  const fronts = await startFrontends(shop.open, { fast: true });
  const tally = new Tally();
  const askers = new Map<string, ThriceAsker>();
  t.teardown(async () => {
    for (const asker of askers.values()) asker.end();
    await fronts.stop();
    await shop.close();
  });
  for (const file of caseFiles()) {
    for (const golden of parseCases(readFileSync(new URL(file, CASES), 'utf8')).filter(isAsked)) {
      const { caller, query, values } = golden;
      const asker = askers.get(caller) ?? (await ThriceAsker.open(fronts, goldenCaller(caller), tally));
      askers.set(caller, asker);
      if (values.length === 0) await asker.simple(t, query);
      else
        await asker.prepared(t, query, { values: values.map((v) => (v === null ? null : Buffer.from(v))) });
    }
  }
  const asker = await ThriceAsker.open(fronts, goldenCaller('masked'), tally);
  askers.set('the scripts', asker);
  for (const text of SCRIPTED)
    for (const [how, script] of Object.entries(SCRIPTS))
      await asker.series(t, script(text), `${how}: ${text}`);
  await tally.compareRecords(t, shop.auditDir);
  const { asked, answered, fast } = tally;
  t.comment(`${asked} cases, ${answered} answered, ${fast} fast`);
  t.ok(answered > 400 && fast > 0.7 * answered, `${fast} of ${answered} answers went fast`);
}
