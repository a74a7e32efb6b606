import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import t from 'tap';
import { type AuditRecord, readRecords, verifyAuditLog } from '../../../audit/index.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { connectPg } from '../../support/pg-client.js';
import { osl, type Server, temporary } from '../../tools/cli/support.js';
import { adminToken, files, MANIFEST, openStore } from './store.js';
import { asked, type Place, type Reply, run, served, tokenFor } from './support.js';

/** `osl serve --workers 2`, from outside: one server over a native Postgres for all that is asked of it here. */

/** Questions a second of one subject. */
const LIMIT = 40;
/** Of a table that a test can lock. */
const BIG = 'select id from osl.entities.big';
/** Short, so that it goes fast. */
const NAMED = 'select name from osl.entities.account where id = 1';
const MEASURED = 'select measure(accounts) as n from osl.entities.account';
/** Subjects that ask for more than that, each in a second of its own. */
const BUSY = ['user:busy-1', 'user:busy-2', 'user:busy-3', 'user:busy-4', 'user:busy-5'] as const;
const PASSWORD = 'correct horse';

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:admin: { ceiling: [analyst], admin: [TENANT_ADMIN] }
${BUSY.map((subject) => `  ${subject}: { ceiling: [analyst] }\n`).join('')}roles:
  analyst:
    grants:
      - { on: account, columns: [id, name] }
      - { on: big, columns: [id] }
masks: {}
limits: { query: ${LIMIT}, catalog: 1000, authoring: 1000 }
service_accounts:
  dash: { subject: user:analyst, scram: "${await makeScramVerifier(PASSWORD)}" }
`;

/** Sessions of the wire that one subject may have open. */
const SESSIONS = 5;

const NAMES = 'select name from osl.entities.account order by id';

const store = await openStore(t, 'several workers');
if (store !== null) {
  const { postgres, admin } = store;

  const place = files(MANIFEST, POLICY);
  const env = {
    STORE_URL: postgres.readerUrl,
    OSL_WORKERS: '2',
    OSL_SUBJECT_SESSIONS: `${SESSIONS}`,
    OSL_POLICY_KEEP_SECONDS: '3',
  };
  const server = await served(t, place, env);
  const connect = async (user = 'user:analyst', known?: string): Promise<pg.Client> => {
    const { pgPort } = server.record();
    const password = known ?? (await tokenFor(place.dataDir));
    const client = await connectPg({ port: pgPort, user, password });
    return client;
  };

  /** A session on each worker; a busy machine does not deal connections out strictly in turn. */
  const onBoth = async (): Promise<readonly [pg.Client, pg.Client]> => {
    const found = new Map<number, pg.Client>();
    for (;;) {
      const client = await connect();
      if (found.has(workerOf(client))) await client.end();
      else found.set(workerOf(client), client);
      const [one, other] = [...found.values()];
      if (one !== undefined && other !== undefined) return [one, other];
    }
  };
  /** True if somebody waits for the table that is locked. */
  const waits = async (): Promise<boolean> => {
    const { rows } = await admin.query(
      "select 1 from pg_locks where not granted and relation = 'shop.big'::regclass",
    );
    return rows.length > 0;
  };

  t.test(
    'two workers share both ports, and each records what it answers in a chain of its own',
    async (t) => {
      for (const client of await onBoth()) {
        t.match((await client.query(NAMES)).rows, [{ name: 'ann' }, { name: 'bob' }]);
        await client.end();
      }
      for (const n of [1, 2]) t.ok((await actions(place, n)).includes('login'), `worker ${n} let one in`);
      t.match(await asked(server, '/ready'), { status: 200 });
      const verified = await osl(['audit', 'verify', '--json', '--data-dir', place.dataDir]);
      t.equal(verified.code, 0);
      t.match(JSON.parse(verified.stdout), {
        integrity: 'intact',
        workers: [{ integrity: 'intact' }, { integrity: 'intact' }],
      });
      const keys = join(temporary(), 'keys');
      writeFileSync(keys, readKeys(place));
      t.match(await osl(['audit', 'verify', '--key', keys, '--data-dir', place.dataDir]), { code: 0 });
    },
  );

  t.test(
    'the log of both workers is read as one: tail, prove and check find a record in its chain',
    async (t) => {
      const ids: string[] = [];
      for (const worker of [1, 2])
        for (const r of await recordsOf(place, worker))
          if (r.action === 'login' && r.kind === 'decision') ids.push(r.request_id);
      t.ok(ids.length >= 2);
      const tail = await osl(['audit', 'tail', '--data-dir', place.dataDir, '-n', '1000', '--json']);
      const told = tail.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).request_id);
      for (const id of ids) {
        t.ok(told.includes(id), `tail has ${id}`);
        const proof = await osl(['audit', 'prove', id, '--data-dir', place.dataDir]);
        t.equal(proof.code, 0);
        const file = join(temporary(), 'proof');
        writeFileSync(file, proof.stdout);
        t.match(await osl(['audit', 'check', file, '--data-dir', place.dataDir]), {
          code: 0,
          stdout: new RegExp(id),
        });
      }
      t.match(await osl(['audit', 'prove', 'nobody', '--data-dir', place.dataDir]), { code: 1 });
    },
  );

  t.test(
    'over both workers a subject has as many questions a second as the limit says, and no fewer',
    async (t) => {
      for (const subject of BUSY) {
        const authorization = `Bearer ${await tokenFor(place.dataDir, subject, undefined, 'analyst')}`;
        const began = performance.now();
        const replies = await Promise.all(
          Array.from({ length: 2 * LIMIT }, () =>
            asked(server, '/osl/query', { osql: NAMES }, { authorization }),
          ),
        );
        const seconds = (performance.now() - began) / 1_000;
        const passed = replies.filter(({ status }) => status === 200).length;
        t.equal(replies.filter(({ status }) => status === 429).length, replies.length - passed);
        // On a busy machine the second may be over before all have asked.
        t.ok(passed >= LIMIT && passed <= LIMIT * Math.ceil(seconds), `${passed} in ${seconds} s`);
        if (seconds > 0.95) continue;
        t.equal(passed, LIMIT);
        return;
      }
    },
  );

  t.test('wrong passwords are counted over both workers', async (t) => {
    for (let n = 0; n < 10; n++) await t.rejects(connect('dash', 'a guess'), { code: '28P01' });
    // Each worker has seen five of them.
    for (const _ of [1, 2]) await t.rejects(connect('dash', PASSWORD), { code: '28P01' });
  });

  t.test('what is published by way of one worker serves on both when the author hears so', async (t) => {
    const admin = await adminToken(place);
    const send = (body: object) => asked(server, '/osl/objects', body, { authorization: `Bearer ${admin}` });
    const listed = async () => JSON.parse((await get(server, '/osl/objects', admin)).body);
    const { version: base_version } = await listed();
    const metrics = { accounts: { entity: 'account', expression: 'count(*)' } };
    t.match(await send({ fragment: { metrics }, state: 'draft' }), { status: 200 });
    for (const _ of [1, 2, 3]) t.match(await listed(), { drafts: [{ state: 'draft' }] });
    t.match(await send({ fragment: { metrics }, base_version }), { status: 201 });
    const authorization = `Bearer ${await tokenFor(place.dataDir)}`;
    for (const _ of [1, 2, 3, 4]) {
      t.match(await asked(server, '/osl/query', { osql: MEASURED }, { authorization }), { status: 200 });
      t.match(await listed(), { history: [{ number: 1 }], objects: [{ name: 'metrics.accounts' }] });
    }
    const next = { ...metrics, names: { entity: 'account', expression: 'count(name)' } };
    const base = (await listed()).version;
    const again = { fragment: { metrics: next }, base_version: base };
    const replayed = await Promise.all([1, 2, 3, 4].map(() => send(again)));
    t.strictSame(
      replayed.map(({ status }) => status),
      [401, 401, 401, 401],
      'a token is good for one change, whichever worker it comes to',
    );
    const two = await Promise.all(
      [1, 2].map(async () => {
        const another = { authorization: `Bearer ${await adminToken(place)}` };
        return asked(server, '/osl/objects', again, another);
      }),
    );
    t.strictSame(two.map(({ status }) => status).sort(), [200, 201], 'two at once wait for each other');
    t.match(await listed(), { history: [{ number: 2 }, { number: 1 }] }, 'and make one version');
  });

  t.test('a reload is taken up by both, or by none', async (t) => {
    const authorization = `Bearer ${await tokenFor(place.dataDir)}`;
    const ask = () => asked(server, '/osl/query', { osql: NAMES }, { authorization });
    const open = await onBoth();
    const policy = readFileSync(place.policy, 'utf8');
    writeFileSync(place.policy, policy.replace('columns: [id, name]', 'columns: [id]'));
    server.hangUp();
    await server.said('reloaded: manifest');
    for (const _ of [1, 2, 3, 4]) t.match(await ask(), { status: 400 });
    for (const client of open) await t.rejects(client.query(NAMES), { code: '42703' });
    writeFileSync(place.manifest, MANIFEST.replace('db.shop.account', 'db.shop.nothing'));
    writeFileSync(place.policy, policy);
    server.hangUp();
    await server.said('not reloaded: what was served before is still served');
    for (const _ of [1, 2, 3, 4]) t.match(await ask(), { status: 400 });
    writeFileSync(place.manifest, MANIFEST);
    writeFileSync(place.policy, 'nonsense');
    server.hangUp();
    await server.said('not reloaded: the last valid policy stays in force until');
    for (const _ of [1, 2, 3, 4]) t.match(await ask(), { status: 400 });
    await until(async () => (await ask()).status === 503);
    for (const _ of [1, 2, 3, 4]) t.match(await ask(), { status: 503 });
    writeFileSync(place.policy, policy);
    server.hangUp();
    await until(async () => (await ask()).status === 200);
    for (const _ of [1, 2, 3, 4]) t.match(await ask(), { status: 200 });
    for (const client of open) {
      t.match((await client.query(NAMES)).rowCount, 2);
      await client.end();
    }
  });

  t.test('a cancel request reaches the session that it names, whichever worker it is sent to', async (t) => {
    const [client, other] = await onBoth();
    await admin.query('begin');
    await admin.query('lock table shop.big');
    // Odd and even: the two workers take connections in turn.
    for (const _ of [1, 2, 3]) {
      await until(async () => !(await waits())); // one cancelled before may still wait there
      const [stopped] = await Promise.allSettled([
        client?.query(BIG),
        until(waits).then(() => cancel(server, client)),
      ]);
      t.match(stopped, { status: 'rejected', reason: { code: '57014' } });
    }
    await admin.query('rollback');
    const before = await records(place, 'wire cancel');
    for (const _ of [1, 2]) await cancel(server, client, 1);
    await until(async () => (await records(place, 'wire cancel')) === before + 2);
    t.match((await other?.query(NAMES))?.rowCount, 2);
    for (const open of [client, other]) await open?.end();
  });

  t.test('a caller sees its sessions with both workers, and cancels and ends them', async (t) => {
    const [one, other] = await onBoth();
    const pids = async (): Promise<readonly number[]> =>
      (await one.query('select pid from pg_stat_activity order by pid')).rows.map(({ pid }) => pid);
    const both = [processOf(one), processOf(other)].sort((a, b) => a - b);
    t.same(await pids(), both);
    await admin.query('begin');
    await admin.query('lock table shop.big');
    const stopped = other.query(BIG).catch((error) => error);
    await until(waits);
    const signal = async (what: string, pid: number): Promise<unknown> =>
      (await one.query(`select pg_${what}_backend($1) as done`, [pid])).rows[0].done;
    t.equal(await signal('cancel', processOf(other)), true);
    t.match(await stopped, { code: '57014' });
    await admin.query('rollback');
    t.equal(await signal('cancel', 1), false);
    const ended = new Promise((resolve) => other.on('error', resolve)); // and once more for the closed socket
    t.equal(await signal('terminate', processOf(other)), true);
    t.match(await ended, { code: '57P01' });
    await until(async () => (await pids()).length === 1);
    await one.end();
  });

  t.test('the sessions of a subject are counted over both workers', async (t) => {
    const open: pg.Client[] = [];
    for (let n = 0; n < SESSIONS; n++) open.push(await connect());
    for (const _ of [1, 2]) await t.rejects(connect(), { code: '53300' });
    await open.pop()?.end();
    await until(async () => {
      const again = await connect().catch(() => null);
      if (again !== null) open.push(again);
      return again !== null;
    });
    for (const _ of [1, 2]) await t.rejects(connect(), { code: '53300' });
    for (const client of open) await client.end();
  });

  t.test('one engine answers what both workers are asked of the catalog', async (t) => {
    const [one, other] = await onBoth();
    const tables = "select relname from pg_class where relname in ('account', 'big') order by 1";
    for (const client of [one, other]) {
      t.match((await client?.query(tables))?.rows, [{ relname: 'account' }, { relname: 'big' }]);
      await t.rejects(client?.query('select nothing from pg_class') ?? Promise.resolve(), { code: '42703' });
    }
    t.match((await asked(server, '/metrics')).body, /^osl_catalog_engines 1$/m);
    let reason: unknown = null;
    const stopped = one
      .query('select count(*) from pg_attribute a, pg_attribute b, pg_attribute c')
      .catch((error: unknown) => {
        reason = error;
      });
    // A request that comes before the statement runs stops nothing.
    while (reason === null) await sleep(300).then(() => (reason === null ? cancel(server, one) : null));
    await stopped;
    t.match(reason, { code: '57014', message: 'canceling statement due to user request' });
    t.equal((await other?.query(tables))?.rowCount, 2, 'an engine that was stopped begins anew');
    for (const client of [one, other]) await client?.end();
  });

  t.test('one page has the metrics of all processes', async (t) => {
    const clients = await Promise.all([connect(), connect(), connect()]);
    for (const _ of [1, 2]) {
      const { body } = await asked(server, '/metrics');
      t.match(body, /^osl_wire_sessions 3$/m, 'summed');
      t.match(body, /^osl_policy_loaded 1$/m, 'not summed');
      t.match(body, /^osl_workers 2$/m);
      t.match(body, /^osl_workers_serving 2$/m);
    }
    for (const client of clients) await client.end();
  });

  t.test('a worker that is killed is replaced, and what it left open has its outcome', async (t) => {
    const [client, other] = await onBoth();
    await admin.query('begin');
    await admin.query('lock table shop.big');
    const left = client?.query(BIG);
    left?.catch(() => undefined);
    client?.on('error', () => undefined);
    await until(waits);
    const worker = workerOf(client);
    t.equal(await openDecisions(place, worker), 1, 'it has decided, and not answered');
    const before = await replaced(server);
    process.kill(workersOf(server)[worker - 1] ?? 0, 'SIGKILL');
    await t.rejects(left ?? Promise.resolve());
    t.equal((await other?.query(NAMES))?.rowCount, 2, 'the other worker goes on');
    await until(async () => ((await whileOneDies(replaced(server))) ?? before) > before);
    await admin.query('rollback');
    t.equal(await openDecisions(place, worker), 0);
    const again = await onBoth();
    for (const one of again) t.equal((await one.query(MEASURED)).rowCount, 1, 'it serves what is published');
    t.match(await osl(['audit', 'verify', '--data-dir', place.dataDir]), { code: 0, stdout: /recovered/ });
    t.equal(await replaced(server), before + 1);
    for (const one of [other, ...again]) await one?.end();
  });

  t.test('a worker that is killed under load on the fast lane has recorded what it answered', async (t) => {
    const policy = readFileSync(place.policy, 'utf8');
    const reload = async (text: string): Promise<void> => {
      writeFileSync(place.policy, text);
      const reloads = await records(place, 'service.reload');
      server.hangUp();
      await until(async () => (await records(place, 'service.reload')) >= reloads + 2);
    };
    await reload(policy.replace(`query: ${LIMIT}`, 'query: 1000000'));
    const [pid = 0] = workersOf(server);
    const known = [await allowed(place, 1), await allowed(place, 2)] as const;
    const sessions = [await onBoth(), await onBoth()]; // together they might hold one more than a subject may
    const load = sessions.flat().map((client) => ({ client, worker: workerOf(client), answered: 0 }));
    let over = false;
    const loops = load.map(async (one) => {
      one.client.on('error', () => undefined);
      while (!over) {
        const { rows } = await one.client.query(NAMED);
        one.answered += rows.length;
      }
    });
    const ended = Promise.allSettled(loops);
    const fast = async (): Promise<number> =>
      Number(/^osl_wire_fast_questions (\d+)$/m.exec((await asked(server, '/metrics')).body)?.[1] ?? 0);
    await until(async () => (await fast()) > 200);
    process.kill(pid, 'SIGKILL');
    await until(async () => workersOf(server).length === 2 && !workersOf(server).includes(pid));
    over = true;
    await ended;
    for (const [worker, before] of [
      [1, known[0]],
      [2, known[1]],
    ] as const) {
      const of = load.filter((one) => one.worker === worker);
      const answered = of.reduce((sum, one) => sum + one.answered, 0);
      const recorded = (await allowed(place, worker)) - before;
      t.ok(
        answered > 0 && recorded >= answered,
        `worker ${worker} answered ${answered} times, ${recorded} are on record`,
      );
      // The last outcomes of the worker that lives may come after its answers, those of the other when it is replaced.
      await until(async () => (await openDecisions(place, worker)) === 0);
    }
    t.match(await osl(['audit', 'verify', '--data-dir', place.dataDir]), { code: 0, stdout: /recovered/ });
    for (const { client } of load) await client.end().catch(() => undefined);
    await reload(policy);
  });

  t.test(
    'where workers die one after another the server says that it is not ready, and serves on',
    async (t) => {
      const [steady, first = 0] = workersOf(server);
      const seen = new Set([steady ?? 0]);
      for (let next = first; seen.size < 5; ) {
        seen.add(next);
        process.kill(next, 'SIGKILL');
        await until(async () => {
          next = workersOf(server).find((pid) => !seen.has(pid)) ?? 0;
          return next > 0 || seen.size === 5;
        });
      }
      await until(async () => (await whileOneDies(asked(server, '/ready')))?.status === 503);
      const client = await connect();
      t.equal((await client.query(NAMES)).rowCount, 2);
      await client.end();
    },
  );

  t.test('it stops in order: what was asked has its outcome in each chain', async (t) => {
    const ended = await server.signal('SIGTERM');
    t.match(ended, { code: 0, stderr: /stopped/ });
    t.notOk(existsSync(join(place.dataDir, 'server.json')));
    const verified = await osl(['audit', 'verify', '--json', '--data-dir', place.dataDir]);
    t.match(JSON.parse(verified.stdout), {
      openDecisions: 0,
      recovered: [],
      workers: [{ openDecisions: 0 }, { openDecisions: 0 }],
    });
  });

  t.test('it stops at once while a worker that was killed is being replaced', async (t) => {
    const again = await served(t, place, env);
    const [killed = 0] = workersOf(again);
    const children = (): readonly string[] =>
      (run('pgrep', '-P', String(again.record()['pid'])) ?? '').trim().split('\n');
    const before = new Set(children());
    process.kill(killed, 'SIGKILL');
    await until(async () => children().some((pid) => !before.has(pid)));
    const began = performance.now();
    t.match(await again.signal('SIGTERM'), { code: 0 });
    t.ok(performance.now() - began < 10_000, `${performance.now() - began} ms`);
  });

  t.test(
    'a supervisor that is killed takes its workers with it, and one process ends their chains',
    async (t) => {
      const again = await served(t, place, env);
      const pids = workersOf(again);
      t.equal(pids.length, 2);
      await again.signal('SIGKILL');
      await until(async () => !pids.some(lives));
      const alone = await served(t, place, { ...env, OSL_WORKERS: '1' });
      for (const worker of [1, 2]) t.equal((await actions(place, worker)).at(-1), 'audit.close');
      t.match(await osl(['audit', 'verify', '--data-dir', place.dataDir]), { code: 0 });
      t.match(await alone.signal('SIGTERM'), { code: 0 });
    },
  );
}

if (store !== null)
  t.test('a worker that dies at its start without a reason ends the command, which names it', async (t) => {
    const { dataDir, manifest, policy } = files(MANIFEST, POLICY);
    const dies = join(temporary(), 'dies.cjs');
    writeFileSync(dies, `if (require('node:cluster').isWorker) process.exit(7);`);
    const env = { STORE_URL: store.postgres.readerUrl, NODE_OPTIONS: `--require ${dies}` };
    const args = [
      'serve',
      '--workers',
      '2',
      '--data-dir',
      dataDir,
      '--manifest',
      manifest,
      '--policy',
      policy,
    ];
    t.match(await osl(args, { env }), { code: 1, stderr: /error: worker 1 did not start: .*ended/ });
  });

t.test('an embedded database is refused, for it lives in one process', async (t) => {
  const args = ['serve', '--workers', '2', '--data-dir', join(temporary(), 'data')];
  const example = join(process.cwd(), 'examples', 'supply-chain');
  const [manifest, policy] = ['manifest.yaml', 'policy.yaml'].map((name) => join(example, name));
  t.match(await osl([...args, '--manifest', manifest ?? '', '--policy', policy ?? '']), {
    code: 2,
    stderr: /--workers 2: connector `\w+` is an embedded database, which lives in one process/,
  });
});

async function get(server: Server, path: string, token: string): Promise<Reply> {
  return asked(server, path, null, { authorization: `Bearer ${token}` });
}

/** Asks to cancel what `client` runs, on a connection of its own; `wrong` is added to its key. */
function cancel(server: Server, client: pg.Client | undefined, wrong = 0): Promise<void> {
  const { processID, secretKey } = { processID: 0, secretKey: 0, ...client };
  const packet = Buffer.alloc(16);
  const key = (secretKey + wrong) | 0;
  for (const [i, word] of [16, 80_877_102, processID, key].entries()) packet.writeInt32BE(word, 4 * i);
  const socket = createConnection(Number(server.record()['pgPort']), '127.0.0.1');
  return new Promise((resolve, reject) => {
    socket.once('error', reject).once('close', () => resolve());
    socket.end(packet);
    socket.resume();
  });
}

/** Which worker the session is of: its key says so. */
function workerOf(client: pg.Client | undefined): number {
  return processOf(client) >> 24;
}

/** As in BackendKeyData. */
function processOf(client: pg.Client | undefined): number {
  return { processID: 0, ...client }.processID;
}

/** The processes of the workers, in the order of their numbers: one that was replaced has a later id and start. */
function workersOf(server: Server): readonly number[] {
  const children = run('pgrep', '-P', String(server.record()['pid'])) ?? '';
  return children
    .trim()
    .split('\n')
    .map((pid) => ({ pid: Number(pid), number: numberOf(pid) }))
    .filter(({ number }) => number > 0)
    .sort((a, b) => a.number - b.number)
    .map(({ pid }) => pid);
}

/** The number of the worker whose log a process holds open, or 0 if it has ended. */
function numberOf(pid: string): number {
  try {
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
    return Number(
      open.map((path) => /\/audit\/worker-(\d+)\//.exec(path)?.[1]).find((n) => n !== undefined) ?? 0,
    );
  } catch {
    return 0;
  }
}

/** Where a link leads; nowhere if it is gone, as what a process has open may be. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** How many workers were replaced since the start: on a busy machine one may take up a change too late. */
async function replaced(server: Server): Promise<number> {
  return Number(/^osl_workers_replaced (\d+)$/m.exec((await asked(server, '/metrics')).body)?.[1]);
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function openDecisions({ dataDir }: Place, worker: number): Promise<number> {
  return (await verifyAuditLog(join(dataDir, 'audit', `worker-${worker}`))).openDecisions;
}

/** How many questions worker `n` has let in. */
async function allowed(place: Place, n: number): Promise<number> {
  const found = await recordsOf(place, n);
  return found.filter((r) => r.action === 'query' && r.decision === 'allow').length;
}

/** How often the workers have `action` on record. */
async function records(place: Place, action: string): Promise<number> {
  const both = await Promise.all([1, 2].map((n) => actions(place, n)));
  return both.flat().filter((one) => one === action).length;
}

/** The answer to `question`, or null if its connection was dealt to a worker that was just killed. */
async function whileOneDies<A>(question: Promise<A>): Promise<A | null> {
  try {
    return await question;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') return null;
    throw error;
  }
}

/** Resolves once `holds`, which the test's own time-out bounds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

/** What worker `n` has on record, in order. */
async function actions(place: Place, n: number): Promise<readonly string[]> {
  return (await recordsOf(place, n)).map(({ action }) => action);
}

async function recordsOf({ dataDir }: Place, n: number): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = [];
  for await (const record of readRecords(join(dataDir, 'audit', `worker-${n}`))) found.push(record);
  return found;
}

/** The verifier keys of all chains, as one keeps them elsewhere. */
function readKeys({ dataDir }: Place): string {
  const root = join(dataDir, 'audit');
  const dirs = ['', ...readdirSync(root).filter((name) => name.startsWith('worker-'))];
  return dirs.map((dir) => readFileSync(join(root, dir, 'checkpoint.vkey'), 'utf8')).join('');
}
