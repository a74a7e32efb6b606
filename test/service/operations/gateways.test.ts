import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import postgres from 'postgres';
import t from 'tap';
import { tokenIdIn } from '../../../policy/index.js';
import { type ControlHouse, SKIP, until } from '../../control/support.js';
import { type Killable, NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import { osl, temporary } from '../../tools/cli/support.js';
import { fleet, type Gateway, policyText } from './gateways.js';

/** Three gateways, one with two workers, that share policy and published versions by way of `osl_control`. */

const NAMED = 'select name from osl.entities.account where id = 1';

const COUNTED = 'select count(*) as n from osl.entities.big';

/** How long a grant that was taken away may go on anywhere. ms */
const BOUND_MS = 2_000;

t.setTimeout(600_000); // a busy machine takes its time; what is claimed of time is asserted

if (SKIP !== false) {
  t.test('several gateways', { skip: SKIP }, async () => undefined);
} else {
  const own = await startOwnPostgres(); // a server to kill
  const { house, dir, settings, gateways, policy, activate } = await fleet(
    t,
    { OSL_CONTROL_SILENCE_SECONDS: '6', OSL_ADMIN_PORT: '0' },
    undefined,
    own,
  );

  t.test('every gateway serves the policy of the control database', async (t) => {
    for (const gateway of gateways) {
      t.equal(await gateway.ready(), true);
      const client = await gateway.connect();
      t.strictSame((await client.query(NAMED)).rows, [{ name: 'name 1' }]);
      await client.end();
    }
  });

  t.test(
    'a gateway whose clock is wrong is not ready while the others agree with the database',
    async (t) => {
      const [one, two, three] = gateways;
      for (const aheadMs of [3_600_000, -3_600_000]) {
        writeFileSync(two.clockFile, `${aheadMs}`);
        await until(async () => !(await two.ready()));
        t.strictSame(await Promise.all([one, three].map((gateway) => gateway.ready())), [true, true]);
        writeFileSync(two.clockFile, '0');
        await until(() => two.ready());
      }
      for (const seconds of [3600, -3600])
        t.match(
          two.server.stderr,
          new RegExp(
            `"seconds_ahead":${seconds},"agreeing_gateways":2,"msg":"the clock of this machine is wrong`,
          ),
        );
      t.match(two.server.stderr, /the clocks agree again/);
    },
  );

  t.test('a grant that is taken away stops everywhere, under load, within two seconds', async (t) => {
    /** When the last question that was answered with what was taken away had begun, over all clients. */
    let lastGranted = 0;
    let refused = 0;
    let stop = false;
    const machine = stalls();
    const load = gateways.flatMap((gateway) => [
      // The same text again and again goes by the fast lane.
      (async () => {
        const client = await gateway.connect();
        while (!stop) {
          const began = Date.now();
          const answered = await client.query(NAMED).then(
            () => true,
            () => false,
          );
          if (answered) lastGranted = Math.max(lastGranted, began);
          else refused += 1;
          await sleep(5);
        }
        await client.end();
      })(),
      (async () => {
        while (!stop) {
          const began = Date.now();
          const { status } = await gateway.rest('/osl/query', { osql: NAMED });
          if (status === 200) lastGranted = Math.max(lastGranted, began);
          else refused += 1;
          await sleep(10);
        }
      })(),
    ]);

    // On each gateway an open cursor, a portal with rows left, and a statement that waits in the database.
    const cursors = await Promise.all(
      gateways.map(async (gateway) => {
        const client = await gateway.connect();
        await client.query('begin');
        await client.query(`declare c cursor for select name from osl.entities.account order by id`);
        t.equal((await client.query('fetch 2 from c')).rowCount, 2);
        return client;
      }),
    );
    const portals = await Promise.all(
      gateways.map(async (gateway) => {
        const client = postgres({
          host: '127.0.0.1',
          port: Number(gateway.server.record()['pgPort']),
          user: 'user:analyst',
          database: 'osl',
          password: await gateway.token(),
          max: 1,
          onnotice: () => undefined,
        });
        // One Execute for ten rows at a time, of one portal.
        const portal = client
          .unsafe('select id, name from osl.entities.account order by id')
          .cursor(10)
          [Symbol.asyncIterator]();
        t.equal((await portal.next()).value.length, 10);
        return { client, portal };
      }),
    );
    const lock = new pg.Client(house.postgres.url);
    await lock.connect();
    await lock.query('begin');
    await lock.query('lock table shop.big in access exclusive mode');
    // What asks now waits: a statement that runs when its rights end.
    const running = await Promise.all(
      gateways.map(async (gateway) => {
        const client = await gateway.connect();
        const ended = client.query(COUNTED).then(
          () => ({ code: 'answered', message: '', at: Date.now() }),
          ({ code, message }: pg.DatabaseError) => ({ code, message, at: Date.now() }),
        );
        return { client, ended };
      }),
    );
    await until(async () => {
      const waiting = await house.admin(
        `select count(*)::int as n from pg_locks where not granted and relation = 'shop.big'::regclass`,
      );
      return Number(waiting[0]?.['n']) >= gateways.length;
    });
    const bystander = await gateways[0].connect('user:bystander');
    const unharmed = bystander.query(COUNTED);

    const committed = await activate(policyText('id'));
    const ends = await Promise.all(running.map(({ ended }) => ended));
    for (const { code, message, at } of ends) {
      t.match(message, /your access changed while the query was running/);
      t.equal(code, '55000', 'a statement that ran was ended, for its rights were gone');
      t.ok(
        at - committed < BOUND_MS + machine.allowed(),
        `${Math.round(at - committed)} ms after it was activated`,
      );
    }
    await lock.query('rollback');
    await lock.end();
    t.strictSame((await unharmed).rows, [{ n: '2000' }], 'a statement under rights that stayed goes on');
    await bystander.end();

    for (const client of cursors) {
      await t.rejects(client.query('fetch 2 from c'), { code: '55000' });
      await client.end();
    }
    for (const { client, portal } of portals) {
      await t.rejects(portal.next(), { code: '55000' });
      await client.end();
    }
    await sleep(BOUND_MS);
    stop = true;
    await Promise.all(load);
    const late = Math.round(lastGranted - committed);
    t.comment(
      `the last question that was still answered began ${late} ms after the activation began to be written`,
    );
    t.ok(late > -1_000, `questions were answered until then: ${late} ms`);
    t.ok(late < BOUND_MS + machine.allowed(), `${late} ms`);
    machine.end();
    t.ok(refused > 0);
    for (const { client } of running) await client.end();
  });

  t.test('a token that is revoked at one gateway is good at none, two seconds later', async (t) => {
    const [one, two, three] = gateways;
    for (const [at, others] of [
      [two, [one, three]],
      [one, [two, three]],
    ] as const) {
      const token = await one.token();
      const sessions = await Promise.all(
        others.map(async (gateway) => {
          t.equal(await used(gateway, token), 200);
          const client = await gateway.connect('user:analyst', { password: token });
          const ended = new Promise<number>((resolve) => client.once('end', () => resolve(Date.now())));
          return { client, ended };
        }),
      );
      const machine = stalls();
      const since = Date.now();
      const revoked = await at.admin('/admin/tokens/revoke', { token_id: tokenIdIn(token) });
      t.match(revoked, { status: 200, body: { kind: 'token', shared: true } });
      for (let i = 0; i < 3; i++) t.equal(await used(at, token), 401, 'by whichever worker');
      for (const { client, ended } of sessions) {
        const took = (await ended) - since;
        t.ok(took < BOUND_MS + machine.allowed(), `a session of another gateway ended after ${took} ms`);
        await t.rejects(client.query('select 1'));
      }
      await sleep(since + BOUND_MS + machine.allowed() - Date.now());
      machine.end();
      for (const gateway of others)
        for (let i = 0; i < 3; i++) t.equal(await used(gateway, token), 401, 'by whichever worker');
    }
  });

  t.test('a gateway that was away, and one that has lost its files, know what is revoked', async (t) => {
    const [one, , three] = gateways;
    const token = await one.token();
    await three.server.signal('SIGKILL');
    t.match(await one.admin('/admin/tokens/revoke', { token_id: tokenIdIn(token) }), {
      body: { shared: true },
    });
    rmSync(join(three.dataDir, 'revoked'), { recursive: true });
    await three.restart();
    await until(() => three.ready());
    t.equal(await used(three, token), 401);
  });

  t.test('what is revoked while the control database is silent is told later', async (t) => {
    const [one, , three] = gateways;
    const token = await one.token();
    one.line.silence();
    const { adminPort } = one.server.record();
    const at = ['--admin', `http://127.0.0.1:${String(adminPort)}`, '--token', await one.adminToken()];
    const told = await osl(['token', 'revoke', '-', ...at], { input: token });
    t.match(told, { code: 1, stdout: /^revoked token /, stderr: /other gateways do not know it yet/ });
    t.equal(await used(one, token), 401);
    one.line.restore();
    await until(async () => (await used(three, token)) === 401);
    await until(() => one.ready());
  });

  t.test('a gateway with other keys does not start', async (t) => {
    const keys = join(temporary(), 'keys');
    const made = await osl(['keys', 'make', keys]);
    t.match(made, { code: 0, stdout: /^signing [0-9a-f]{32}\nmasking [0-9a-f]{32}\n$/ });
    t.match(await osl(['keys', 'make', keys]), { code: 2, stderr: /there already/ });
    t.equal((await osl(['keys', 'show'], { env: { OSL_KEYS_DIR: keys } })).stdout, made.stdout);
    const other = await osl(['serve', '--manifest', join(dir, 'manifest.yaml'), '--data-dir', temporary()], {
      env: { ...settings, OSL_KEYS_DIR: keys },
    });
    t.match(other, { code: 2, stderr: /the masking key of this gateway .* is not that of the others/ });
    const none = await osl(['serve', '--manifest', join(dir, 'manifest.yaml'), '--data-dir', temporary()], {
      env: { ...settings, OSL_KEYS_DIR: join(keys, 'none') },
    });
    t.match(none, { code: 2, stderr: /there are no keys in .*osl keys make/ });
  });

  t.test('a rollback is one command, and every gateway serves what it did before', async (t) => {
    const clients = await Promise.all(gateways.map((gateway) => gateway.connect()));
    for (const client of clients) await t.rejects(client.query(NAMED));
    t.match(await policy('rollback', '--comment', 'too much was taken'), { code: 0 });
    for (const client of clients) {
      await until(async () =>
        client.query(NAMED).then(
          () => true,
          () => false,
        ),
      );
      await client.end();
    }
    t.pass('in open sessions too');
  });

  t.test(
    'an invalid policy that was activated leaves the last valid one in force on every gateway',
    async (t) => {
      await activate(policyText('id, no_such_column'));
      for (const gateway of gateways) {
        await until(() => gateway.server.stderr.includes('the last valid one stays in force'));
        t.match(gateway.server.stderr, /"cause":"\S*:\d+:\d+: error .*no_such_column/);
        t.match(await gateway.rest('/osl/query', { osql: NAMED }), { status: 200 });
        const { body } = await gateway.rest('/health', null);
        t.match(body, { status: 'degraded', kept_policy: { seconds_left: Number } });
      }
      await activate(policyText('id, name'));
      for (const gateway of gateways)
        await until(async () => (await gateway.rest('/health', null)).body['status'] === 'ok');
    },
  );

  t.test('what is published on one gateway serves on all', async (t) => {
    const [one, two, three] = gateways;
    const publish = async (
      gateway: (typeof gateways)[number],
      name: string,
    ): Promise<{ status: number; body: Record<string, unknown> }> => {
      const { body } = await gateway.rest('/osl/objects', null, '', true);
      return gateway.rest(
        '/osl/objects',
        { fragment: fragmentOf(name), base_version: body['version'] },
        '',
        true,
      );
    };
    const published = await publish(one, 'accounts_of_one');
    t.equal(published.status, 201, JSON.stringify(published.body));
    const serves = (name: string) => (gateway: (typeof gateways)[number]) =>
      until(async () => {
        const reply = await gateway.rest(
          '/osl/query',
          { osql: `select measure(${name}) as n from osl.entities.account` },
          'user:bystander',
        );
        return reply.status === 200;
      });
    await Promise.all(gateways.map(serves('accounts_of_one')));
    t.equal((await publish(two, 'accounts_of_two')).status, 201, 'by way of a worker');
    await Promise.all(gateways.map(serves('accounts_of_two')));
    await three.server.signal('SIGKILL');
    t.equal((await publish(one, 'more')).status, 201);
    await three.restart();
    await serves('more')(three);
    t.pass('and on one that was away');
  });

  t.test('of two gateways that publish at once one is told to look again', async (t) => {
    const [one, , three] = gateways;
    const { body } = await one.rest('/osl/objects', null, '', true);
    const change = (name: string) => ({
      fragment: fragmentOf(name),
      base_version: body['version'],
    });
    const both = await Promise.all([
      one.rest('/osl/objects', change('first'), '', true),
      three.rest('/osl/objects', change('second'), '', true),
    ]);
    t.strictSame(both.map(({ status }) => status).sort(), [201, 412]);
  });

  t.test(
    'a gateway that hears nothing of the control database stops, and goes on once it does',
    async (t) => {
      const [one, two, three] = gateways;
      const versionOf = async (of: typeof one): Promise<unknown> =>
        (await of.rest('/osl/objects', null, '', true)).body['version'];
      await until(async () => (await versionOf(three)) === (await versionOf(one)));
      const change = { fragment: fragmentOf('unheard'), base_version: await versionOf(three) };
      for (const { line } of [two, three]) line.silence();
      // At once: when the time of silence is over, it has no policy and refuses with E2001.
      t.match(await three.rest('/osl/objects', change, '', true), { status: 503, body: { code: 'E5036' } });
      const before = await activate(policyText('id'));
      await t.resolves(
        until(async () => (await one.rest('/osl/query', { osql: NAMED })).status === 400),
        'one that hears it takes the grant away',
      );
      for (const gateway of [two, three])
        await until(async () => (await gateway.rest('/osl/query', { osql: NAMED })).status === 503);
      t.comment(`refused ${Math.round(Date.now() - before)} ms after the last activation`);
      for (const gateway of [two, three]) {
        t.match(await gateway.rest('/osl/query', { osql: NAMED }), { body: { code: 'E2001' } });
        t.equal(await gateway.ready(), false);
        const heard = gateway.server.stderr.length;
        gateway.server.hangUp();
        await until(() =>
          gateway.server.stderr.slice(heard).includes('not reloaded: every request is refused'),
        );
        t.match(
          await gateway.rest('/osl/query', { osql: NAMED }),
          { body: { code: 'E2001' } },
          'a SIGHUP brings nothing back',
        );
        gateway.line.restore();
      }
      for (const gateway of [two, three]) {
        await until(() => gateway.ready());
        // The polls above may have used up what the subject may ask in this second.
        let status = 429;
        await until(async () => {
          ({ status } = await gateway.rest('/osl/query', { osql: NAMED }));
          return status !== 429;
        });
        t.equal(status, 400, 'with the policy of now');
      }
    },
  );

  t.test('a control database that dies ends no gateway', { skip: own === null && NO_BINARIES }, async (t) => {
    if (own === null) return;
    await activate(policyText('id, name'));
    for (const gateway of gateways)
      await until(async () => (await gateway.rest('/osl/query', { osql: NAMED })).status === 200);
    /** Holds what looks read, so that they wait, until the server takes the lock with it. */
    const waiting = async (): Promise<number> => {
      const holder = new pg.Client(house.postgres.url);
      holder.on('error', () => undefined);
      await holder.connect();
      await holder.query('begin; lock table osl_control.policy_activation in access exclusive mode');
      for (;;) {
        const [row] = await house.admin(
          "select pid from pg_stat_activity where application_name = 'osl control' and wait_event_type = 'Lock'",
        );
        if (row !== undefined) return Number(row['pid']);
      }
    };
    for (const [what, die] of Object.entries(DEATHS)) {
      await die({ own, house, gateways, waiting });
      for (const gateway of gateways)
        await until(async () => (await gateway.rest('/osl/query', { osql: NAMED })).status === 200);
      t.ok(
        gateways.every(({ server }) => server.alive),
        what,
      );
      await activate(policyText('id'));
      for (const gateway of gateways)
        await until(async () => (await gateway.rest('/osl/query', { osql: NAMED })).status === 400);
      await activate(policyText('id, name'));
      for (const gateway of gateways)
        await until(async () => (await gateway.rest('/osl/query', { osql: NAMED })).status === 200);
    }
    for (const { server } of gateways) {
      t.notMatch(server.stderr, /an error that nothing handled/);
      // On a busy machine the supervisor replaces a worker that is late with a change; none may end by itself.
      const count = (words: string): number => server.stderr.split(words).length - 1;
      t.equal(count('a worker ended'), count('it did not take up a change in time'));
    }
  });
}

/** What becomes of the control database, and of whatever the gateways ask it at that moment. */
const DEATHS: Readonly<Record<string, (world: Dying) => Promise<void>>> = {
  'its connections are reset while a look waits for its answer': async ({ gateways }) => {
    for (const { line } of gateways) line.silence();
    await sleep(1_600);
    for (const { line } of gateways) {
      line.strike('reset');
      line.restore();
    }
  },
  'it is restarted at once, without a checkpoint': async ({ own }) => own.crash(),
  'one of its backends is killed while its statement waits': async ({ house, waiting }) => {
    const pid = await waiting();
    process.kill(pid, 'SIGKILL');
    await until(async () => (await house.admin('select 1').catch(() => [])).length === 1);
  },
};

interface Dying {
  readonly own: Killable;
  readonly house: ControlHouse;
  readonly gateways: readonly Gateway[];
  /** A gateway's statement that waits for a lock, by the process id of its backend. */
  waiting(): Promise<number>;
}

/** What a machine that does other things too adds to every wait: this process alone is late by a fraction of it. ms */
function stalls(): { allowed(): number; end(): void } {
  let last = performance.now();
  let longest = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 50);
    last = now;
  }, 50);
  return { allowed: () => 4 * longest, end: () => clearInterval(timer) };
}

/** The status of a question with a token. */
async function used(gateway: Gateway, token: string): Promise<number> {
  return (
    await gateway.rest(
      '/osl/query',
      { osql: 'select id from osl.entities.account where id = 1' },
      '',
      false,
      token,
    )
  ).status;
}

function fragmentOf(metric: string): string {
  return `metrics:\n  ${metric}: { entity: account, expression: count(id) }\n`;
}
