import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { SKIP } from '../../control/support.js';
import { osl, temporary } from '../../tools/cli/support.js';
import {
  type Part,
  SURROUNDED_POLICY,
  type Surrounded,
  type Surroundings,
  surroundings,
} from './surroundings.js';

/**
 * A gateway that starts while what it stands on is away: it comes up, is not ready, refuses everything with the code of
 * what is missing, and goes on by itself when it returns. Exit status 2 is for settings that can never work.
 */

t.setTimeout(600_000);

/** What `error` of the wire a client meets, asking once. */
async function onTheWire(gateway: Surrounded): Promise<string> {
  const client = await gateway.wireClient();
  client.on('error', () => undefined);
  try {
    await client.connect();
    return String((await client.query('select count(*)::int as n from account')).rows[0]?.n);
  } catch (error) {
    return error instanceof pg.DatabaseError ? String(error.code) : String(error);
  } finally {
    await client.end().catch(() => undefined); // it may never have begun
  }
}

interface Step {
  /** What comes back. */
  readonly part: Part;
  /** What is refused before it does, over REST and on the wire. */
  readonly refused: string;
  readonly sqlstate: string;
  /** The checks of `/ready` that fail until then, and what `/health` says. */
  readonly lacks: readonly string[];
  readonly health: object;
}

/** In the order in which a request meets them. */
const STEPS: readonly Step[] = [
  {
    part: 'audit',
    refused: '503 E5030',
    sqlstate: '57P03',
    lacks: ['engines', 'policy', 'audit', 'control', 'limits'],
    health: { status: 'failing', audit: 'disk' },
  },
  {
    part: 'control',
    refused: '503 E2001',
    sqlstate: '57P03',
    lacks: ['engines', 'policy', 'control', 'limits'],
    health: { status: 'degraded', waiting_for: ['engines', 'policy', 'control', 'limits', 'issuers'] },
  },
  {
    part: 'limits',
    refused: '503 E5038',
    sqlstate: '57P03',
    lacks: ['engines', 'limits'],
    health: { status: 'degraded', waiting_for: ['engines', 'limits', 'issuers'] },
  },
  {
    part: 'data',
    refused: '502 E0523',
    sqlstate: '08006',
    lacks: ['engines'],
    health: { status: 'degraded', waiting_for: ['engines', 'issuers'] },
  },
  {
    part: 'issuer',
    refused: '200',
    sqlstate: '2',
    lacks: [],
    health: { status: 'degraded', waiting_for: ['issuers'] },
  },
];

/** Until every worker, which take connections in turn, lacks these. */
async function untilAll(gateway: Surrounded, lacks: readonly string[]): Promise<void> {
  for (let calm = 0; calm < 4; ) {
    calm = (await gateway.lacks()).join() === lacks.join() ? calm + 1 : 0;
    if (calm === 0) await sleep(20);
  }
}

/** Until every worker says on `/healthz` that nothing is amiss. */
async function untilHealthy(gateway: Surrounded): Promise<void> {
  for (let calm = 0; calm < 4; ) {
    calm = (await gateway.get('/healthz')).body === '{"status":"ok"}' ? calm + 1 : 0;
    if (calm === 0) await sleep(20);
  }
}

async function comesBack(
  t: Test,
  world: Surroundings,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { proxies, table } = world;
  for (const proxy of Object.values(proxies)) await proxy.shut();
  const gateway = await world.serve(t, env);
  for (const { part, refused, sqlstate, lacks, health } of STEPS) {
    await untilAll(gateway, lacks);
    t.equal((await gateway.get('/ready')).status, lacks.length === 0 ? 200 : 503, `without ${part}`);
    t.same(JSON.parse((await gateway.get('/health')).body), health, `/health without ${part}`);
    t.equal(await gateway.asks(), refused, `REST without ${part}`);
    t.equal(await onTheWire(gateway), sqlstate, `the wire without ${part}`);
    if (part === 'issuer') t.equal(await gateway.asks(undefined, gateway.issued()), '503 E5033');
    await proxies[part].open();
  }
  await untilHealthy(gateway);
  t.equal((await gateway.get('/readyz')).status, 200);
  t.equal(await gateway.asks(), '200');
  t.equal(await onTheWire(gateway), '2');
  t.equal(await gateway.asks(undefined, gateway.issued()), '200', 'a token of the issuer');
  t.ok(gateway.alive, 'without a restart');
  const kinds = await table.owner(
    `select distinct record::jsonb->>'action' as action, record::jsonb->>'code' as code from osl_audit.record
      where record::jsonb->>'kind' <> 'outcome'`,
  );
  for (const code of ['E2001', 'E5038', 'E5033'])
    t.ok(
      kinds.some((row) => row['code'] === code),
      `refusals with ${code} are on record`,
    );
  t.ok(
    kinds.some(({ action }) => action === 'audit.gap'),
    'and that nothing could be recorded before',
  );
  await gateway.server.signal('SIGTERM');
}

const EXTRA = `entities:
  extra: { source: db.shop.account, primary_key: [id], columns: { id: { column: id } } }
`;

t.test('parts that are away at the start', { skip: SKIP }, async (t) => {
  const world = await surroundings(t);
  const { proxies, house, settings } = world;

  await t.test('all of them, one after another', (t) => comesBack(t, world));

  const policy = join(temporary(), 'policy.yaml');
  writeFileSync(policy, SURROUNDED_POLICY);
  await t.test('the same with two workers, where only published versions are shared', (t) =>
    comesBack(t, world, { OSL_WORKERS: '2', OSL_POLICY_SOURCE: 'file', OSL_POLICY: policy }),
  );

  await t.test('a gateway without any key by which a token is good is not ready', async (t) => {
    await proxies.issuer.shut();
    const gateway = await world.serve(t, { OSL_LOCAL_TOKENS: 'off' });
    await untilAll(gateway, ['issuers']);
    t.equal((await gateway.get('/ready')).status, 503);
    t.equal(await gateway.asks(undefined, gateway.issued()), '503 E5033');
    await proxies.issuer.open();
    await untilAll(gateway, []);
    t.equal(await gateway.asks(undefined, gateway.issued()), '200');
    await gateway.server.signal('SIGTERM');
  });

  await t.test('nothing is kept where what others published does not fit the policy here', async (t) => {
    const shared = { OSL_POLICY_SOURCE: 'file', OSL_POLICY: policy };
    const author = await world.serve(t, shared);
    t.equal(await author.changes({ fragment: EXTRA }), '201');
    t.equal(await author.changes({ deprecate: { 'entities.extra': 'use account' } }), '201');
    const own = join(temporary(), 'own.yaml');
    writeFileSync(
      own,
      SURROUNDED_POLICY.replace('grants:\n', 'grants:\n      - { on: extra, columns: [id] }\n'),
    );
    const other = await world.serve(t, { ...shared, OSL_POLICY: own });
    const asks = 'select id from osl.entities.extra';
    t.equal(await other.asks(asks), '200');
    t.equal(await author.changes({ withdraw: ['entities.extra'] }), '201');
    await other.server.said('no valid policy: every request is refused');
    t.equal(await other.asks(), '503 E2001');
    writeFileSync(own, SURROUNDED_POLICY);
    other.server.hangUp();
    await other.server.said('a valid policy is in force again');
    t.equal(await other.asks(), '200');
    t.equal(await other.asks(asks), '400 E0512');
    for (const { server } of [author, other]) await server.signal('SIGTERM');
  });

  await t.test('what a database says against a gateway does not end it either', async (t) => {
    const nobody = new URL(settings['OSL_CONTROL_URL'] ?? '');
    nobody.username = 'nobody_there';
    const elsewhere = new URL(settings['OSL_AUDIT_URL'] ?? '');
    elsewhere.pathname = new URL(house.postgres.url).pathname;
    const gateway = await world.serve(t, {
      STORE_URL: proxies.data.by(house.postgres.url),
      OSL_CONTROL_URL: nobody.href,
      OSL_AUDIT_URL: elsewhere.href,
      OSL_LIMITS_URL: 'redis://127.0.0.1:9',
    });
    for (const words of [
      'is superuser',
      'the control database is not heard',
      'osl audit table prints what makes them',
      'the store of limits has not answered yet',
    ])
      await gateway.server.said(words);
    t.same(await gateway.lacks(), ['engines', 'policy', 'audit', 'control', 'limits']);
    t.equal(await gateway.asks(), '503 E5030');
  });

  await t.test(
    'keys that are not those of the others are found out once the database is heard',
    async (t) => {
      await proxies.control.shut();
      const keys = join(temporary(), 'keys');
      t.equal((await osl(['keys', 'make', keys])).code, 0);
      const gateway = await world.serve(t, { OSL_KEYS_DIR: keys });
      await proxies.control.open();
      await gateway.server.said('is not that of the others');
      t.equal(await gateway.asks(), '503 E2001');
      t.same(await gateway.lacks(), ['policy', 'control'], 'and it serves nothing');
    },
  );

  await t.test('settings that can never work end a start with 2', async (t) => {
    for (const [env, words] of [
      [{ STORE_URL: 'postgres://a@b/c?target_session_attrs=some' }, /target_session_attrs must be/],
      [{ STORE_URL: 'postgres://a@b/c?sslmode=verify-full&sslrootcert=/nope' }, /\/nope .*cannot be read/],
      [{ STORE_URL: '', STORE_URL_FILE: '/nope' }, /cannot be read/],
    ] as const) {
      const place = { OSL_DATA_DIR: temporary(), OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' };
      const start = await osl(['serve', '--manifest', world.manifest], {
        env: { ...settings, ...place, ...env },
      });
      t.match(start, { code: 2, stderr: words });
    }
  });
});
