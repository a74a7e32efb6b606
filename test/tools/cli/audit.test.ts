import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { eventually, startRest } from '../../surfaces/rest/fixture.js';
import { osl } from './support.js';

/** Who saw what, asked of the log of a server that runs. */

const rest = await startRest();
t.teardown(() => rest.close());
const { auditDir } = rest.test;
const at = ['--data-dir', dirname(auditDir)];
await rest.ask('user:ann', { osql: 'select id from osl.entities.customer' });
await rest.ask('user:ann', { osql: 'select id from osl.entities.order limit 1' });
const refused = await rest.ask('user:den', { osql: 'select nothing from osl.entities.customer' });

function recordsIn(text: string): readonly AuditRecord[] {
  return text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditRecord);
}

t.test('who touched X, and what did S do', async (t) => {
  const touched = await osl(['audit', 'search', ...at, '--object', 'customer', '--json']);
  t.equal(touched.code, 0, touched.stderr);
  t.ok(recordsIn(touched.stdout).every(({ objects }) => objects.includes('osl.entities.customer')));
  t.same([...new Set(recordsIn(touched.stdout).map(({ subject }) => subject))].sort(), [
    'user:ann',
    'user:den',
  ]);
  const did = recordsIn((await osl(['audit', 'search', ...at, '--subject', 'user:ann', '--json'])).stdout);
  t.equal(did.filter(({ kind }) => kind === 'decision').length, 2);
  const failed = await osl(['audit', 'search', ...at, '--decision', 'error', '--since', '1h']);
  t.match(failed.stdout, new RegExp(`error .*user:den .*customer .*${refused.requestId}`));
  t.equal((await osl(['audit', 'search', ...at, '--until', '2020-01-01'])).stdout, '');
  t.equal(recordsIn((await osl(['audit', 'search', ...at, '--limit', '2', '--json'])).stdout).length, 2);
});

t.test('who asked for a name that is declared nowhere', async (t) => {
  const asked = [
    await rest.ask('user:den', { osql: 'select rolpassword from pg_authid' }),
    await rest.ask('user:den', { sql: 'select rolpassword from pg_catalog.pg_authid' }),
    await rest.ask('user:ann', { osql: "select pg_read_file('/etc/passwd') from customer" }),
  ].map(({ requestId }) => requestId);
  const found = async (name: string, ...more: string[]) =>
    osl(['audit', 'search', ...at, '--name', name, ...more]);
  const table = await found('pg_authid', '--json');
  t.equal(table.code, 0, table.stderr);
  t.same(
    recordsIn(table.stdout).map(({ request_id }) => request_id),
    asked.slice(0, 2),
    'with a schema, and without',
  );
  t.notMatch(table.stdout, /pg_authid/, 'records are shown as they are');
  const qualified = recordsIn((await found('pg_catalog.pg_authid', '--json')).stdout);
  t.same(
    qualified.map(({ request_id }) => request_id),
    asked.slice(1, 2),
  );
  t.match(
    (await found('pg_read_file')).stdout,
    new RegExp(`user:ann .*undeclared:pg_read_file.*${asked[2]}`),
  );
  t.match((await found('pg_authid', '--subject', 'user:den')).stdout, /undeclared:pg_authid/);
  t.equal((await found('pg_authid', '--subject', 'user:ann')).stdout, '');
  t.equal((await found('pg_auth')).stdout, '');
  await eventually(() => readdirSync(join(auditDir, 'readings')).length === 0);
  const log = JSON.stringify(await rest.test.records());
  t.notMatch(log, /pg_authid|pg_read_file/, 'nor does the record of who looked have the name in clear');
  t.match(log, /\\"name\\":\\"undeclared:1\./);
});

t.test('a time, a word or a format that is none is said so', async (t) => {
  t.match(await osl(['audit', 'search', ...at, '--since', 'yesterday']), {
    code: 2,
    stderr: /--since takes a time/,
  });
  t.match(await osl(['audit', 'search', ...at, '--since', '2026-13-45']), {
    code: 2,
    stderr: /--since takes a time/,
  });
  t.match(await osl(['audit', 'search', ...at, '--decision', 'maybe']), {
    code: 2,
    stderr: /allow, deny, error/,
  });
  t.match(await osl(['audit', 'export', ...at, '--format', 'xml']), { code: 2, stderr: /jsonl, ocsf, csv/ });
});

t.test('records leave as JSON lines, OCSF and CSV', async (t) => {
  const only = [...at, '--request', refused.requestId];
  const [record] = recordsIn((await osl(['audit', 'export', ...only])).stdout);
  t.match(record, { kind: 'decision', decision: 'error', subject: 'user:den' });
  const [event] = recordsIn((await osl(['audit', 'export', ...only, '--format', 'ocsf'])).stdout);
  t.match(event, {
    class_uid: 6005,
    category_uid: 6,
    activity_id: 4,
    type_uid: 600504,
    status_id: 2,
    time: Date.parse(record?.ts ?? ''),
    actor: { user: { uid: 'user:den' } },
    metadata: { correlation_uid: refused.requestId, sequence: record?.seq },
  });
  const csv = (await osl(['audit', 'export', ...only, '--format', 'csv'])).stdout.trim().split('\n');
  t.equal(csv.length, 2);
  t.match(csv[0], /^ts,writer,kind,request_id,/);
  t.match(csv[1], new RegExp(`,decision,${refused.requestId},`));
});

t.test('reading the log is on record', async (t) => {
  await osl(['audit', 'tail', ...at, '-n', '1']);
  await osl(['audit', 'prove', ...at, refused.requestId]);
  await eventually(() => readdirSync(join(auditDir, 'readings')).length === 0);
  const read = (await rest.test.records()).filter(({ action }) => action === 'audit.read');
  const said = read.map(({ detail = '' }) => JSON.parse(detail));
  t.same([...new Set(said.map(({ command }) => command))].sort(), ['export', 'prove', 'search', 'tail']);
  // Readers wait for nobody: two that ended in turn may be recorded in either order.
  const searched = said.filter(({ command, filter }) => command === 'search' && filter.object === 'customer');
  t.match(searched, [{ by: /@/ }]);
  t.match(await rest.test.verdict(), { problem: null });
});
