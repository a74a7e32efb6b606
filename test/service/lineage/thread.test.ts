import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ready } from 'osl-compiler';
import t from 'tap';
import { openAuditLog } from '../../../audit/index.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { openLineage } from '../../../src/service/lineage/lineage.js';
import { endOf } from '../../../src/service/lineage/outbox/state.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { endpointAt } from './endpoint.js';
import { startReceiver } from './receiver.js';

t.setTimeout(600_000);
await ready();

const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-thread-'));
const receiver = await startReceiver();
const audit = await openAuditLog({ dir: join(dir, 'audit'), tenant: 'shop' });
t.teardown(async () => {
  await audit.close();
  await receiver.close();
  rmSync(dir, { recursive: true, force: true });
});

const errors: string[] = [];
const quiet = (): void => undefined;
const options = {
  config: {
    namespace: null,
    windowMs: 1_000,
    outboxBytes: 1e6,
    connectors: new Map([['db', { namespace: 'postgres://shop.example:5432', database: 'shop' }]]),
    endpoints: [endpointAt(receiver.url)],
  },
  tenant: 'shop',
  version: '0',
  auditDir: join(dir, 'audit'),
  dir: join(dir, 'lineage'),
  end: endOf(audit),
  audit,
  announcesDatasets: true,
  log: { info: quiet, warn: quiet, error: (message: string) => errors.push(message) },
  urlOf: () => null,
  pollMs: 20,
};

t.test('a thread that ends by itself is started again, and goes on', async (t) => {
  const lineage = await openLineage(options);
  t.teardown(() => lineage.close(3_000));
  // Where requests are looked for there is something else: no thread can work so.
  const requests = join(dir, 'lineage', 'requests');
  writeFileSync(requests, '');
  while (!errors.includes('the lineage thread ended and is started again')) await sleep(20);
  rmSync(requests);
  mkdirSync(requests);
  let served = parseManifest(SHOP_MANIFEST, 'shop.yaml');
  lineage.follow(() => served);
  await receiver.until(7);
  t.match(
    receiver.received.map((r) => r.body).join(),
    /"namespace":"postgres:\/\/shop\.example:5432","name":"shop\.shop\.customers"/,
  );
  served = parseManifest(SHOP_MANIFEST.replace('sum(amount)', 'sum(quantity)'), 'shop.yaml');
  await receiver.until(8);
  t.match(receiver.received.at(-1)?.body, /osl\.metrics\.revenue/, 'whatever comes to serve is announced');
  while ((lineage.stats()?.restarts ?? 0) < 1) await sleep(20);
});

t.test('an outbox that cannot be opened stops the start', async (t) => {
  const other = join(dir, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'lineage'), 'a file where a folder should be');
  await t.rejects(openLineage({ ...options, dir: join(other, 'lineage') }), {
    name: 'StartProblem',
    message: /lineage cannot be emitted/,
  });
});
