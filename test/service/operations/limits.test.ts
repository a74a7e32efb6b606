import pg from 'pg';
import t, { type Test } from 'tap';
import type { Server } from '../../tools/cli/support.js';
import { ACCOUNTS_MANIFEST, files, openStore, tables } from './store.js';
import { asked, type Place, type Reply, served, tokenFor } from './support.js';

/** Limits of the policy, from outside: of one process, of workers, and of gateways that share their counts. */

const ROWS = 20;
const GRANTS = '[{ on: account, columns: [id, name] }]';
const POLICY = `version: 1
tenant: demo
subjects:
  user:rows: { ceiling: [rows] }
  user:bytes: { ceiling: [bytes] }
  user:time: { ceiling: [time] }
  user:few: { ceiling: [few] }
  user:few-too: { ceiling: [few] }
  user:busy: { ceiling: [busy] }
  user:free: { ceiling: [free] }
roles:
  rows: { grants: ${GRANTS}, limits: [{ per: day, each: subject, rows: 50 }] }
  bytes: { grants: ${GRANTS}, limits: [{ per: day, bytes: 5000 }] }
  time: { grants: ${GRANTS}, limits: [{ per: day, seconds: 1 }] }
  few: { grants: ${GRANTS}, limits: [{ per: day, requests: 10 }] }
  busy: { grants: ${GRANTS} }
  free: { grants: ${GRANTS} }
masks: {}
limits: { query: 40, subject: [{ per: day, bucket: schema, requests: 3 }], tenant: [{ per: day, rows: 100000 }] }
`;

const ALL = 'select id, name from osl.entities.account';
interface Gateway {
  readonly server: Server;
  readonly place: Place;
}

/** The answer to one question on a connection of its own choosing. */
async function ask({ server, place }: Gateway, subject: string, osql = ALL): Promise<Reply> {
  const authorization = `Bearer ${await tokenFor(place.dataDir, subject, undefined, subject.replace(/^user:|-too$/g, ''))}`;
  return asked(server, '/osl/query', { osql }, { authorization, connection: 'close' });
}

/** Asks the gateways in turn until each has refused; gives how many were answered. */
async function untilSpent(gateways: readonly Gateway[], subject: string, osql = ALL): Promise<number> {
  let answered = 0;
  const spent = new Set<Gateway>();
  for (let n = 0; spent.size < gateways.length && n < 200; n++) {
    const gateway = gateways[n % gateways.length];
    if (gateway === undefined) break;
    const { status } = await ask(gateway, subject, osql);
    if (status === 200) answered += 1;
    if (status === 429) spent.add(gateway);
  }
  return answered;
}

const store = await openStore(
  t,
  'limits of the policy',
  tables(`select g, repeat('n', 100) from generate_series(1, ${ROWS}) g`),
);
if (store !== null) {
  const { postgres, admin } = store;
  const started = async (t: Test, env: Readonly<Record<string, string>> = {}): Promise<Gateway> => {
    const place = files(ACCOUNTS_MANIFEST, POLICY);
    return { place, server: await served(t, place, { STORE_URL: postgres.readerUrl, ...env }) };
  };

  t.test('one process: rows, bytes, time and requests, each until its window ends', async (t) => {
    const gateway = await started(t);
    // 50 rows: two answers and a third that goes on to its end; asked three times on one session, fast or not.
    t.equal(await untilSpent([gateway], 'user:rows'), 3);
    const refused = await ask(gateway, 'user:rows');
    t.match(JSON.parse(refused.body), { code: 'E4290', sqlstate: '53400' });
    const wait = Number(refused.headers['retry-after']);
    t.ok(wait > 80_000 && wait <= 86_400, `come back in ${wait} s`);
    t.equal((await ask(gateway, 'user:free')).status, 200, 'others have their own');
    const byBytes = await untilSpent([gateway], 'user:bytes');
    t.ok(byBytes >= 2 && byBytes <= 3, 'some 2,300 bytes each');
    t.equal(await untilSpent([gateway], 'user:few', `${ALL} where id = 1`), 10);
    t.equal((await ask(gateway, 'user:few-too')).status, 429, 'of all members together');
    await admin.query('begin; lock table shop.account');
    const waits = ask(gateway, 'user:time');
    const waiting = 'select count(*)::int as n from pg_locks where not granted';
    while ((await admin.query(waiting)).rows[0].n === 0) await admin.query('select pg_sleep(.01)');
    await admin.query(`select pg_sleep(1.2)`);
    await admin.query('commit');
    t.equal((await waits).status, 200);
    t.equal((await ask(gateway, 'user:time')).status, 429, 'what waits for a lock has a session');
  });

  t.test('on the wire it is 53400, and a fast question is counted like any other', async (t) => {
    const { server, place } = await started(t);
    const { pgPort } = server.record();
    const password = await tokenFor(place.dataDir, 'user:rows', undefined, 'rows');
    const login = { host: '127.0.0.1', port: Number(pgPort), user: 'user:rows', database: 'osl', password };
    const client = new pg.Client(login);
    await client.connect();
    t.teardown(() => client.end());
    let rows = 0;
    const one = async (): Promise<void> => {
      for (;;)
        rows += (await client.query(`select name from account where id = ${1 + (rows % ROWS)}`)).rows.length;
    };
    await t.rejects(one(), { code: '53400' });
    t.equal(rows, 50);
  });

  t.test('workers count together', async (t) => {
    const gateway = await started(t, { OSL_WORKERS: '2' });
    const answers = await untilSpent(
      Array.from({ length: 6 }, () => gateway),
      'user:rows',
    );
    t.ok(
      answers >= 3 && answers <= 5,
      `${answers} answers, of which one for each worker may have been under way`,
    );
    for (let n = 0; n < 6; n++) t.equal((await ask(gateway, 'user:rows')).status, 429);
    const few = await untilSpent(
      Array.from({ length: 6 }, () => gateway),
      'user:few',
      `${ALL} where id = 1`,
    );
    t.ok(few >= 10 && few <= 13, `${few} of ten`);
  });
}
