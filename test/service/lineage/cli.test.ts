import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openAuditLog } from '../../../audit/index.js';
import { writeServerFile } from '../../../cli/server-file.js';
import { Emitter, type EmitterSettings } from '../../../src/service/lineage/emitter.js';
import { Outbox } from '../../../src/service/lineage/outbox/outbox.js';
import { endOf, journalIn } from '../../../src/service/lineage/outbox/state.js';
import { osl, ROOT } from '../../tools/cli/support.js';
import { endpointAt } from './endpoint.js';
import { memberIn } from './openlineage-schema.js';
import { startReceiver } from './receiver.js';
import { shiftedClock } from './shifted-clock.js';

t.setTimeout(600_000);

const dataDir = mkdtempSync(join(tmpdir(), 'osl-lineage-cli-'));
const dir = join(dataDir, 'lineage');
const receiver = await startReceiver();
t.teardown(async () => {
  await receiver.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const endpoints = [endpointAt(receiver.url, 'catalog'), endpointAt(receiver.url, 'archive')];

/** An outbox as a server left it: one event delivered to nobody, one that waits, one given up. */
const audit = await openAuditLog({ dir: join(dataDir, 'audit'), tenant: 'x' });
const start = endOf(audit);
const warn = (): void => undefined;
const outbox = await Outbox.open(
  { file: journalIn(dir), endpoints, maxBytes: 1e6, now: Date.now, warn },
  start,
);
const event = (id: string) => ({ id, kind: 'run', body: JSON.stringify({ it: id }) }) as const;
await outbox.add([event('run_a'), event('run_b')], []);
await outbox.failed('run_a', 'catalog', 7, null, 'status 500');
await outbox.failed('run_b', 'catalog', 2, Date.now() + 3_600_000, 'ECONNREFUSED');
await outbox.delivered('run_a', 'archive');
await outbox.delivered('run_b', 'archive');
await outbox.close();

const flags = ['--data-dir', dataDir];

t.test('pending and dead list what there is', async (t) => {
  const pending = await osl(['lineage', 'pending', ...flags]);
  t.match(pending, { code: 0, stdout: /run_b {2}catalog {2}2 attempts {2}next .* {2}ECONNREFUSED\n$/ });
  t.notMatch(pending.stdout, /run_a/);
  const dead = await osl(['lineage', 'dead', '--json', ...flags]);
  t.equal(dead.code, 0);
  t.match(JSON.parse(dead.stdout), [
    {
      id: 'run_a',
      kind: 'run',
      endpoint: 'catalog',
      attempts: 7,
      next: null,
      reason: 'status 500',
      event: { it: 'run_a' },
    },
  ]);
  t.match(await osl(['lineage', 'dead', '--endpoint', 'archive', ...flags]), {
    code: 0,
    stdout: 'there are no dead letters\n',
  });
});

t.test('replay asks for what there is, and for nothing else', async (t) => {
  t.match(await osl(['lineage', 'replay', 'run_b', ...flags]), {
    code: 1,
    stderr: /no dead letter has the id run_b/,
  });
  t.match(await osl(['lineage', 'replay', ...flags]), { code: 2, stderr: /name one event, or say --all/ });
  t.match(await osl(['lineage', 'replay', 'run_a', '--all', ...flags]), { code: 2 });
  t.match(await osl(['lineage', 'replay', '--all', '--endpoint', 'archive', ...flags]), {
    code: 0,
    stdout: '0 dead letters to be sent again\n',
  });
  // A server that was killed leaves its record behind.
  const own = writeServerFile(dataDir, {
    host: '127.0.0.1',
    httpPort: 1,
    pgPort: 1,
    tls: false,
    httpCertFile: '',
    localTokens: true,
    issuer: 'service',
    audience: '',
    manifestFile: 'manifest.yaml',
    policyFile: 'policy.yaml',
    demo: false,
    version: '0',
    startedAt: '2026-01-01T00:00:00Z',
  });
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ ...own, pid: 4_194_305, ticks: 1 }));
  t.match(await osl(['lineage', 'replay', 'run_a', ...flags]), {
    code: 0,
    stdout: '1 dead letter to be sent again once a server runs here\n',
  });
  t.equal(receiver.received.length, 0);
});

t.test('the next process sends it, under its id', async (t) => {
  const settings: EmitterSettings = {
    auditDir: join(dataDir, 'audit'),
    dir,
    start,
    identity: { producer: 'urn:test', namespace: 'x://x' },
    agent: 'test',
    windowMs: 60_000,
    outboxBytes: 1e6,
    endpoints,
    pollMs: 10,
  };
  const emitter = await Emitter.open(settings, shiftedClock(), warn);
  emitter.start();
  await receiver.until(1);
  const noted = (): boolean => Object.values(emitter.stats().endpoints).some((e) => e.delivered === 1);
  while (!noted()) await sleep(5);
  await sleep(100);
  await emitter.close();
  await audit.close();
  t.equal(receiver.received.length, 1, 'what waits for its time still does');
  t.equal(receiver.received[0]?.headers['webhook-id'], 'run_a');
  t.match(await osl(['lineage', 'dead', ...flags]), { code: 0, stdout: 'there are no dead letters\n' });
});

t.test('show says where an answer comes from', async (t) => {
  const example = join(ROOT, 'examples', 'supply-chain');
  const files = ['--manifest', join(example, 'manifest.yaml'), '--policy', join(example, 'policy.yaml')];
  const ask = (...words: readonly string[]) => osl(['lineage', 'show', ...files, ...words]);
  const counsel = await ask(
    '--subject',
    'user:counsel',
    'select name from osl.entities.package order by version',
  );
  t.equal(counsel.code, 0);
  t.equal(
    counsel.stdout,
    [
      'name',
      '  osl.entities.package.name  IDENTITY',
      '(which rows, and their order)',
      '  osl.entities.package.license_class  FILTER, by policy',
      '  osl.entities.package.version  SORT',
      '',
    ].join('\n'),
  );
  const json = await ask(
    '--chain',
    'user:counsel,agent:scout',
    '--json',
    '--sql',
    'select name from supply.package',
  );
  t.match(memberIn(JSON.parse(json.stdout), 'fields', 'name', 'inputFields', '0'), {
    namespace: 'osl-gateway://demo',
    name: 'osl.entities.package',
    field: 'name',
  });
  t.match(await ask('--subject', 'user:analyst', 'select nothing from osl.entities.package'), {
    code: 1,
    stderr: /E0512/,
  });
  t.match(await ask('--subject', 'user:nobody', 'select 1'), {
    code: 2,
    stderr: /`user:nobody` is not in the policy/,
  });
  t.match(await ask('select 1'), { code: 2, stderr: /--subject/ });
});
