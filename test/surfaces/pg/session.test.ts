import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import type pg from 'pg';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { wireError } from '../../../src/surfaces/pg/session-requests.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { psqlScript, servePg, startBoth } from './support.js';

/** What a session says of itself, of its transactions and of its masks. */

const PASSWORD = 'correct horse, battery: staple';
const scram = await makeScramVerifier(PASSWORD);
const policy = SHOP_POLICY.replace(
  'roles:',
  `  user:mix: { ceiling: [analyst, auditor_eu] }
roles:
  auditor_eu:
    grants:
      - { on: customer, columns: "*", unmask: [pii], rows: "region = 'eu'" }`,
);
const shop = await startTestService({
  policy: `${policy}service_accounts:\n  tableau: { subject: user:eu, scram: "${scram}" }\n`,
});
const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(async () => {
  await catalogs.close();
  await both?.close();
});
const { port, connect: open } = await servePg(tap, shop, { catalogs });
const skip = both === null ? 'no native Postgres' : false;

async function connect(user: string, password?: string): Promise<pg.Client> {
  const client = await open(user, password);
  tap.teardown(() => client.end());
  return client;
}

const TRANSACTIONS = `
begin; begin; commit;
commit; rollback;
commit and chain; rollback and chain;
begin isolation level repeatable read; set local work_mem = '1MB'; commit and chain; show work_mem;
show transaction_isolation; select 1/0; commit and chain; show transaction_isolation; select 1; rollback and chain;
select 2; rollback;
begin isolation level serializable; rollback and chain; show transaction_isolation; commit; show transaction_isolation;
begin; set transaction_isolation = 'bogus'; rollback and chain; show transaction_isolation; select 1; commit;
begin isolation level repeatable read; select 1/0; rollback and chain; show transaction_isolation; rollback;
begin isolation level serializable; savepoint a; select 1/0; rollback and chain; show transaction_isolation; rollback;
begin isolation level serializable; commit and chain; set transaction isolation level read committed; select 1/0;
rollback and chain; show transaction_isolation; rollback;
begin; savepoint a; commit and chain; release a; rollback;
begin; set transaction_isolation = 'bogus'; rollback and chain;
show transaction_isolation; rollback;
begin; savepoint a; set transaction isolation level serializable; rollback to a;
set transaction isolation level read committed; commit;
begin; set timezone = 'Asia/Tokyo'; commit and chain; set timezone = 'Asia/Seoul'; rollback and chain; show timezone; commit;
begin; declare c cursor for select id from "order" order by id; fetch 1 from c; commit and chain; fetch 1 from c; rollback;
select 1\\; commit\\; select 2;
select 1\\; commit and chain;
begin\\; commit and chain\\; select 3;
rollback;
end; abort;
`;

test('transactions, AND CHAIN among them, as in Postgres', { skip }, async (t) => {
  if (both === null) return;
  const script = `\\set VERBOSITY verbose\n${TRANSACTIONS}`;
  const said = async (env: NodeJS.ProcessEnv): Promise<string> =>
    (await psqlScript(env, script)).replace(/\n(LOCATION|DETAIL).*/g, '').replace(/psql:.*?: /g, '');
  const theirs = await said(both.direct);
  const own = /the statement failed upstream.*|division by zero.*/g;
  t.equal((await said(await both.gateway('user:ada'))).replace(own, ''), theirs.replace(own, ''));
});

test('SHOW ALL has three columns, and units', async (t) => {
  const client = await connect('user:ada');
  await client.query("set statement_timeout = 5000; set work_mem = '65536kB'");
  const { fields, rows } = await client.query('show all');
  t.same(
    fields.map((f) => f.name),
    ['name', 'setting', 'description'],
  );
  const setting = new Map(rows.map((r) => [r.name, r.setting]));
  t.equal(setting.get('statement_timeout'), '5s');
  t.equal(setting.get('work_mem'), '64MB');
  t.equal(setting.get('server_version'), '14.18');
  t.ok(rows.every((r) => r.description.length > 0));
  t.same(
    [...setting.keys()],
    [...setting.keys()].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)),
  );
});

test('what can be set is known to Postgres too', { skip }, async (t) => {
  if (both === null) return;
  const { rows } = await (await connect('user:ada')).query('show all');
  const theirs = await psqlScript(both.direct, 'select name from pg_settings;');
  const unknown = rows.map((r) => String(r.name)).filter((name) => !theirs.includes(`\n${name}\n`));
  const own = ['approval_reason', 'cache', 'freshness', 'purpose', 'receipt', 'receipts', 'task'];
  const osl = own.map((name) => `osl.${name}`);
  const ours = ['is_superuser', ...osl, 'role', 'session_authorization'];
  t.same(unknown, ours, 'which pg_settings leaves out');
});

test('pg_backend_pid() is the one of BackendKeyData', async (t) => {
  const clients = await Promise.all([connect('user:ada'), connect('user:ada'), connect('user:eu')]);
  for (let round = 0; round < 3; round++) {
    for (const client of clients) {
      const { processID } = client as unknown as { processID: number }; // not in the types of `pg`
      const { rows } = await client.query(
        'select pg_backend_pid() as pid, pg_catalog.pg_backend_pid() + 1 as next',
      );
      t.same(rows, [{ pid: processID, next: processID + 1 }]);
    }
  }
});

test('a service account is who it logged in as', async (t) => {
  const client = await connect('tableau', PASSWORD);
  const { rows } = await client.query(
    `select current_user, session_user, user, current_role, current_setting('session_authorization') as login,
       pg_get_userbyid(oid) as by_id, has_table_privilege(current_user, 'customer', 'select') as may
     from pg_roles where rolname = current_user`,
  );
  const [row] = rows;
  t.same(Object.values(row).slice(0, 6), Array(6).fill('tableau'));
  t.equal(row.may, true);
  t.same((await client.query('show session_authorization')).rows, [{ session_authorization: 'tableau' }]);
  t.same((await (await connect('user:eu')).query('select current_user')).rows, [{ current_user: 'user:eu' }]);
});

/** What `client` is told beside the rows of `text`. */
async function noticesOf(client: pg.Client, ask: () => Promise<unknown>): Promise<readonly string[]> {
  const heard: string[] = [];
  const listen = (notice: { message?: string | undefined }): void => {
    heard.push(notice.message ?? '');
  };
  client.on('notice', listen);
  await ask();
  client.off('notice', listen);
  return heard;
}

const MASKED = 'masked for you: customer.email, customer.tax_no';
const PARTIAL = 'n: computed over values of which some are masked for you';

test('a notice names the masked columns, in both protocols, in cursors and in COPY', async (t) => {
  const client = await connect('user:ann');
  const question = 'select id, email, tax_no from customer order by id';
  t.same(await noticesOf(client, () => client.query(question)), [MASKED], 'simple');
  const extended = { text: `${question} limit $1`, values: [2] };
  t.same(await noticesOf(client, () => client.query(extended)), [MASKED], 'extended');
  t.same(await noticesOf(client, () => client.query(`copy (${question}) to stdout`)), [MASKED]);
  await client.query(`begin; declare c cursor for ${question}`);
  t.same(await noticesOf(client, () => client.query('fetch 1 from c')), [MASKED], 'with the first rows');
  t.same(await noticesOf(client, () => client.query('fetch all from c')), [], 'and once');
  await client.query('commit');
  t.same(await noticesOf(client, () => client.query('select id from customer')), []);
  await client.query('set client_min_messages = warning');
  t.same(await noticesOf(client, () => client.query(question)), [], 'who wants none hears none');
});

test('a notice names figures over what is masked in part', async (t) => {
  const client = await connect('user:mix');
  const question = 'select count(email) as n from customer';
  const both = ['masked for you: customer.email', PARTIAL];
  t.same(await noticesOf(client, () => client.query(question)), both);
  t.same(
    await noticesOf(client, () => client.query({ text: `${question} where id > $1`, values: [0] })),
    both,
  );
});

test('psql prints it', async (t) => {
  const password = await shop.token('user:ann');
  const env = {
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: 'user:ann',
    PGPASSWORD: password,
    PGDATABASE: 'osl',
  };
  const said = await psqlScript({ ...process.env, ...env }, '\\set VERBOSITY terse\ntable customer;');
  t.match(said, /NOTICE: {2}masked for you: customer\.born, customer\.email, customer\.tax_no/);
});

test('an error has its code, the request, and when to try again if that is known', (t) => {
  const errors = [queryError('auditUnreadable', {}), queryError('overloaded', { retryAfterSeconds: 5 })];
  t.strictSame(
    errors.map((error) => wireError(error, 'r-1', '').detail),
    ['E5037, request r-1', 'E5031, request r-1, try again in 5 s'],
  );
  t.end();
});
