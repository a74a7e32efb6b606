import pg from 'pg';
import t from 'tap';
import { TABLES } from '../service/operations/store.js';
import { asked } from '../service/operations/support.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { adminServer, enter, HOSTILE, tokenOf } from './support/served.js';

/** The page of requests: approvals, access requests and uses of break-glass access, in a real browser. */

t.setTimeout(180_000);

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:steward: { ceiling: [steward] }
  user:admin: { ceiling: [], admin: [TENANT_ADMIN] }
roles:
  analyst:
    grants:
      - { on: account, columns: [id, name], unmask: [pii], approval: { by: steward, minutes: 30 } }
      - { on: big, columns: [id], break_glass: { minutes: 30, per_day: 3 } }
  steward: { grants: [] }
masks: { pii: redact }
limits: { query: 1000, catalog: 1000, authoring: 1000 }
`;
const OSQL = "select name from osl.entities.account where name = 'ann'";

const postgres = SKIP === false ? await startNativePostgres() : null;
if (SKIP !== false || postgres === null) {
  t.test('the page of requests', { skip: SKIP === false ? NO_NATIVE : SKIP }, async () => undefined);
} else {
  t.teardown(() => postgres.stop());
  const owner = new pg.Client(postgres.url);
  await owner.connect();
  await owner.query(TABLES);
  await owner.end();
  const { server, place, origin } = await adminServer(t, postgres.readerUrl, POLICY);
  const browser = await startBrowser(t);
  const analyst = () => tokenOf(place, ['user:analyst']);
  const ask = async (headers: Record<string, string>, osql = OSQL) =>
    asked(server, '/osl/query', { osql }, { authorization: `Bearer ${await analyst()}`, ...headers });
  const reason = `${HOSTILE} invoice 17`;
  await ask({ 'osl-approval-reason': encodeURIComponent(reason), 'osl-task': 'july' });
  await ask({ 'osl-approval-reason': 'another%20one' });
  await ask({ 'osl-break-glass': encodeURIComponent(`a fire ${HOSTILE}`) }, 'select 1');
  const open = async (token: string, over: Parameters<typeof Visit.start>[2] = {}): Promise<Visit> => {
    const visit = await Visit.start(browser, origin, over);
    await enter(visit, origin, token, 'requests');
    return visit;
  };
  const steward = () => tokenOf(place, ['user:steward'], [], ['steward']);
  const admin = () => tokenOf(place, ['user:admin'], ['TENANT_ADMIN'], []);

  await t.test('an approver without an admin role reads the statement and approves', async (t) => {
    const visit = await open(await steward());
    const { page } = visit;
    const item = page.getByRole('listitem').filter({ hasText: 'invoice 17' });
    await item.getByText(OSQL, { exact: true }).waitFor();
    t.match(await item.textContent(), /user:analyst wants to use account.*Open.*task july/s);
    t.match(await item.textContent(), /columns: \[id, name\], unmask: \[pii\], approval: \{ by: steward/);
    t.ok((await item.textContent())?.includes(reason), 'a reason is shown as text');
    await accessible(t, page, 'requests of an approver');
    await item.getByRole('spinbutton').fill('99');
    t.ok(await item.getByRole('button', { name: 'Approve' }).isDisabled(), 'no longer than the policy says');
    await item.getByRole('spinbutton').fill('5');
    await item.getByRole('checkbox').check();
    await item.getByRole('button', { name: 'Approve' }).click();
    await item.getByText('Approved by user:steward until').waitFor();
    t.match(await item.textContent(), /for task july/);
    t.match((await ask({ 'osl-task': 'july' })).body, /"ann"/);
    t.match((await ask({})).body, /E0535/, 'only for the task');
    const other = page.getByRole('listitem').filter({ hasText: 'another one' });
    await other.getByRole('button', { name: 'Decline' }).click();
    await other.getByText('Declined by user:steward').waitFor();
    await item.getByRole('button', { name: 'End it now' }).click();
    await item.getByText('Ended early', { exact: true }).waitFor();
    await accessible(t, page, 'decided requests');
    visit.clean(t);
    await visit.close();
  });

  await t.test('an administrator sees all three kinds, and no statement', async (t) => {
    const token = `Bearer ${await analyst()}`;
    const object = { object: 'osl.entities.big.id', reason: 'x' };
    await asked(server, '/osl/access-requests', object, { authorization: token });
    const visit = await open(await admin());
    const { page } = visit;
    const list = page.getByRole('list', { name: 'Requests' });
    await list.getByText('used emergency access').waitFor();
    t.match(await list.textContent(), /a fire <img/);
    await list.getByText('osl.entities.big.id').waitFor();
    const approval = page.getByRole('listitem').filter({ hasText: 'wants to use' }).first();
    t.notMatch(await approval.textContent(), /'ann'|invoice/);
    t.match(await approval.textContent(), /where name = \?/);
    t.equal(await page.getByRole('button', { name: /Approve|Decline|End it/ }).count(), 0);
    await accessible(t, page, 'requests of an administrator');
    visit.clean(t);
    await visit.close();
  });

  await t.test('who asked sees what became of it', async (t) => {
    const visit = await open(await analyst());
    const { page } = visit;
    await page.getByText('Declined', { exact: true }).waitFor();
    t.equal(await page.getByRole('button', { name: /Approve|Decline|End it/ }).count(), 0);
    t.notMatch(await page.getByRole('list', { name: 'Requests' }).textContent(), /emergency|unmask/);
    visit.clean(t);
    await visit.close();
  });
}
