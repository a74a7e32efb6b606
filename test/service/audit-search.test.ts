import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { AuditReader, verifyJob } from '../../src/service/auditing/reader.js';
import { settingsFrom } from '../../src/service/settings.js';
import { sealedParts } from '../support/sealed-parts.js';
import { eventually, startRest } from '../surfaces/rest/fixture.js';

const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

t.test('a server gives records of its own log, the newest first, and records first who asked', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());
  const asked = [];
  for (let i = 0; i < 5; i += 1)
    asked.push(await rest.ask('user:ann', { osql: 'select id from osl.entities.customer' }));
  const settings = settingsFrom({}, '/', { dataDir: dirname(rest.test.auditDir) });
  const { tenant } = rest.test.service;
  const { audit } = sealedParts(rest.test.service);
  const reader = new AuditReader(settings, audit, LOG);
  t.teardown(() => reader.close());
  const asker = { requestId: 'r-1', tenant, subject: 'user:root', chain: ['user:root'] };
  const filter = { object: 'customer', kind: 'decision' } as const;
  const pages = [];
  let from: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof reader.search>> = await reader.search(asker, filter, {
      from,
      most: 2,
    });
    t.ok(page.records.length <= 2);
    pages.push(...page.records);
    from = page.next;
  } while (from !== null);
  t.strictSame(
    pages.map((r) => r.request_id),
    asked.map(({ requestId }) => requestId).reverse(),
    'each once, the newest first, over all pages',
  );
  t.ok(pages.every(({ subject }) => subject === 'user:ann'));
  const [reading] = await rest.test.records('r-1');
  t.match(reading, { action: 'audit.read', subject: 'user:root', detail: /"object":"customer"/ });
  const other = await reader.search({ ...asker, tenant: 'another' }, filter, { from: null, most: 2 });
  t.strictSame(other, { records: [], next: null }, 'records of another tenant are nobody else’s to read');
  await t.rejects(reader.search(asker, filter, { from: 'bm9uc2Vuc2U', most: 2 }), { code: 'E0511' });
  // A worker that was killed during its first start leaves such a directory.
  mkdirSync(join(rest.test.auditDir, 'worker-2'));
  const verification = verifyJob(settings, LOG);
  verification.begin('user:root');
  await eventually(() => verification.look().state !== 'running');
  const { state, result } = verification.look();
  t.match({ state, result }, { state: 'done', result: { chains: [{ chain: 'server' }] } });
  const { chains } = { ...result };
  t.ok(Array.isArray(chains) && chains.length === 1, 'an empty directory is no log to verify');
  const gone = settingsFrom({}, '/', { dataDir: join(dirname(rest.test.auditDir), 'gone') });
  const blind = new AuditReader(gone, audit, LOG);
  t.teardown(() => blind.close());
  await t.rejects(blind.search(asker, filter, { from: null, most: 2 }), { code: 'E5037' });
});
