import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { readRecords } from '../../../audit/index.js';
import { mintToken } from '../../../policy/index.js';
import type { Effect, ShadowRow } from '../../../src/ask/shadow/shadow-report.js';
import { EFFECTS } from '../../../src/ask/shadow/shadow-report.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { checkedListener, type Members } from './admin-listener.js';
import { adminToken, files, openStore } from './store.js';
import { asked, type Place, served } from './support.js';

/** A policy that is compared with the served one on real questions: its report, and that nothing else shows of it. */

t.setTimeout(180_000);

const SHADOW = '/admin/policy/shadow';

/** Questions that `wire` asks. */
const WIRE_QUESTIONS = 6;

const SCRIPT = `
  create schema shop;
  create table shop.account (id int primary key, name text, email text, region text);
  insert into shop.account
    select n, 'name-' || n, 'secret-' || n || '@example.org', case n % 2 when 0 then 'eu' else 'us' end
    from generate_series(1, 20) as n;
  create table shop.big (id int primary key, account int);
  insert into shop.big select n, 1 + n % 20 from generate_series(1, 20) as n;
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;`;

const MANIFEST = `version: 1
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      shop.account:
        columns:
          id: { type: int4 }
          name: { type: text }
          email: { type: text, sensitivity: pii }
          region: { type: text }
      shop.big: { columns: { id: { type: int4 }, account: { type: int4 } } }
entities:
  big: { source: db.shop.big, primary_key: [id], columns: { id: { column: id }, account: { column: account } } }
  account:
    source: db.shop.account
    primary_key: [id]
    columns: { id: { column: id }, name: { column: name }, email: { column: email }, region: { column: region } }
`;

const ALL = 'columns: [id, name, email, region]';

/** Grants of one role, before and under the shadow policy. Each role has one subject. */
const ROLES: Readonly<Record<string, readonly [before: string, after: string]>> = {
  same: [`{ on: account, ${ALL} }`, `{ on: account, ${ALL} }`],
  refused: [`{ on: account, ${ALL} }`, '{ on: account, columns: [id] }'],
  nothing: [`{ on: account, ${ALL} }`, '{ on: big, columns: [id] }'],
  allowed: [`{ on: account, ${ALL} }`, `{ on: account, ${ALL} }, { on: big, columns: [id] }`],
  masked: [`{ on: account, ${ALL}, unmask: [pii] }`, `{ on: account, ${ALL} }`],
  shown: [`{ on: account, ${ALL} }`, `{ on: account, ${ALL}, unmask: [pii] }`],
  narrowed: [`{ on: account, ${ALL} }`, `{ on: account, ${ALL}, rows: "region = 'eu'" }`],
  widened: [
    `{ on: account, ${ALL}, rows: "region = 'eu' and id < 10" }`,
    `{ on: account, ${ALL}, rows: "region = 'eu'" }`,
  ],
  other: [
    `{ on: account, ${ALL}, rows: "region = attribute('region')" }`,
    `{ on: account, ${ALL}, rows: "region = attribute('region')" }`,
  ],
  team: [
    `{ on: account, ${ALL}, rows: "id = attribute('accounts')" }`,
    `{ on: account, ${ALL}, rows: "id = attribute('accounts') and region = 'eu'" }`,
  ],
};

function policy(side: 0 | 1): string {
  const region = ['eu', 'us'][side];
  const subjects = Object.keys(ROLES).map((name) =>
    name === 'other'
      ? `  user:other: { ceiling: [other], attributes: { region: ${region} } }`
      : `  user:${name}: { ceiling: [${name}]${name === 'team' ? ', attributes: { team: 3 }' : ''} }`,
  );
  const roles = Object.entries(ROLES).map(([name, both]) => `  ${name}: { grants: [${both[side]}] }`);
  return `version: 1
tenant: demo
subjects:
  user:admin: { ceiling: [same], admin: [TENANT_ADMIN] }
${subjects.join('\n')}
attributes:
  accounts: { on: big, column: account, rows: "id = attribute('team')", max_age: 60 }
roles:
${roles.join('\n')}
masks: { pii: hash }
limits: { query: 100000, catalog: 1000, authoring: 1000 }
`;
}

const SERVED = policy(0);
const DRAFT = policy(1);

const store = await openStore(t, 'a shadow policy', SCRIPT);
if (store !== null) {
  const env = { STORE_URL: store.postgres.readerUrl, OSL_ADMIN_PORT: '0' };
  for (const workers of ['1', '2'])
    await t.test(`of ${workers} process(es)`, async (t) => {
      const place = files(MANIFEST, SERVED);
      const server = await served(t, place, { ...env, OSL_WORKERS: workers });
      await ofServer(t, server, place, Number(workers));
      server.signal('SIGTERM');
      t.match(await server.ended, { code: 0 });
    });
}

async function ofServer(t: Test, server: Server, place: Place, workers: number): Promise<void> {
  const { openapi, ask } = await checkedListener(server);
  const get = async () => (await ask('get', SHADOW, await adminToken(place))).body;
  const start = async (body: Members, token?: string) =>
    ask('post', `${SHADOW}/start`, token ?? (await adminToken(place)), body);
  const stop = async () => ask('post', `${SHADOW}/stop`, await adminToken(place), {});
  const tokens = new Map<string, string>();
  for (const name of Object.keys(ROLES)) tokens.set(name, await tokenOf(place, name));
  const tokenFor = (name: string): string => tokens.get(name) ?? '';
  const rest = (name: string, osql: string) =>
    asked(server, '/osl/query', { osql }, { authorization: `Bearer ${tokenFor(name)}` });
  const settled = async () => {
    for (;;) {
      const body = await get();
      if (shadowIn(body)['waiting'] === 0) return body;
      await sleep(50);
    }
  };
  const processes = { all: workers, comparing: workers };

  /** Questions of every role over both surfaces; returns their answers. */
  const questions = async (): Promise<readonly unknown[]> => {
    const answers: unknown[] = [];
    for (const name of Object.keys(ROLES)) {
      for (const id of [1, 2, 4, 12]) {
        const { status, body } = await rest(
          name,
          `select name, email from osl.entities.account where id = ${id}`,
        );
        answers.push([name, status, withoutIds(body)]);
      }
      const { status, body } = await rest(name, 'select id from osl.entities.big where id = 4711');
      answers.push([name, status, withoutIds(body)]);
      answers.push(await wire(server, `user:${name}`, tokenFor(name)));
    }
    return answers;
  };

  await t.test('nobody but an admin starts, reads or stops one', async (t) => {
    const analyst = tokenFor('same');
    const refused = { status: 403, body: { code: 'E2101' } };
    t.match(await start({ policy: DRAFT }, analyst), refused);
    t.match(await ask('get', SHADOW, analyst), refused);
    t.match(await ask('post', `${SHADOW}/stop`, analyst, {}), refused);
    t.match(await get(), { shadow: null, processes: { all: workers, comparing: 0 } });
  });

  await t.test('a policy that could not serve is refused with its problems', async (t) => {
    const wrong = DRAFT.replace('on: account', 'on: acount');
    t.match(await start({ policy: wrong }), {
      status: 409,
      body: { code: 'E0534', detail: /the policy has problems: roles\.same\.grants\.0\.on: .*acount/ },
    });
    t.match(await start({ policy: 'version: [' }), {
      status: 409,
      body: { code: 'E0534', detail: /the policy has problems: line 1: / },
    });
    t.match(await start({ policy: DRAFT, for_seconds: 0 }), { status: 400, body: { code: 'E0511' } });
    t.match(await start({}), { status: 400, body: { code: 'E0511' } });
    t.match(await get(), { shadow: null });
  });

  const before = await questions();

  await t.test('answers are the same with one, and it tells what would differ, by caller', async (t) => {
    const started = await start({ policy: DRAFT, for_seconds: 600 });
    t.match(started, {
      status: 200,
      body: { shadow: { state: 'running', by: 'user:admin', questions: 0 }, processes },
    });
    t.match(await start({ policy: DRAFT }), { status: 409, body: { code: 'E0534', hint: /stop it first/ } });
    t.strictSame(await questions(), before, 'no answer differs');
    const body = await settled();
    t.match(body, {
      shadow: { not_compared: { queue_full: 0, too_many: 0, model_changed: 0, failed: 0 } },
      processes,
    });
    const shadow = shadowIn(body);
    // Four questions and one about `big` over REST; those over the wire are counted below.
    const each = 5 + WIRE_QUESTIONS;
    t.equal(shadow['questions'], each * Object.keys(ROLES).length);
    const rows = rowsIn(body);
    const ofAccount = 4 + WIRE_QUESTIONS;
    const effects: Readonly<Record<string, Effect>> = {
      refused: 'refused',
      masked: 'masked',
      shown: 'shown',
      narrowed: 'narrower',
      widened: 'wider',
      other: 'other_rows',
      team: 'narrower',
    };
    for (const [name, effect] of Object.entries(effects)) {
      const found = rows.filter(({ chain }) => chain[0] === `user:${name}`);
      t.strictSame(
        found.map((row) => [row.object, row.questions, ...EFFECTS.map((one) => row[one])]),
        [['osl.entities.account', ofAccount, ...EFFECTS.map((one) => (one === effect ? ofAccount : 0))]],
        name,
      );
    }
    t.match(rowOf(rows, 'masked', 'account'), { masked_columns: [{ column: 'email', mask: 'hash' }] });
    t.match(rowOf(rows, 'shown', 'account'), { shown_columns: ['email'] });
    t.match(rowOf(rows, 'refused', 'account'), { codes: ['E0512'] });
    t.match(rowOf(rows, 'allowed', 'big'), { questions: 1, allowed: 1, codes: [/^E/] });
    t.match(rowOf(rows, 'nothing', 'account'), { questions: ofAccount, refused: ofAccount });
    t.match(rowOf(rows, 'nothing', 'big'), { questions: 1, allowed: 1 });
    t.equal(rowOf(rows, 'same', 'account'), undefined);
    t.match(rowOf(rows, 'masked', 'account')?.examples, [
      { shape: 'select name, email from osl.entities.account where id = ?', fingerprint: /^[0-9a-f]{16}$/ },
    ]);
    t.notMatch(JSON.stringify(body), /4711|secret-|name-\d|'eu'|"us"/, 'no literal and no value of a row');
  });

  if (workers > 1) {
    t.strictSame(openapi.faults, []);
    return;
  }

  await t.test('a known shape is counted, whichever way it takes', async (t) => {
    const row = async () => rowOf(rowsIn(await settled()), 'masked', 'account');
    const counted = (await row())?.masked ?? 0;
    const fast = await routed(ask, place);
    const client = await connected(server, 'user:masked', tokenFor('masked'));
    for (let n = 0; n < 100; n++)
      await client.query(`select name, email from osl.entities.account where id = ${100_000 + n}`);
    await client.end();
    t.equal((await row())?.masked, counted + 100);
    t.ok((await routed(ask, place)) - fast >= 90, 'most of them on the fast path');
    t.notMatch(JSON.stringify(await get()), /1000\d\d/);
  });

  await t.test('the command tells the same', async (t) => {
    const draft = join(dirname(place.policy), 'draft.yaml');
    writeFileSync(draft, DRAFT);
    const flags = ['--subject', 'user:admin', '--data-dir', place.dataDir, '--policy', place.policy];
    const report = await osl(['policy', 'shadow', 'report', ...flags]);
    t.match(report, {
      code: 0,
      stdout: /user:masked: osl\.entities\.account: \d+ masked \(email: hash\)\n {4}\d+ × select name, email/,
    });
    t.match(report.stdout, /user:refused: osl\.entities\.account: \d+ refused \(E0512\)/);
    t.match(await osl(['policy', 'shadow', 'stop', ...flags]), { code: 0, stdout: /: stopped 20/ });
    t.match(await get(), { shadow: { state: 'stopped' }, processes: { all: workers, comparing: 0 } });
    const again = await osl(['policy', 'shadow', 'start', draft, '--for', '2h', ...flags]);
    t.match(again, { code: 0, stdout: /: running; started .* by user:admin, until/ });
    t.match(await osl(['policy', 'shadow', 'start', draft, '--for', 'soon', ...flags]), { code: 2 });
    t.match(await osl(['policy', 'shadow', 'start', draft, '--for', '8d', ...flags]), {
      code: 2,
      stderr: /at most 7d/,
    });
    t.equal((await stop()).status, 200);
  });

  await t.test('it ends by itself, and the last report stays', async (t) => {
    t.equal((await start({ policy: DRAFT, for_seconds: 1 })).status, 200);
    await rest('refused', 'select name from osl.entities.account where id = 1');
    await sleep(1_200);
    t.match(await get(), {
      shadow: { state: 'expired', questions: 1, ended_at: String },
      processes: { comparing: 0 },
    });
    await rest('refused', 'select name from osl.entities.account where id = 1');
    t.match(await get(), { shadow: { questions: 1 } }, 'it counts nothing any more');
  });

  await t.test('a change of what is served does not end it', async (t) => {
    t.equal((await start({ policy: DRAFT })).status, 200);
    await rest('masked', 'select email from osl.entities.account where id = 1');
    await settled();
    writeFileSync(place.policy, SERVED.replace('unmask: [pii]', 'unmask: []'));
    t.equal((await ask('post', '/admin/reload', await adminToken(place))).status, 200);
    await rest('masked', 'select email from osl.entities.account where id = 1');
    t.match(
      await settled(),
      { shadow: { questions: 2, same: 1, different: 1 } },
      'the second question sees the same',
    );
    const described = '  account:\n    description: who pays\n    source';
    writeFileSync(place.manifest, MANIFEST.replace('  account:\n    source', described));
    t.equal((await ask('post', '/admin/reload', await adminToken(place))).status, 200);
    for (let same: unknown = 1; same === 1; same = shadowIn(await settled())['same'])
      await rest('masked', 'select email from osl.entities.account where id = 1');
    t.match(await settled(), { shadow: { state: 'running', same: 2, different: 1 } }, 'nor another manifest');
    t.equal((await stop()).status, 200);
  });

  await t.test('who started and stopped it is on record', async (t) => {
    const found = await records(place, workers);
    const of = (action: string, outcome: string | null = 'ok') =>
      found.filter((r) => r.action === action && r.outcome === outcome && r.subject === 'user:admin');
    t.equal(of('admin_shadow_start').length, 4);
    t.match(JSON.parse(of('admin_shadow_start')[0]?.detail ?? '{}'), {
      shadow: /^[0-9a-f]{32}$/,
      until: /^20/,
    });
    t.equal(of('admin_shadow_stop').length, 3);
    t.ok(of('admin_shadow_report').length > 3);
    t.ok(found.some((r) => r.action === 'admin_shadow_start' && r.code === 'E2101' && r.decision === 'deny'));
    t.ok(found.some((r) => r.action === 'admin_shadow_start' && r.code === 'E0534'));
  });
  t.strictSame(openapi.faults, []);
}

function shadowIn(body: Members): Members {
  return body['shadow'] as Members;
}

function rowsIn(body: Members): readonly ShadowRow[] {
  return shadowIn(body)['rows'] as readonly ShadowRow[];
}

function rowOf(rows: readonly ShadowRow[], name: string, entity: string): ShadowRow | undefined {
  return rows.find((row) => row.chain[0] === `user:${name}` && row.object === `osl.entities.${entity}`);
}

/** An answer of REST without the id of its request, and without the versions that a reload changes. */
function withoutIds(body: string): string {
  return body.replace(/"request_id":"[^"]*"/g, '');
}

/** The answers to six questions over the wire: four in one shape, and a prepared statement twice. */
async function wire(server: Server, user: string, token: string): Promise<readonly unknown[]> {
  const client = await connected(server, user, token);
  const answers: unknown[] = [];
  const outcome = (asking: Promise<pg.QueryResult>) =>
    asking.then(
      ({ rows }) => rows,
      (error: unknown) => String(error),
    );
  for (const id of [1, 2, 4, 12])
    answers.push(
      await outcome(client.query(`select name, email from osl.entities.account where id = ${id}`)),
    );
  for (const id of [1, 2]) {
    const text = 'select name, email from osl.entities.account where id = $1';
    answers.push(await outcome(client.query({ name: 'one', text, values: [id] })));
  }
  await client.end();
  return answers;
}

async function connected(server: Server, user: string, password: string): Promise<pg.Client> {
  const { pgPort } = server.record();
  const client = new pg.Client({ host: '127.0.0.1', port: Number(pgPort), user, database: 'osl', password });
  await client.connect();
  return client;
}

async function routed(
  ask: (method: 'get', path: string, token: string) => Promise<{ readonly body: Members }>,
  place: Place,
): Promise<number> {
  const { body } = await ask('get', '/admin/caches', await adminToken(place));
  const caches = body['caches'] as readonly { readonly cache: string; readonly hits: number }[];
  return caches.filter(({ cache }) => cache === 'routes').reduce((sum, { hits }) => sum + hits, 0);
}

function tokenOf({ dataDir }: Place, name: string): Promise<string> {
  const claims = { tenant: 'demo', chain: [`user:${name}`], aclRoles: [name] };
  return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(dataDir).signing });
}

async function records({ dataDir }: Place, workers: number) {
  const root = join(dataDir, 'audit');
  const dirs = workers === 1 ? [root] : [1, 2].map((n) => join(root, `worker-${n}`));
  const found = [];
  for (const dir of dirs) for await (const record of readRecords(dir)) found.push(record);
  return found;
}
