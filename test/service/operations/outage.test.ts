import { writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, type Server, temporary } from '../../tools/cli/support.js';
import { asked, logged, served } from './support.js';

const DOWN = 'the database does not answer';
const BACK = 'the database answers again';

function states(server: Server): readonly unknown[] {
  return logged(server)
    .filter(({ msg }) => msg === DOWN || msg === BACK)
    .map(({ msg, cause }) => (msg === DOWN ? cause : 'back'));
}

async function until(server: Server, count: number): Promise<void> {
  while (states(server).length < count) await sleep(100);
}

const native = await startNativePostgres();

t.test(
  'outages of the database, and credentials that change',
  { skip: native === null ? NO_NATIVE : false },
  async (t) => {
    if (native === null) return;
    t.teardown(() => native.stop());
    const admin = new pg.Client({ connectionString: native.url });
    await admin.connect();
    await admin.query(
      'create table customer (id int primary key, name text); grant select on customer to osl_reader',
    );
    await admin.end();
    const gate = await startFaultProxy(Number(new URL(native.readerUrl).port));
    t.teardown(() => gate.close());
    const url = gate.by(native.readerUrl);
    const dir = temporary();
    const file = join(dir, 'url');
    writeFileSync(file, url);
    t.match(await osl(['init', dir, '--yes', '--subject', 'user:me'], { env: { DATABASE_URL: url } }), {
      code: 0,
    });
    const [own] = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal);
    const where = {
      dataDir: join(dir, '.osl'),
      manifest: join(dir, 'manifest.yaml'),
      policy: join(dir, 'policy.yaml'),
    };
    const server = await served(t, where, {
      DATABASE_URL_FILE: file,
      ...(own === undefined ? {} : { OSL_HOST: '0.0.0.0', OSL_METRICS_FROM: `${own.address}/32` }),
    });

    await t.test(
      'a stall and a cut leave one line each, with the cause, and one when it is over',
      async (t) => {
        gate.silence();
        await until(server, 1);
        await sleep(1_000);
        gate.restore();
        await until(server, 2);
        await gate.shut();
        await until(server, 3);
        await gate.open();
        await until(server, 4);
        t.match(states(server), [
          'no answer in time',
          'back',
          // A pool that cannot grow waits, so the question may end first; why it cannot is a line of its own.
          /no answer in time|it cannot be reached, or cut the session/,
          'back',
        ]);
        t.ok(logged(server).some(({ cause }) => cause === 'nothing listens there'));
      },
    );

    await t.test('SIGHUP takes up another login, and names another database', async (t) => {
      const login = new URL(url);
      login.password = 'another';
      const other = new URL(url);
      other.pathname = '/elsewhere';
      for (const [next, words] of [
        [login, /reloaded: .*; connector \w+ by its URL of now/],
        [other, /not reloaded: connector \w+ names another database: restart to change it/],
      ] as const) {
        writeFileSync(file, next.href);
        server.hangUp();
        while (!words.test(server.stderr)) await sleep(50);
        t.match(server.stderr, words);
      }
      t.notMatch(server.stderr, /another@|:another/, 'no password in the log');
    });

    await t.test(
      'metrics may be read from where the setting says',
      { skip: own === undefined && 'one address only' },
      async (t) => {
        t.equal((await asked(server, '/metrics', null, {}, own?.address)).status, 200);
        t.equal(
          (await asked(server, '/metrics', null, { 'x-forwarded-for': own?.address ?? '' }, own?.address))
            .status,
          404,
        );
      },
    );
  },
);
