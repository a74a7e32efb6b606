import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { nativeOfRun } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { call, connected } from '../../surfaces/mcp/support.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { bind, execute, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { proveAtOnce } from '../lanes/thrice.js';

/** Rights that hold for some requests only, and those who want them for others. */
tap.setTimeout(300_000);
// Only a native server has sessions that callers share, and so a fast lane.
const postgres = await nativeOfRun();
proveAtOnce();
const rest = await startRest({ mcp: {}, ...(postgres !== null && { postgres }) });
const shop = rest.test;
const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
const pg = createPgFrontend(shop.service, { catalogs });
const { port } = await pg.listen(0, '127.0.0.1');
tap.teardown(async () => {
  await pg.stop(0);
  await catalogs.close();
  await rest.close();
  await postgres?.stop();
});

/** Everybody sees names; addresses of customers only who `terms` let. */
async function serve(terms: string): Promise<void> {
  const policy = SHOP_POLICY.replace(
    '  auditor:\n    grants:\n      - { on: customer, columns: "*", unmask: [pii, secret, birth] }',
    `  auditor:\n    grants:\n      - { on: customer, columns: "*", unmask: [pii, secret, birth], ${terms} }`,
  )
    .replace(
      'user:ada: { ceiling: [auditor, analyst] }',
      'user:ada: { ceiling: [auditor, analyst], purposes: [audit, care] }',
    )
    .concat('\npurposes: { audit: {}, care: {}, ads: {} }\n');
  if (!policy.includes(terms) || !policy.includes('purposes: [audit'))
    throw new Error('the shop has changed');
  writeFileSync(shop.policyFile, policy);
  await shop.open.reload();
}

const CLEAR = /ada@/;
const TEXT = 'select email from customer where id = 1';
const OSQL = 'select email from osl.entities.customer where id = 1';

const login = async (claims = {}): Promise<Client> =>
  Client.login(port, 'user:ada', await shop.token('user:ada', claims));
const said = async (client: Client, text = TEXT): Promise<string> =>
  (await client.ask(query(text))).join('\n');
const asked = async (headers: Record<string, string> = {}, claims = {}): Promise<string> =>
  (await rest.ask('user:ada', { osql: OSQL }, { headers, ...claims })).text;

/** As often as it takes to go by a route, and once more. */
async function often(ask: () => Promise<string>): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let i = 0; i < 9; i++) answers.push(await ask());
  return answers;
}

/** Asks until a question of the wire goes by a route, which takes a machine that is not too busy. */
async function untilFast(ask: () => Promise<string>): Promise<string> {
  const before = pg.fastQuestions;
  let answer = await ask();
  for (let i = 0; i < 300 && postgres !== null && pg.fastQuestions === before; i++) answer = await ask();
  return answer;
}

async function until(moment: number): Promise<void> {
  while (Date.now() < moment) await setTimeout(moment - Date.now());
}

test('a grant ends at once: for routes, open sessions, cursors, portals and what was prepared', async (t) => {
  const ends = Date.now() + 12_000;
  await serve(`ends: "${new Date(ends).toISOString()}"`);
  const client = await login();
  const cursor = await login();
  const held = await login();
  const portal = await login();
  const listing = await login();
  for (const c of [client, cursor, held, portal, listing]) t.teardown(() => c.end());
  t.match(await untilFast(() => said(client)), CLEAR);
  for (const text of await often(() => asked())) t.match(text, CLEAR);
  const fast = pg.fastQuestions;
  if (postgres !== null) t.ok(fast > 0, 'the fast lane has answered');
  await client.ask(parse('s', TEXT), sync);
  const run = async (): Promise<string> => (await client.ask(bind('', 's'), execute(), sync)).join('\n');
  t.match(await untilFast(run), CLEAR);
  const all = 'select email from customer order by id';
  await cursor.ask(query('begin'));
  await cursor.ask(query(`declare c cursor for ${all}`));
  t.match((await cursor.ask(query('fetch 1 from c'))).join('\n'), CLEAR);
  await held.ask(query(`declare c cursor with hold for ${all}`));
  t.match((await held.ask(query('fetch 1 from c'))).join('\n'), CLEAR);
  await portal.ask(query('begin'));
  t.match((await portal.ask(parse('', all), bind('p', ''), execute('p', 1), sync)).join('\n'), CLEAR);
  t.ok(Date.now() < ends, 'all of that was before the end');
  if (postgres !== null) t.ok(pg.fastQuestions > fast);

  await until(ends);
  for (const text of await often(() => said(client))) {
    t.notMatch(text, CLEAR);
    t.match(text, /\[redacted\]/, 'what the other role shows is still there');
  }
  for (const text of await often(() => asked())) t.notMatch(text, CLEAR);
  for (const text of await often(run)) t.notMatch(text, CLEAR);
  for (const [name, c] of Object.entries({ cursor, held })) {
    const text = (await c.ask(query('fetch all from c'))).join('\n');
    t.match(text, /E ERROR 55000/, name);
    t.notMatch(text, /\nD |^D /, name);
  }
  t.match((await portal.ask(execute('p', 1), sync)).join('\n'), /E ERROR 55000/);
  t.notMatch(await asked({}, {}), CLEAR, 'nor for a new token');
});

test('a grant starts by itself, for sessions that were open before', async (t) => {
  const starts = Date.now() + 4_000;
  await serve(`starts: "${new Date(starts).toISOString()}"`);
  const client = await login();
  t.teardown(() => client.end());
  for (const text of await often(() => said(client))) t.notMatch(text, CLEAR);
  t.ok(Date.now() < starts);
  await until(starts);
  for (const text of await often(() => said(client))) t.match(text, CLEAR);
});

test('a network is the one of the socket, whatever headers say', async (t) => {
  await serve('when: { networks: [192.0.2.0/24] }');
  const spoofs: readonly Record<string, string>[] = [
    { 'x-forwarded-for': '192.0.2.1' },
    { 'x-real-ip': '192.0.2.1' },
    { forwarded: 'for=192.0.2.1' },
    { 'x-forwarded-for': '192.0.2.1, 127.0.0.1', via: '1.1 192.0.2.1' },
    { 'true-client-ip': '192.0.2.1', 'x-client-ip': '192.0.2.1', 'cf-connecting-ip': '192.0.2.1' },
  ];
  for (const headers of spoofs) t.notMatch(await asked(headers), CLEAR, JSON.stringify(headers));
  await serve('when: { networks: [127.0.0.0/8, "::1"] }');
  t.match(await asked({ 'x-forwarded-for': '192.0.2.1' }), CLEAR, 'and the other way round');
  const client = await login();
  t.teardown(() => client.end());
  for (const text of await often(() => said(client))) t.match(text, CLEAR);
});

test('a surface is where the question came in', async (t) => {
  const mcp = await connected(rest, 'user:ada', 'auto');
  t.teardown(() => mcp.close());
  const byTool = async (): Promise<string> =>
    JSON.stringify((await call(mcp, 'semantic_query', { osql: OSQL })).content);
  const client = await login();
  t.teardown(() => client.end());
  const ways = { rest: () => asked(), wire: () => said(client), mcp: byTool };
  for (const surface of ['rest', 'wire', 'mcp'] as const) {
    await serve(`when: { surfaces: [${surface}] }`);
    for (const [way, ask] of Object.entries(ways)) {
      for (const text of await often(ask))
        (way === surface ? t.match : t.notMatch)(text, CLEAR, `${way} while it is for ${surface}`);
    }
  }
  await serve('when: { surfaces: [mcp] }');
  const posing = { 'mcp-protocol-version': '2025-11-25', 'mcp-method': 'tools/call', 'user-agent': 'mcp' };
  t.notMatch(await asked(posing), CLEAR, 'REST that says it is MCP');
});

test('a claim is the one of the token, and of the newest', async (t) => {
  await serve('when: { claims: { amr: [mfa] } }');
  t.notMatch(await asked(), CLEAR);
  t.notMatch(await asked({ amr: 'mfa', 'osl-amr': 'mfa' }), CLEAR);
  t.notMatch(await asked({}, { others: { amr: ['pwd'] } }), CLEAR);
  t.match(await asked({}, { others: { amr: ['pwd', 'mfa'] } }), CLEAR);
  const client = await login({ others: { amr: 'mfa' } });
  t.teardown(() => client.end());
  for (const text of await often(() => said(client))) t.match(text, CLEAR);
  await client.ask(query(`set osl.token = '${await shop.token('user:ada')}'`));
  for (const text of await often(() => said(client))) t.notMatch(text, CLEAR);
});

test('a time of day is that of the zone', async (t) => {
  const hour = (offset: number): string =>
    `${String((new Date().getUTCHours() + 24 + offset) % 24).padStart(2, '0')}:00`;
  await serve(`when: { hours: { from: "${hour(2)}", to: "${hour(4)}" }, zone: UTC }`);
  t.notMatch(await asked(), CLEAR);
  await serve(`when: { hours: { from: "${hour(-2)}", to: "${hour(3)}" }, zone: UTC }`);
  t.match(await asked(), CLEAR);
});

test('a purpose counts where policy and token allow it, and stands in the log', async (t) => {
  await serve('for: [audit]');
  t.notMatch(await asked(), CLEAR, 'none');
  for (const text of await often(() => asked({ 'osl-purpose': 'audit' }))) t.match(text, CLEAR);
  for (const text of await often(() => asked({ 'osl-purpose': 'care' }))) t.notMatch(text, CLEAR);
  for (const purpose of ['ads', 'nonsense', '', '%FF', 'audit%00', 'AUDIT', 'audit,care']) {
    const refused = await rest.ask('user:ada', { osql: OSQL }, { headers: { 'osl-purpose': purpose } });
    t.match(refused.json(), { status: 403, code: 'E2101', detail: /this purpose is not allowed/ }, purpose);
  }
  const twice = await rest.send('/osl/query', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await shop.token('user:ada')}`,
      'osl-purpose': ['audit', 'care'],
    },
    body: { osql: OSQL },
  });
  t.equal(twice.status, 403, 'two of them');
  t.match(await asked({}, { others: { purpose: 'audit' } }), CLEAR, 'a token of one purpose says it');
  t.notMatch(await asked({}, { others: { purpose: ['audit', 'care'] } }), CLEAR);
  t.match(
    (
      await rest.ask(
        'user:ada',
        { osql: OSQL },
        { headers: { 'osl-purpose': 'audit' }, others: { purpose: ['care'] } },
      )
    ).json(),
    {
      code: 'E2101',
    },
  );
  const chained = { chain: ['user:ada', 'agent:bot'], aclRoles: ['auditor', 'analyst'] };
  const helped = await rest.ask(
    'agent:bot',
    { osql: OSQL },
    { ...chained, headers: { 'osl-purpose': 'audit' } },
  );
  t.match(helped.json(), { code: 'E2101' }, 'a purpose is below every ceiling of the chain');

  const client = await login();
  t.teardown(() => client.end());
  for (const text of await often(() => said(client))) t.notMatch(text, CLEAR);
  await client.ask(query("set osl.purpose = 'audit'"));
  for (const text of await often(() => said(client))) t.match(text, CLEAR);
  t.match(await said(client, 'select relname from pg_class limit 1'), /D /, 'the catalog answers under it');
  t.match(await said(client, "set osl.purpose = 'ads'"), /E ERROR 42501/);
  t.match(await said(client, 'show osl.purpose'), /D audit/);
  await client.ask(query('reset osl.purpose'));
  for (const text of await often(() => said(client))) t.notMatch(text, CLEAR);
  await client.ask(query('begin'));
  await client.ask(query("set local osl.purpose = 'audit'"));
  t.match(await said(client), CLEAR);
  await client.ask(query('rollback'));
  t.notMatch(await said(client), CLEAR);

  const records = (await shop.records()).filter((r) => r.kind === 'decision' && r.decision === 'allow');
  const purposes = new Set(
    records.map((r) => (r.detail === undefined ? null : JSON.parse(r.detail).purpose)),
  );
  t.ok(purposes.has('audit') && purposes.has('care') && purposes.has(null));
  t.match(await shop.verdict(), { integrity: 'intact' });
});

test('the same rights for another purpose are another record, also by a route', async (t) => {
  await serve('for: [audit, care]');
  const client = await login();
  t.teardown(() => client.end());
  const before = (await shop.records()).length;
  for (const purpose of ['audit', 'care', 'audit', 'care']) {
    await client.ask(query(`set osl.purpose = '${purpose}'`));
    for (const text of await often(() => said(client))) t.match(text, CLEAR);
  }
  const spoken = (await shop.records())
    .slice(before)
    .filter((r) => r.kind === 'decision' && r.action === 'query')
    .map((r) => JSON.parse(r.detail ?? '{}').purpose);
  const nine = (purpose: string) => Array.from({ length: 9 }, () => purpose);
  t.strictSame(spoken, [...nine('audit'), ...nine('care'), ...nine('audit'), ...nine('care')]);
});
