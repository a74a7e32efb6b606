import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { startAuditTable } from '../../support/audit-table.js';
import { NO_NATIVE } from '../../support/native-postgres.js';
import { onPostgres } from '../../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY, SHOP_SCRIPT } from '../../support/shop.js';
import { eventually } from '../../surfaces/rest/fixture.js';
import { osl, Server, temporary } from '../../tools/cli/support.js';

/** A server whose log is in a Postgres, by the settings and commands that its operator has. */

t.setTimeout(600_000); // it starts four servers, and machines differ

const table = await startAuditTable();
if (table === null) {
  t.plan(0, NO_NATIVE);
  process.exit();
}
t.teardown(() => table.stop());
await table.owner(SHOP_SCRIPT);
await table.owner(
  'GRANT USAGE ON SCHEMA shop TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO osl_reader',
);

const place = temporary();
mkdirSync(join(place, 'data'));
writeFileSync(join(place, 'manifest.yaml'), onPostgres(SHOP_MANIFEST, 'SHOP_URL'));
writeFileSync(join(place, 'policy.yaml'), SHOP_POLICY);
writeFileSync(join(place, 'audit.url'), `${table.gatewayUrl}\n`);
const dataDir = join(place, 'data');
const common = {
  OSL_MANIFEST: join(place, 'manifest.yaml'),
  OSL_POLICY: join(place, 'policy.yaml'),
  OSL_AUDIT_SINK: 'postgres',
  SHOP_URL: table.postgres.readerUrl,
};
const serving = { ...common, OSL_AUDIT_URL_FILE: join(place, 'audit.url') };
const auditor = { ...common, OSL_AUDIT_URL: table.readerUrl };

async function started(): Promise<Server> {
  const server = new Server(['serve'], dataDir, serving);
  await server.said('Ctrl-C stops');
  return server;
}

const audit = (...args: readonly string[]) => osl(['audit', ...args], { env: auditor });
const ask = (server: Server, text: string) =>
  osl(
    [
      'query',
      '--server',
      `http://127.0.0.1:${server.record()['httpPort']}`,
      '--data-dir',
      dataDir,
      '--subject',
      'user:ann',
      text,
    ],
    {
      env: serving,
    },
  );
const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditRecord);

t.test('questions are recorded there, found, proved and verified; kill -9 loses nothing', async (t) => {
  const first = await started();
  t.match(await ask(first, 'select id from osl.entities.order'), { code: 0 });
  const found = await audit('search', '--object', 'order', '--json');
  t.equal(found.code, 0, found.stderr);
  const [decision, outcome] = lines(found.stdout);
  t.match(decision, { kind: 'decision', subject: 'user:ann', decision: 'allow' });
  t.match(outcome, { kind: 'outcome', outcome: 'ok', request_id: decision?.request_id });
  await first.signal('SIGKILL');
  const second = await started();
  t.match(await ask(second, 'select id from osl.entities.customer'), { code: 0 });
  t.match(await audit('verify'), { code: 0, stdout: /the chain holds: \d+ records in osl_audit, writer / });
  const proof = await audit('prove', decision?.request_id ?? '');
  t.equal(proof.code, 0, proof.stderr);
  const file = join(place, 'proof.txt');
  writeFileSync(file, proof.stdout);
  const key = join(dataDir, 'audit', 'checkpoint.vkey');
  t.match(await osl(['audit', 'check', file, '--key', key]), { code: 0, stdout: /\(decision of / });
  t.match((await audit('tail', '-n', '3')).stdout, /user:ann/);
  t.match((await audit('export', '--format', 'ocsf', '--object', 'order')).stdout, /"class_uid":6005/);
  t.match(await ask(second, 'select id from pg_authid'), { code: 1 });
  const named = await audit('search', '--data-dir', dataDir, '--name', 'pg_authid');
  t.match(named, { code: 0, stdout: /user:ann .*undeclared:pg_authid/ }, "by the gateway's keys");
  t.match(await audit('search', '--data-dir', place, '--name', 'pg_authid'), {
    code: 1,
    stdout: '',
    stderr: /by the keys of its fingerprints \(segment-N\.key\), and none is there/,
  });
  await eventually(async () =>
    (await audit('search', '--action', 'audit.read')).stdout.includes('audit.read'),
  );
  t.equal((await second.signal('SIGTERM')).code, 0);
  t.notOk(readFileSync(key, 'utf8') === '');
});

t.test('without what goes with the table a start says what is missing', async (t) => {
  const served = (env: Readonly<Record<string, string>>) =>
    osl(['serve', '--data-dir', temporary()], {
      env: { ...common, OSL_HTTP_PORT: '0', OSL_PG_PORT: '0', ...env },
    });
  t.match(await served({}), { code: 2, stderr: /OSL_AUDIT_SINK=postgres needs OSL_AUDIT_URL/ });
  t.match(await served({ OSL_AUDIT_SINK: 'kafka' }), { code: 2, stderr: /must be files or postgres/ });
  t.match(await served({ OSL_AUDIT_URL: table.gatewayUrl, OSL_LINEAGE: 'x.yaml' }), {
    code: 2,
    stderr: /OSL_LINEAGE/,
  });
  t.match(await served({ OSL_AUDIT_URL: table.gatewayUrl, OSL_AUDIT_SYNC: 'kernel' }), {
    code: 2,
    stderr: /OSL_AUDIT_SYNC=kernel is for segment files/,
  });
  t.match(await served({ OSL_AUDIT_SINK: 'files', OSL_AUDIT_SYNC: 'kernel', OSL_LINEAGE: 'x.yaml' }), {
    code: 2,
    stderr: /it cannot be used with OSL_AUDIT_SYNC=kernel/,
  });
  t.match(await osl(['audit', 'table', '--gateway', 'g"w']), {
    code: 0,
    stdout: /GRANT USAGE ON SCHEMA osl_audit TO "g""w";/,
  });
});
