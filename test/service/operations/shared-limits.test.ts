import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { NO_REDIS, startRedis } from '../../support/redis.js';
import { osl, type Server, temporary } from '../../tools/cli/support.js';
import { ACCOUNTS_MANIFEST, files, openStore, tables } from './store.js';
import { asked, logged, type Place, type Reply, served, tokenFor } from './support.js';

/** Gateways that count their limits together, in Postgres and in Redis: real ones, with real stores. */

const ROWS = 20;
/** Questions a second of one subject. */
const LIMIT = 12;
const GRANTS = '[{ on: account, columns: [id, name] }]';
const POLICY = `version: 1
tenant: demo
subjects:
  user:rows: { ceiling: [rows] }
  user:busy: { ceiling: [busy] }
  user:other: { ceiling: [busy] }
  user:alone: { ceiling: [busy] }
roles:
  rows: { grants: ${GRANTS}, limits: [{ per: day, each: subject, rows: 90 }] }
  busy: { grants: ${GRANTS} }
masks: {}
limits: { query: ${LIMIT} }
`;
const ALL = 'select id, name from osl.entities.account';
const ONE = `${ALL} where id = 1`;

interface Gateway {
  readonly server: Server;
  readonly place: Place;
}

async function ask({ server, place }: Gateway, subject: string, osql = ALL): Promise<Reply> {
  const role = subject === 'user:rows' ? 'rows' : 'busy';
  const authorization = `Bearer ${await tokenFor(place.dataDir, subject, undefined, role)}`;
  return asked(server, '/osl/query', { osql }, { authorization, connection: 'close' });
}

/** What all of `gateways` let through of `count` questions at once, and in how many windows of a second that can have been. */
async function burst(gateways: readonly Gateway[], subject: string, count: number) {
  const began = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: count }, (_, n) => {
      const gateway = gateways[n % gateways.length];
      return gateway === undefined ? 0 : ask(gateway, subject, ONE).then(({ status }) => status);
    }),
  );
  const windows = 1 + Math.ceil((performance.now() - began) / 1_000);
  return { passed: statuses.filter((status) => status === 200).length, windows };
}

const store = await openStore(
  t,
  'limits of several gateways',
  tables(`select g, 'name ' || g from generate_series(1, ${ROWS}) g`),
);
if (store !== null) {
  const { postgres, admin } = store;

  const started = async (t: Test, env: Readonly<Record<string, string>>): Promise<Gateway> => {
    const place = files(ACCOUNTS_MANIFEST.replace('version: 1', 'version: 1\ntenant: demo'), POLICY);
    return { place, server: await served(t, place, { STORE_URL: postgres.readerUrl, ...env }) };
  };

  const countsTogether = async (t: Test, gateways: readonly Gateway[]): Promise<void> => {
    const { passed, windows } = await burst(gateways, 'user:busy', 60);
    t.ok(
      passed >= 1 && passed <= LIMIT * windows,
      `${passed} of ${LIMIT} in each of at most ${windows} windows`,
    );
    // 90 rows are four answers and a fifth; beside those only what was under way in the other processes may leave.
    const spent = new Set<Gateway>();
    let answered = 0;
    for (let n = 0; spent.size < gateways.length && n < 60; n++) {
      const gateway = gateways[n % gateways.length];
      if (gateway === undefined) break;
      const { status } = await ask(gateway, 'user:rows');
      if (status === 200) answered += 1;
      if (status === 429) spent.add(gateway);
    }
    t.equal(spent.size, gateways.length, 'spent at each of them');
    t.ok(answered >= 5 && answered <= 5 + 2 * gateways.length, `${answered} answers`);
    for (const gateway of gateways) t.equal((await ask(gateway, 'user:other', ONE)).status, 200);
  };

  t.test('in Postgres, one of them with two workers', async (t) => {
    const control = { OSL_CONTROL_URL: postgres.url };
    const limits = { OSL_LIMITS_URL: postgres.url, OSL_WORKERS: '2' };
    const gateways = [await started(t, control), await started(t, limits)];
    await countsTogether(t, gateways);
    const { rows } = await admin.query('select key from osl_control.limit_count');
    t.ok(rows.length > 0);
    for (const { key } of rows) t.match(key, /^[\w-]{43}$/, 'which tells nobody whom it counts');

    // A gateway that begins anew has forgotten nothing.
    const [first] = gateways;
    if (first === undefined) return;
    await first.server.signal('SIGKILL');
    const again = {
      ...first,
      server: await served(t, first.place, { STORE_URL: postgres.readerUrl, ...control }),
    };
    t.equal((await ask(again, 'user:rows')).status, 429);
  });

  t.test('in Redis, and without it for a while', async (t) => {
    const redis = await startRedis();
    if (redis === null) {
      t.pass(NO_REDIS, { skip: NO_REDIS });
      return;
    }
    t.teardown(() => redis.stop());
    const env = { OSL_LIMITS_URL: redis.url, OSL_LOG_LEVEL: 'info' };
    const secret = join(temporary(), 'limits.url');
    writeFileSync(secret, `${redis.url}\n`);
    const byFile = { OSL_LIMITS_URL_FILE: secret, OSL_LOG_LEVEL: 'info' };
    const gateways = [await started(t, env), await started(t, byFile)];
    await countsTogether(t, gateways);

    await redis.kill();
    const [first, second] = gateways;
    if (first === undefined || second === undefined) return;
    t.equal((await ask(first, 'user:rows')).status, 429, 'what was known is known');
    t.equal((await ask(first, 'user:other', ONE)).status, 200, 'they go on');
    const alone = await burst(gateways, 'user:alone', 60);
    t.ok(
      alone.passed >= 2 && alone.passed <= LIMIT * alone.windows,
      `${alone.passed} of ${LIMIT}, half at each`,
    );
    const told = (gateway: Gateway) =>
      logged(gateway.server).filter(({ msg, message }) =>
        /store of limits does not/.test(String(msg ?? message)),
      );
    t.equal(told(first).length, 1, 'the operator hears it once');

    await redis.again();
    while (!first.server.stderr.includes('the store of limits answers again'))
      await ask(first, 'user:other', ONE);
    await countsTogether(
      t,
      [first, second].map((gateway) => ({ ...gateway })),
    );
  });

  t.test('a store that can be none ends a start', async (t) => {
    const { place } = await started(t, {});
    const args = ['serve', '--manifest', place.manifest, '--policy', place.policy];
    const env = { STORE_URL: postgres.readerUrl, OSL_DATA_DIR: temporary() };
    const nonsense = await osl(args, { env: { ...env, OSL_LIMITS_URL: 'http://x' } });
    t.equal(nonsense.code, 2);
    t.match(nonsense.stderr, /OSL_LIMITS_URL must be a redis/);
  });
}
