import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { compileErrors, validate } from '@readme/openapi-parser';
import pg from 'pg';
import t, { type Test } from 'tap';
import { readRecords } from '../../../audit/index.js';
import { tokenIdIn } from '../../../policy/index.js';
import { ADMIN_METHODS } from '../../../src/surfaces/admin/http.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { adminAsks, checkedListener, listIn, type Members } from './admin-listener.js';
import { adminToken, files, MANIFEST, openStore } from './store.js';
import { asked, type Place, served, tokenFor } from './support.js';

/** The admin listener of `osl serve`, of one process and of two workers, from outside. */

t.setTimeout(120_000);

/** Of a table that a test can lock; the literal is what nobody may be told. */
const SLOW = "select id as hidden_alias from osl.entities.big where id <> 4711 and 's3cret' <> 'x'";

/** Operations whose answers are held to the document here; `insight.test.ts` has the others. */
const ANSWERED = [
  'get /admin/caches',
  'get /admin/history',
  'get /admin/history/statements',
  'get /admin/pools',
  'get /admin/sessions',
  'get /admin/standing',
  'get /admin/tokens/revoked',
  'post /admin/drain',
  'post /admin/reload',
  'post /admin/resume',
  'post /admin/sessions/{id}/cancel',
  'post /admin/shutdown',
];

const store = await openStore(t, 'the admin listener');
if (store !== null) {
  const { postgres, admin: lock } = store;
  for (const workers of ['1', '2']) {
    const place = files();
    const env = {
      STORE_URL: postgres.readerUrl,
      OSL_WORKERS: workers,
      OSL_ADMIN_PORT: '0',
      OSL_ADMIN_PG_PORT: '0',
    };
    await t.test(`of ${workers} process(es)`, async (t) => {
      const server = await served(t, place, env);
      await ofServer(t, server, place, Number(workers), lock, env);
    });
  }

  t.test('other machines reach it by TLS only', async (t) => {
    const { dataDir, manifest, policy } = files();
    const args = ['serve', '--manifest', manifest, '--policy', policy, '--data-dir', dataDir];
    const env = { STORE_URL: postgres.readerUrl, OSL_ADMIN_PORT: '0', OSL_ADMIN_HOST: '0.0.0.0' };
    const { code, stderr } = await osl(args, { env });
    t.equal(code, 2);
    t.match(stderr, /OSL_ADMIN_HOST is 0\.0\.0\.0, which other machines reach/);
  });
}

async function ofServer(
  t: Test,
  server: Server,
  place: Place,
  workers: number,
  lock: pg.Client,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const admin = await adminToken(place);
  const analyst = await tokenFor(place.dataDir);
  const { openapi, ask } = await checkedListener(server);
  const get = (path: string, token: string | null = admin) => ask('get', path, token);
  // A token is good for one change: each has a new one.
  const post = async (path: string, token?: string | null) =>
    ask('post', path, token === undefined ? await adminToken(place) : token);
  const { adminPgPort, pgPort } = server.record();
  const connect = async (port: unknown, user: string, database: string, password: string) => {
    const client = new pg.Client({ host: '127.0.0.1', port: Number(port), user, database, password });
    client.on('error', () => undefined); // one that is ended says so to who asked
    await client.connect();
    return client;
  };
  const names = workers === 1 ? ['server'] : ['worker 1', 'worker 2'];

  await t.test(
    'nobody but an admin is told anything, whatever the path, and each try is on record',
    async (t) => {
      for (const [path, methods] of ADMIN_METHODS) {
        if (path === '/openapi.json') continue;
        const method = methods.startsWith('POST') ? 'POST' : 'GET';
        const real = path.replace('{id}', '1');
        t.match(
          await adminAsks(server, method, real, analyst),
          { status: 403, body: { code: 'E2101' } },
          path,
        );
        t.match(await adminAsks(server, 'PUT', real, admin), { status: 405 }, path);
      }
      // Few of them: whoever has no valid token may ask twenty times a second.
      for (const path of ['/admin/sessions', '/admin/nothing'])
        t.match(await get(path, null), { status: 403, body: { code: 'E2102' } }, `${path} without a token`);
      t.match(await post('/admin/shutdown', null), { status: 403, body: { code: 'E2102' } });
      t.match(await post('/admin/shutdown', 'x'), { status: 401 });
      t.match(await get('/admin/nothing'), { status: 404 });
      t.match(await get('/osl/query'), { status: 404 }, 'questions are not for this listener');
      t.match(await asked(server, '/admin/sessions', null, { authorization: `Bearer ${admin}` }), {
        status: 404,
      });
      await t.rejects(connect(adminPgPort, 'user:analyst', 'osl_admin', analyst), { code: '42501' });
      await t.rejects(connect(adminPgPort, 'user:admin', 'osl', admin), { code: '3D000' });
      await t.rejects(connect(pgPort, 'user:admin', 'osl_admin', admin), { code: '3D000' });
      const denied = (await records(place, workers)).filter((r) => r.code === 'E2101');
      t.ok(
        denied.some((r) => r.action === 'admin_end' && r.subject === 'user:analyst' && r.decision === 'deny'),
      );
      t.ok(denied.some((r) => r.action === 'admin_login' && r.surface === 'wire'));
    },
  );

  await t.test('sessions: who, since when, what shape, which state, and no literal of them', async (t) => {
    const client = await connect(pgPort, 'user:analyst', 'osl', analyst);
    await lock.query('begin; lock table shop.big');
    const running = client.query(SLOW).then(
      () => null,
      (error: unknown) => error,
    );
    const over = asked(server, '/osl/query', { osql: SLOW }, { authorization: `Bearer ${analyst}` });
    const both = await until(async () => {
      const { body } = await get('/admin/sessions');
      const active = listIn(body, 'sessions').filter((s) => s['state'] === 'active');
      return active.length === 2 ? active : null;
    });
    t.strictSame(both.map((s) => s['surface']).sort(), ['rest', 'wire']);
    for (const session of both) {
      t.match(session, { subject: 'user:analyst', chain: ['user:analyst'], fingerprint: /^[0-9a-f]{16}$/ });
      t.equal(
        session['shape'],
        'select id as _1 from osl.entities.big where id < > ? and ? < > ?'.replaceAll('< >', '<>'),
      );
      t.ok(names.includes(String(session['process'])));
    }
    const told = await osl(['ps', '--subject', 'user:admin', '--data-dir', place.dataDir]);
    t.match(told, { code: 0, stdout: /user:analyst \| active/ });
    const top = await osl(['top', '-n', '1', '--subject', 'user:admin', '--data-dir', place.dataDir]);
    t.match(top, { code: 0, stdout: /user:analyst \| active/ });
    t.notMatch(top.stdout, /4711|s3cret/);
    const clients = await psql(server, admin, 'show clients');
    t.match(await psql(server, admin, 'show users'), /^user:analyst\|2$/m);
    for (const text of [JSON.stringify(both), told.stdout, clients]) {
      t.notMatch(text, /4711|s3cret|hidden_alias/);
      t.match(text, /osl\.entities\.big/);
    }
    const wire = String(both.find((s) => s['surface'] === 'wire')?.['id']);
    const rest = String(both.find((s) => s['surface'] === 'rest')?.['id']);
    t.match(await post(`/admin/sessions/${rest}/cancel`), { status: 200, body: { done: 'cancel' } });
    t.match(await over, { status: 499 }, 'the request is stopped');
    t.match(await osl(['kill', wire, '--cancel', '--subject', 'user:admin', '--data-dir', place.dataDir]), {
      code: 0,
    });
    t.match(await running, { code: '57014' }, 'the statement is, and its session goes on');
    await lock.query('rollback');
    t.match((await client.query('select name from osl.entities.account where id = 1')).rows, [
      { name: 'ann' },
    ]);
    const ended = new Promise((resolve) => client.once('end', resolve));
    t.match(await osl(['kill', wire, '--subject', 'user:admin', '--data-dir', place.dataDir]), { code: 0 });
    await ended;
    for (const id of [wire, rest, 'nonsense', '99999999999', "1'; drop"])
      t.match(
        await post(`/admin/sessions/${encodeURIComponent(id)}/end`),
        { status: 404, body: { code: 'E4040' } },
        id,
      );
    const done = await until(async () => {
      const found = (await records(place, workers)).filter(
        (r) => r.action === 'admin_end' && r.outcome === 'ok',
      );
      return found.length > 0 ? found : null;
    });
    t.strictSame(
      done.map((r) => r.detail),
      [JSON.stringify({ session: wire })],
    );
  });

  await t.test('how it stands, pools and caches, of every process', async (t) => {
    const { body } = await get('/admin/standing');
    t.strictSame(
      listIn(body, 'processes').map((p) => p['process']),
      names,
    );
    t.match(listIn(body, 'processes')[0], { draining: false, policy: String, audit: { failing: null } });
    const pools = listIn((await get('/admin/pools')).body, 'pools');
    t.match(pools[0], { connector: 'db', purpose: 'questions', reach: 'open', waiting: 0 });
    t.equal(pools.length, 2 * workers);
    t.equal(listIn((await get('/admin/caches')).body, 'caches').length, 2 * workers);
    const { body: document } = await get('/openapi.json', null);
    const valid = await validate(structuredClone(document) as never); // the parser's own type of it
    t.ok(valid.valid, valid.valid ? 'valid' : compileErrors(valid));
    t.strictSame(Object.keys(Object(document['paths'])).sort(), [...ADMIN_METHODS.keys()].sort());
  });

  await t.test('the last hour of every process together, and its slowest statements', async (t) => {
    const view = await until(async () => {
      const { body } = await get('/admin/history?by=connector');
      const [none, db] = listIn(body, 'lines');
      return sumOf(none, 'refused') > 0 && sumOf(db, 'questions') === 3 ? body : null;
    });
    const [none, db] = listIn(view, 'lines');
    t.match([none, db], [{ name: null }, { name: 'db' }]);
    // Two were stopped; on a machine that is slow, the lock's own time limit was first.
    t.equal(sumOf(db, 'cancelled') + sumOf(db, 'failed'), 2);
    t.equal(sumOf(none, 'questions'), 0, 'requests of admins are no questions');
    const times = stepsOf(db, 'p99_ms').filter((ms) => ms !== null);
    t.ok(times.length > 0 && times.every((ms) => ms > 0 && ms < 60_000));
    const [pool] = listIn(view, 'pools');
    t.match(pool, { connector: 'db' });
    t.ok(Math.max(...stepsOf(pool, 'running').map(Number)) >= 1, 'the sampler saw what a lock held');
    t.ok(Math.max(...stepsOf(view, 'memory_bytes').map(Number)) > workers * 50_000_000, 'of each process');
    t.match((await get('/admin/history?span=day&by=surface')).body, { span: 'day', every_seconds: 300 });
    const from = new Date(Date.now() - 3_000_000).toISOString();
    const until1 = new Date(Date.now() + 60_000).toISOString();
    const { body } = await get(`/admin/history/statements?from=${from}&until=${until1}`);
    const slow = listIn(body, 'statements').filter((s) => String(s['shape']).includes('osl.entities.big'));
    t.same(new Set(slow.map((s) => s['surface'])), new Set(['rest', 'wire']));
    for (const one of slow)
      t.match(one, { fingerprint: /^[0-9a-f]{16}$/, outcome: /^(cancelled|error)$/, code: /^E/ });
    t.ok(slow.every((s) => names.includes(String(s['process']))));
    t.notMatch(JSON.stringify(body), /4711|s3cret|hidden_alias/);
    for (const wrong of [
      'history?span=week',
      'history?by=subject',
      `history/statements?from=${from}&until=${from}`,
      'history/statements?from=2026-01-31T09:00:00Z&until=2026-01-31T10:00:01Z',
    ])
      t.match(await get(`/admin/${wrong}`), { status: 400, body: { code: 'E0511' } }, wrong);
  });

  await t.test('osl_admin through psql: SHOW and commands, as PgBouncer has them', async (t) => {
    for (const shown of ['SERVERS', 'POOLS', 'STATS', 'DATABASES', 'CACHES', 'AUDIT', 'STATE'])
      t.match(await psql(server, admin, `SHOW ${shown};`), names[0] ?? '', shown);
    t.match(await psql(server, admin, 'show version'), /^OSL Gateway \d/m);
    t.match(await psql(server, admin, 'show config'), /^pool_size\|\d+$/m);
    t.match(await psql(server, admin, 'show help'), /^KILL <id>/m);
    t.match(await psql(server, admin, 'show pools; show version'), /OSL Gateway/, 'two in one');
    t.match(await psql(server, admin, 'reload'), /RELOAD/);
    t.match(await psql(server, admin, 'pause'), /PAUSE is not supported/);
    t.match(await psql(server, admin, 'kill 1'), /no session and no running request/);
    for (const nonsense of ['show nothing', 'select 1', 'drop table x', 'kill', 'show pools pools'])
      t.match(await psql(server, admin, nonsense), /this is not a command of osl_admin/, nonsense);
    const client = await connect(adminPgPort, 'user:admin', 'osl_admin', admin);
    const { rows } = await client.query({ text: 'SHOW POOLS', name: 'pools' });
    t.match(rows[0], { database: 'db', purpose: 'questions' }, 'by the extended protocol too');
    await client.end();
  });

  await t.test(
    'drained, it is not ready and takes no sessions, and answers; resumed, it is as before',
    async (t) => {
      const open = await connect(pgPort, 'user:analyst', 'osl', analyst);
      t.match(await psql(server, admin, 'drain'), /DRAIN/);
      t.match(await post('/admin/drain'), { status: 200 }, 'which may be said twice');
      for (const _ of names) {
        t.match(await asked(server, '/ready'), { status: 503 });
        await t.rejects(connect(pgPort, 'user:analyst', 'osl', analyst), { code: '57P03' });
      }
      t.match(
        await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization: `Bearer ${analyst}` }),
        {
          status: 200,
        },
      );
      t.match((await open.query('select 1 as a')).rows, [{ a: 1 }]);
      t.match(await psql(server, admin, 'show state'), /\|true\|/);
      t.match(await post('/admin/resume'), { status: 200 });
      for (const _ of names) t.match(await asked(server, '/ready'), { status: 200 });
      const again = await connect(pgPort, 'user:analyst', 'osl', analyst);
      await Promise.all([open.end(), again.end()]);
    },
  );

  const revoked = await tokenFor(place.dataDir);
  const status = async (token: string): Promise<number> =>
    (await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization: `Bearer ${token}` }))
      .status;
  await t.test('what is revoked is refused by every process at once, and its sessions end', async (t) => {
    const cli = (...args: readonly string[]) =>
      osl(['token', ...args, '--subject', 'user:admin', '--data-dir', place.dataDir]);
    const clients = [];
    for (let i = 0; i < 4; i++) clients.push(await connect(pgPort, 'user:analyst', 'osl', revoked));
    const [session] = listIn((await get('/admin/sessions')).body, 'sessions').filter(
      (s) => s['token_id'] === tokenIdIn(revoked),
    );
    const ends = clients.map((client) => new Promise((resolve) => client.once('end', resolve)));
    t.equal(await status(revoked), 200);
    t.match(await cli('revoke', '--session', String(session?.['id'])), {
      code: 0,
      stdout: new RegExp(`^revoked token ${tokenIdIn(revoked)} `),
      stderr: '',
    });
    for (const _ of clients) t.equal(await status(revoked), 401);
    await Promise.all(ends);
    t.equal(await status(analyst), 200, 'another token of the same subject');
    t.match(await cli('revoke', '--session', '1'), { code: 1, stderr: /no session and no running request/ });
    t.match(await cli('revoke', revoked.slice(0, revoked.lastIndexOf('.'))), {
      code: 2,
      stderr: /this is not a whole token/,
    });
    t.match(await cli('revoke'), { code: 2, stderr: /say what to revoke/ });
    t.match(await cli('revoke', revoked, '--all-of', 'user:analyst'), { code: 2 });
    t.match(await cli('revoked'), { code: 0, stdout: new RegExp(`token +\\| ${tokenIdIn(revoked)}`) });
    t.match(await cli('revoke', '--all-of', 'user:nobody', '--json'), { code: 0, stdout: /"shared":null/ });
    t.equal(listIn((await get('/admin/tokens/revoked')).body, 'revoked').length, 2);
    const done = await until(async () => {
      const found = (await records(place, workers)).filter(
        (r) => r.action === 'admin_revoke' && r.outcome === 'ok',
      );
      return found.length === 2 ? found : null;
    });
    t.strictSame(
      done.map((r) => `${r.subject} ${r.detail}`).sort(),
      [{ session: session?.['id'], token: tokenIdIn(revoked) }, { subject: 'user:nobody' }].map(
        (what) => `user:admin ${JSON.stringify(what)}`,
      ),
    );
  });

  await t.test('a reload says what serves, or why nothing changed', async (t) => {
    t.match(await post('/admin/reload'), { status: 200, body: { reloaded: true, now: [/^manifest/] } });
    writeFileSync(place.manifest, MANIFEST.replace('db.shop.account', 'db.shop.nothing'));
    t.match(await post('/admin/reload'), { status: 200, body: { reloaded: false, why: /nothing/ } });
    writeFileSync(place.manifest, MANIFEST);
  });

  await t.test('shutdown ends it in order, and the log verifies', async (t) => {
    t.match(await post('/admin/shutdown'), { status: 200 });
    t.strictSame(openapi.faults, [], 'every answer was of the shape that the document states');
    t.strictSame([...openapi.checked].sort(), ANSWERED, 'of all these');
    t.match(await server.ended, { code: 0 });
    t.match(await osl(['audit', 'verify', '--data-dir', place.dataDir]), { code: 0 });
  });
  if (workers > 1) return;

  await t.test('a server that begins again knows what was revoked', async (t) => {
    server = await served(t, place, env);
    t.equal(await status(revoked), 401);
    t.equal(await status(analyst), 200);
  });
}

/** What psql prints of one command, on both outputs. */
async function psql(server: Server, token: string, text: string): Promise<string> {
  const { adminPgPort } = server.record();
  const at = ['-h', '127.0.0.1', '-p', String(adminPgPort), '-U', 'user:admin', '-d', 'osl_admin'];
  const env = { ...process.env, PGPASSWORD: token };
  const both = await promisify(execFile)('psql', ['-X', '-A', '-t', ...at, '-c', text], { env }).catch(
    (failed: { readonly stdout: string; readonly stderr: string }) => failed,
  );
  return both.stdout + both.stderr;
}

async function records(place: Place, workers: number) {
  const root = join(place.dataDir, 'audit');
  const dirs = workers === 1 ? [root] : [1, 2].map((n) => join(root, `worker-${n}`));
  const found = [];
  for (const dir of dirs) for await (const record of readRecords(dir)) found.push(record);
  return found;
}

async function until<T>(look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    await sleep(20);
  }
}

/** One value for each step. */
function stepsOf(line: Members | undefined, name: string): readonly (number | null)[] {
  return (line?.[name] ?? []) as readonly (number | null)[]; // of the document's shape
}

function sumOf(line: Members | undefined, name: string): number {
  return stepsOf(line, name).reduce<number>((sum, count) => sum + (count ?? 0), 0);
}
