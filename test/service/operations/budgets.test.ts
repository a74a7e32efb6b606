import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { osl, ROOT, type Server } from '../../tools/cli/support.js';
import { adminAsks, listIn } from './admin-listener.js';
import { ACCOUNTS_MANIFEST, adminToken, files, openStore, tables } from './store.js';
import { asked, type Place, type Reply, served } from './support.js';

/** Budgets of agents, from outside: whose use they count, how they refuse, and how exactly gateways count together. */

t.setTimeout(240_000);

const ROWS = 20;
const ALL = 'select id, name from osl.entities.account';
const ONE = `${ALL} where id = 1`;
const CHAIN = ['user:ann', 'user:scout'];

/** The example of `docs/policy.md`, section Budgets. */
function documentedLimits(): readonly unknown[] {
  const page = readFileSync(join(ROOT, 'docs/policy.md'), 'utf8');
  const section = page.slice(page.indexOf('\n## Budgets\n'));
  const [, example = ''] = /```yaml\n([^`]*)```/.exec(section) ?? [];
  return parse(example).roles.agent.limits;
}

const ROLES: Readonly<Record<string, readonly unknown[]>> = {
  agent: documentedLimits(),
  planned: [{ name: 'planned', per: 'day', each: 'chain', cost: 5 }],
  busy: [
    { name: 'few', per: 'day', each: 'chain', requests: 1_000 },
    { name: 'rows', per: 'day', each: 'chain', rows: 10_000 },
  ],
};

const SUBJECTS: Readonly<Record<string, string>> = {
  'user:ann': 'agent',
  'user:bob': 'agent',
  'user:scout': 'agent',
  'user:planner': 'planned',
  'user:planner-too': 'planned',
  'user:busy': 'busy',
  'user:busy-too': 'busy',
};

const POLICY = JSON.stringify({
  version: 1,
  tenant: 'demo',
  subjects: {
    ...Object.fromEntries(Object.entries(SUBJECTS).map(([name, role]) => [name, { ceiling: [role] }])),
    'user:admin': { ceiling: ['busy'], admin: ['TENANT_ADMIN'] },
  },
  roles: Object.fromEntries(
    Object.entries(ROLES).map(([name, limits]) => [
      name,
      { grants: [{ on: 'account', columns: ['id', 'name'] }], limits },
    ]),
  ),
  masks: {},
  limits: { query: 100_000, catalog: 1_000, authoring: 1_000 },
});

interface Gateway {
  readonly server: Server;
  readonly place: Place;
}

interface Sender {
  readonly chain?: readonly string[];
  /** The claim of the token. */
  readonly claim?: unknown;
  /** The header. */
  readonly task?: string;
}

function tokenOf({ place }: Gateway, { chain = CHAIN, claim }: Sender): Promise<string> {
  const others = claim === undefined ? {} : { osl_task: claim };
  return mintToken(
    { tenant: 'demo', chain, aclRoles: [SUBJECTS[chain.at(-1) ?? ''] ?? ''], others },
    { algorithm: 'HS256', secret: tenantKeys(place.dataDir).signing },
  );
}

async function ask(gateway: Gateway, sender: Sender, osql = ONE): Promise<Reply> {
  const authorization = `Bearer ${await tokenOf(gateway, sender)}`;
  const named = sender.task === undefined ? {} : { 'osl-task': encodeURIComponent(sender.task) };
  return asked(gateway.server, '/osl/query', { osql }, { authorization, ...named });
}

async function wireClient(
  t: Test,
  gateway: Gateway,
  { chain = CHAIN, options }: { readonly chain?: readonly string[]; readonly options?: string } = {},
): Promise<pg.Client> {
  const { pgPort } = gateway.server.record();
  const login = { host: '127.0.0.1', port: Number(pgPort), user: chain.at(-1), database: 'osl' };
  const password = await tokenOf(gateway, { chain });
  const client = new pg.Client({ ...login, password, ...(options !== undefined && { options }) });
  await client.connect();
  t.teardown(() => client.end());
  return client;
}

async function callTool(gateway: Gateway, meta: object): Promise<Readonly<Record<string, unknown>>> {
  const headers = {
    authorization: `Bearer ${await tokenOf(gateway, {})}`,
    accept: 'application/json, text/event-stream',
  };
  const params = { name: 'semantic_query', arguments: { osql: ONE }, _meta: meta };
  const message = { jsonrpc: '2.0', id: 7, method: 'tools/call', params };
  const { body } = await asked(gateway.server, '/mcp', message, headers);
  const [, data = body] = /^data: (.*)$/m.exec(body) ?? [];
  return JSON.parse(data).result.structuredContent;
}

const store = await openStore(
  t,
  'budgets of agents',
  tables(`select g, repeat('n', 100) from generate_series(1, ${ROWS}) g`),
);
if (store !== null) {
  const { postgres } = store;
  const started = async (env: Readonly<Record<string, string>>): Promise<Gateway> => {
    const manifest = ACCOUNTS_MANIFEST.replace('version: 1', 'version: 1\ntenant: demo');
    const place = files(manifest, POLICY);
    return { place, server: await served(t, place, { STORE_URL: postgres.readerUrl, ...env }) };
  };
  const gateway = await started({ OSL_CONTROL_URL: postgres.url, OSL_ADMIN_PORT: '0' });
  const gateways = [gateway, await started({ OSL_LIMITS_URL: postgres.url })];

  t.test('the documented example: a task of a chain, on each surface', async (t) => {
    t.match(JSON.parse((await ask(gateway, {})).body), {
      code: 'E0532',
      detail: /counts per task, and this request names none: agent_task: 20 requests per task/,
    });
    for (const claim of ['', 'a\nb', ['a', 'b'], 'x'.repeat(201)])
      t.match(JSON.parse((await ask(gateway, { claim })).body), { code: 'E0532' }, 'no name of a task');

    for (let n = 0; n < 20; n++) t.equal((await ask(gateway, { claim: 'T1', task: 'other' })).status, 200);
    const refused = await ask(gateway, { claim: 'T1', task: 'other' });
    const problem = JSON.parse(refused.body);
    t.match(problem, {
      code: 'E4290',
      detail:
        'a limit of the policy is used up: agent_task: 20 requests per task of the chain user:ann > user:scout',
    });
    const wait = Number(refused.headers['retry-after']);
    t.ok(wait > 86_000 && wait <= 86_400, 'a task is kept for a day');
    const [, renewsAt = ''] = /it renews at (\S+), in/.exec(problem.hint) ?? [];
    t.ok(Math.abs(Date.parse(renewsAt) - Date.now() - 1_000 * wait) < 5_000, renewsAt);
    t.equal((await ask(gateway, { task: 'other' })).status, 200, 'the token came first');
    const forBob = { chain: ['user:bob', 'user:scout'], task: 'T1' };
    t.equal((await ask(gateway, forBob)).status, 200, 'another chain');

    const client = await wireClient(t, gateway);
    await t.rejects(client.query(ONE), { code: '22023', hint: /SET osl\.task/ });
    await t.rejects(client.query(`set osl.task = '${'x'.repeat(201)}'`), { code: '22023' });
    await client.query(`set osl.task = 'other'`);
    for (let n = 0; n < 19; n++) await client.query(ONE);
    await t.rejects(client.query(ONE), {
      code: '53400',
      message: /agent_task: 20 requests per task of the chain user:ann > user:scout/,
      hint: /it renews at \d{4}-/,
    });
    await client.query(`set osl.task = 'third'`);
    t.equal((await client.query(ONE)).rows.length, 1);
    const named = await wireClient(t, gateway, { options: '-c osl.task=T1' });
    await t.rejects(named.query(ONE), { code: '53400' }, 'the same count as over REST');

    t.match(await callTool(gateway, {}), { problem: { code: 'E0532' } });
    t.match(await callTool(gateway, { 'osl/task': 5 }), { problem: { code: 'E0532' } });
    t.match(await callTool(gateway, { 'osl/task': 'T1' }), {
      problem: { code: 'E4290', detail: /agent_task/, hint: /it renews at/ },
    });
    t.match(await callTool(gateway, { 'osl/task': 'fourth' }), { row_count: 1 });

    const admin = await adminToken(gateway.place);
    const use = async (query: string) =>
      listIn((await adminAsks(gateway.server, 'get', `/admin/limits?${query}`, admin)).body, 'quotas');
    const [requests] = await use(`chain=${CHAIN}&task=T1`);
    t.match(requests, { name: 'agent_day', unit: 'requests', whose: 'user:scout', per: 'day' });
    t.ok(Number(requests?.['used']) >= 40);
    t.match(
      (await use(`chain=${CHAIN}&task=T1`)).filter(({ name }) => name === 'agent_task'),
      [
        {
          unit: 'requests',
          whose: 'the chain user:ann > user:scout',
          used: 20,
          most: 20,
          renews_at: /^\d{4}-.*Z$/,
        },
        { unit: 'rows', used: 20, most: 1_000 },
      ],
    );
    t.match(
      (await use('subject=user:scout')).filter(({ per }) => per === 'task'),
      [
        { used: null, whose: null },
        { used: null, renews_at: null },
      ],
    );
    t.match(
      (await use('subject=user:planner')).filter(({ name, each }) => name === 'agent_day' && each !== null),
      [{ whose: null }, { whose: null }],
      'limits of a role that the subject cannot use',
    );
    const path = '/admin/audit/records?subject=user:scout&kind=decision&decision=allow&most=200';
    const { body } = await adminAsks(gateway.server, 'get', path, admin);
    const tasks = listIn(body, 'records').map(({ detail }) => String(detail));
    t.equal(tasks.filter((detail) => detail === '{"task":"T1"}').length, 21, 'the log has the task');
    const flags = ['--limits', '--of', CHAIN.join(','), '--task', 'T1', '--data-dir', gateway.place.dataDir];
    const { stdout } = await osl(['ps', ...flags, '--subject', 'user:admin']);
    t.match(
      stdout,
      /agent_task +\| the chain user:ann > user:scout +\| task +\| 20 +\| 20 +\| requests +\| \d{4}-/,
    );
  });

  t.test('cost: what runs is counted, and refuses the next', async (t) => {
    let answered = 0;
    const sender: Sender = { chain: ['user:planner'] };
    for (; answered < 50; answered++) if ((await ask(gateway, sender, ALL)).status !== 200) break;
    t.ok(answered >= 1 && answered < 10, `${answered} questions of cost 1 and more`);
    t.match(JSON.parse((await ask(gateway, sender)).body), {
      code: 'E4290',
      detail: /planned: cost 5 per day of the chain user:planner$/,
    });
    const client = await wireClient(t, gateway, { chain: ['user:planner-too'] });
    const asking = async (): Promise<void> => {
      for (let n = 0; n < 50; n++) await client.query(ALL);
    };
    await t.rejects(asking(), { code: '53400', message: /planned/ }, 'repeated questions too');
  });

  t.test('two gateways at once exceed a budget by less than 1 %', async (t) => {
    /** The rows that clients on the Postgres port of both gateways get before each is refused. */
    const load = async (osql: string, chain: readonly string[]): Promise<number> => {
      const counts = gateways.flatMap((one) =>
        Array.from({ length: 3 }, async () => {
          const client = await wireClient(t, one, { chain });
          let rows = 0;
          try {
            for (;;) rows += (await client.query({ name: 'q', text: osql })).rows.length;
          } catch (error) {
            t.match(error, { code: '53400' });
          }
          return rows;
        }),
      );
      return (await Promise.all(counts)).reduce((sum, rows) => sum + rows, 0);
    };
    for (const [osql, subject, most] of [
      [ONE, 'user:busy', 1_000],
      [`${ALL} where id <= 10`, 'user:busy-too', 10_000],
    ] as const) {
      const rows = await load(osql, [subject]);
      t.comment(`${rows} rows of ${most}`);
      t.ok(rows >= most && rows <= 1.01 * most, `${rows} of ${most}`);
    }
  });
}
