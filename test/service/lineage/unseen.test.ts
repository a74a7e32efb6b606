import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type GovernedPlan, ready } from 'osl-compiler';
import t from 'tap';
import { openAuditLog } from '../../../audit/index.js';
import { PlanRecorder } from '../../../src/service/lineage/description.js';
import { SURFACES, startFrontends } from '../../support/frontends.js';
import { startTestService } from '../../support/service.js';
import { lineageYaml } from './endpoint.js';
import { startReceiver } from './receiver.js';

/** Whoever asks cannot tell whether anybody is told of lineage; and where nobody is, nothing is recorded for it. */

const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-unseen-'));
const receiver = await startReceiver();
const lineageFile = join(dir, 'lineage.yaml');
writeFileSync(lineageFile, lineageYaml(receiver.url));
// On the embedded engine: a connector of its own would give each service another manifest.
const told = await startTestService({ embedded: true, settings: { lineageFile } });
const untold = await startTestService({ embedded: true });
t.teardown(async () => {
  await told.close();
  await untold.close();
  await receiver.close();
  rmSync(dir, { recursive: true, force: true });
});

const QUESTIONS = [
  'select id, name, email from osl.entities.customer order by id',
  "select count(*) as evelyn from osl.entities.customer where email like '%@%'",
  'select MEASURE(revenue) from osl.entities.order',
  'select count(tax_no) from osl.entities.customer where region is not null',
  'select name from osl.entities.nothing',
  'select 1 / (id - 1) from osl.entities.customer order by id',
];

/** All bytes that one caller hears, without what differs from one request to the next. */
async function heard(test: typeof told): Promise<readonly string[]> {
  const fronts = await startFrontends(test.open);
  const said: string[] = [];
  for (const subject of ['user:ann', 'user:eu', 'user:ada']) {
    for (const surface of SURFACES) {
      const asker = await fronts.asker(surface, { subject, aclRoles: ['analyst', 'auditor', 'eu'] });
      for (const text of QUESTIONS) {
        const { raw } = await asker.ask(text);
        const plain = raw
          .toString('latin1')
          .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'REQUEST')
          .replace(/\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g, 'DATE');
        said.push(`${subject} ${surface} ${text}: ${plain}`);
      }
      asker.end();
    }
  }
  await fronts.stop();
  return said;
}

t.test('every answer and refusal is the same, told of or not', async (t) => {
  t.strictSame(await heard(told), await heard(untold));
});

t.test('records name a plan where somebody is told of it, and else nothing does', async (t) => {
  const named = (records: Awaited<ReturnType<typeof told.records>>): number =>
    records.filter((r) => r.action === 'lineage.plan' || 'plan' in r || 'detail' in r).length;
  t.ok(named(await told.records()) > 0);
  const records = await untold.records();
  t.ok(records.length > QUESTIONS.length);
  t.equal(named(records), 0);
});

t.test('what waits for a receiver is for the owner of the process alone', (t) => {
  const outbox = join(dirname(told.auditDir), 'lineage');
  t.equal(statSync(outbox).mode & 0o077, 0, 'the folder');
  for (const name of readdirSync(outbox)) t.equal(statSync(join(outbox, name)).mode & 0o077, 0, name);
  t.end();
});

t.test('a plan that cannot be told costs its caller nothing', async (t) => {
  await ready();
  const audit = await openAuditLog({ dir: join(dir, 'audit'), tenant: 'x' });
  t.teardown(() => audit.close());
  const errors: unknown[] = [];
  const quiet = (): void => undefined;
  const log = { info: quiet, warn: quiet, error: (_: string, fields?: object) => void errors.push(fields) };
  const recorder = new PlanRecorder(audit, 'x', log);
  const broken = { runtime: [], query: {} } as unknown as GovernedPlan; // a fault of ours
  t.equal(recorder.note(broken, 'request-1'), null);
  t.match(errors, [{ request_id: 'request-1' }], 'and is told in the log');
});
