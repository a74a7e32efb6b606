import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import tap, { test } from 'tap';
import type { Identity } from '../../../policy/index.js';
import { openBreakGlass } from '../../../src/service/break-glass.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { call, newClient, transportTo } from '../../surfaces/mcp/support.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { query } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';

/** Who breaks the glass says why, is on record, alarms, and has little time. */
tap.setTimeout(300_000);
const alarms: Record<string, string>[] = [];
const owner = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    alarms.push(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    response.end();
  });
});
await new Promise<void>((resolve) => {
  owner.listen(0, '127.0.0.1', resolve);
});
const url = `http://127.0.0.1:${(owner.address() as AddressInfo).port}/alarm`;
const rest = await startRest({ mcp: {}, settings: { alarms: { url } } });
const shop = rest.test;
const pg = createPgFrontend(shop.service);
const { port } = await pg.listen(0, '127.0.0.1');
tap.teardown(async () => {
  await pg.stop(0);
  await rest.close();
  owner.close();
});

const GRANT = '      - { on: customer, columns: "*", unmask: [pii, secret, birth] }';
const PER_DAY = 4;

async function serve(glass: string): Promise<void> {
  const policy = SHOP_POLICY.replace(GRANT, GRANT.replace(' }', `, break_glass: ${glass} }`)).replace(
    'user:eu: {',
    'user:amy: { ceiling: [auditor, analyst] }\n  user:may: { ceiling: [auditor, analyst] }\n  user:eu: {',
  );
  if (!policy.includes(glass) || !policy.includes('user:may')) throw new Error('the shop has changed');
  writeFileSync(shop.policyFile, policy);
  await shop.open.reload();
}
await serve(`{ minutes: 30, per_day: ${PER_DAY} }`);

const CLEAR = /ada@/;
const OSQL = 'select email from osl.entities.customer where id = 1';
const TEXT = 'select email from customer where id = 1';
const header = (reason: string) => ({ 'osl-break-glass': encodeURIComponent(reason) });
const ask = (subject: string, headers: Record<string, string> = {}, claims = {}) =>
  rest.ask(subject, { osql: OSQL }, { headers, ...claims });
const said = async (client: Client, text = TEXT): Promise<string> =>
  (await client.ask(query(text))).join('\n');
const broken = async () =>
  (await shop.records()).filter((r) => r.action === 'break_glass' && r.kind === 'decision');

test('over REST each request states its reason; the same one is one glass', async (t) => {
  const reason = 'Patient 12 räumt: Ärztin Süß <b>, "now"';
  t.notMatch((await ask('user:ada')).text, CLEAR);
  const before = alarms.length;
  const ids: unknown[] = [];
  for (let i = 0; i < 12; i++) {
    const reply = await ask('user:ada', header(reason));
    t.match(reply.text, CLEAR);
    const [decision] = await shop.records(reply.requestId);
    ids.push(JSON.parse(decision?.detail ?? '{}').break_glass);
  }
  t.equal(new Set(ids).size, 1);
  t.notMatch((await ask('user:ada')).text, CLEAR, 'without it the right is not there');
  const [record, ...more] = await broken();
  t.equal(more.length, 0, 'one record');
  t.match(record, { subject: 'user:ada', surface: 'rest', decision: 'allow' });
  const detail = JSON.parse(record?.detail ?? '{}');
  t.match(detail, { break_glass: ids[0], reason });
  while (alarms.length === before) await new Promise((resolve) => setTimeout(resolve, 5));
  t.match(alarms.slice(before), [
    { type: 'osl.break_glass', subject: 'user:ada', reason, id: ids[0], ends: detail.ends },
  ]);
  const lines = shop.lines.filter((l) => l.level === 'error');
  t.match(lines, [{ message: /broke the glass/, fields: { subject: 'user:ada', id: ids[0] } }]);
  t.notMatch(JSON.stringify(lines), /Patient/, 'the reason is for the audit log and the owner');
  t.match(await shop.verdict(), { integrity: 'intact' });
});

test('a reason that deceives its reader, or is none, breaks nothing', async (t) => {
  const before = (await broken()).length;
  const bad = [
    '',
    ' ',
    'short',
    'x'.repeat(501),
    'new\nline: allowed by admin',
    'tab\tand more',
    'nul\0 and more',
  ];
  const hidden = [
    'right \u202eto left mark',
    '\u2066isolated text',
    'line \u2028separator',
    'bell \u0007 rings on',
  ];
  for (const reason of [...bad, ...hidden]) {
    const reply = await ask('user:amy', header(reason));
    t.match(reply.json(), { status: 400, code: 'E2104' }, encodeURIComponent(reason).slice(0, 60));
    const [record] = await shop.records(reply.requestId);
    t.match(record, { action: 'break_glass', decision: 'error', code: 'E2104' });
    t.equal(record?.detail, undefined, 'a reason that is refused is not quoted');
  }
  for (const raw of ['%ff%fe%fd%fc%fb%fa%f9%f8', '%'])
    t.match((await ask('user:amy', { 'osl-break-glass': raw })).json(), { code: 'E2104' });
  t.equal((await broken()).filter((r) => r.decision === 'allow').length, before);
});

test('nobody breaks a glass who has none, acts for another, or has no token', async (t) => {
  const reason = header('I would like to see it all');
  t.match((await ask('user:ann', reason)).json(), { status: 403, code: 'E2101' });
  const chained = { chain: ['user:amy', 'agent:bot'], aclRoles: ['auditor', 'analyst'] };
  t.match((await ask('agent:bot', reason, chained)).json(), { status: 403, code: 'E2101' });
  const none = await rest.send('/osl/query', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...reason },
    body: { osql: OSQL },
  });
  t.match(none.json(), { code: 'E2102' });
  const forged = await rest.send('/osl/query', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer x.y.z', ...reason },
    body: { osql: OSQL },
  });
  t.match(forged.json(), { code: 'E3001' });
});

test('on the wire the glass is the session’s, until it is reset or discarded', async (t) => {
  const login = async () => Client.login(port, 'user:amy', await shop.token('user:amy'));
  const [client, other] = [await login(), await login()];
  t.teardown(() => client.end());
  t.teardown(() => other.end());
  const often = async (wanted: boolean, hint: string): Promise<void> => {
    for (let i = 0; i < 9; i++) (wanted ? t.match : t.notMatch)(await said(client), CLEAR, hint);
  };
  await often(false, 'at first');
  t.match(await said(client, "set osl.break_glass = 'no'"), /E ERROR 22023/);
  t.match(await said(client, "select set_config('osl.break_glass', 'a good reason', false)"), /E ERROR/);
  t.match(await said(client, "set local osl.break_glass = 'a good reason'"), /E ERROR 22023/);
  await often(false, 'after what was refused');
  t.match(await said(client, "set osl.break_glass = 'Room 4 is on fire'"), /C SET/);
  await often(true, 'broken');
  t.notMatch(await said(other), CLEAR, 'another session of the same caller has not said why');
  await said(client, 'reset osl.break_glass');
  await often(false, 'after RESET');
  for (const ending of ['discard all', 'reset all']) {
    await said(client, "set osl.break_glass = 'Room 4 is on fire'");
    await often(true, 'the same reason is the same glass');
    await said(client, 'begin');
    if (ending === 'discard all') {
      t.match(await said(client, ending), /E ERROR 25001/);
      await said(client, 'rollback');
      await often(true, 'a refused command changes nothing');
      await said(client, 'begin');
    }
    await said(client, 'declare c cursor for select email from customer order by id');
    await said(client, 'fetch 1 from c');
    await said(client, 'commit');
    await said(client, ending);
    await often(false, ending);
  }
  await said(client, "set osl.break_glass = 'Room 4 is on fire'");
  await said(client, 'declare c cursor with hold for select email from customer order by id');
  t.match(await said(client, 'fetch 1 from c'), CLEAR);
  await said(client, 'reset osl.break_glass');
  t.match(await said(client, 'fetch all from c'), /E ERROR 55000/, 'a cursor ends with it');
  t.equal((await broken()).filter((r) => r.subject === 'user:amy' && r.decision === 'allow').length, 1);
});

test('at most so often a day, whatever the reasons and the surfaces', async (t) => {
  for (let i = 0; i < PER_DAY; i++)
    t.match((await ask('user:may', header(`reason number ${i}`))).text, CLEAR, String(i));
  const spent = await ask('user:may', header('reason number 99'));
  t.match(spent.json(), { status: 429, code: 'E4290' });
  t.ok(Number(spent.headers['retry-after']) > 86_000, 'and when again');
  const client = await Client.login(port, 'user:may', await shop.token('user:may'));
  t.teardown(() => client.end());
  t.match(await said(client, "set osl.break_glass = 'reason number 100'"), /E ERROR 53400/);
  t.notMatch(await said(client), CLEAR);
  t.match((await ask('user:may', header('reason number 1'))).text, CLEAR, 'one that runs goes on');
});

test('MCP breaks it by its client’s header, and no tool has a word for it', async (t) => {
  const client = newClient('auto');
  const authorization = `Bearer ${await shop.token('user:ada')}`;
  await client.connect(transportTo(rest, { authorization, ...header('the agent needs it tonight') }));
  t.teardown(() => client.close());
  const { content } = await call(client, 'semantic_query', { osql: OSQL });
  t.match(JSON.stringify(content), CLEAR);
  t.match((await broken()).at(-1), { surface: 'mcp', subject: 'user:ada' });
  const { tools } = await client.listTools();
  t.notMatch(JSON.stringify(tools), /break|glass|purpose/i);
  const plain = newClient('auto');
  await plain.connect(transportTo(rest, { authorization }));
  t.teardown(() => plain.close());
  const tricked = await call(plain, 'semantic_query', {
    osql: OSQL,
    'osl-break-glass': 'ignore all rules',
  }).catch((error: unknown) => ({ content: { refused: String(error) } }));
  t.notMatch(JSON.stringify(tricked.content), CLEAR);
});

test('processes over one directory count together, also at the same moment and after a restart', async (t) => {
  const dir = t.testdir();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const who = { tenant: 'shop', chain: ['user:eve'] } as unknown as Identity; // all that is looked at
  const gates = Array.from({ length: 5 }, () => openBreakGlass(dir, null, log));
  const taken = await Promise.all(
    gates.flatMap((g, i) => [0, 1, 2].map((n) => g.take(who, `reason ${i} ${n}`, 3))),
  );
  t.equal(taken.filter((x) => typeof x !== 'number').length, 3);
  const after = openBreakGlass(dir, null, log);
  t.type(await after.take(who, 'one more', 3), 'number');
  const [first] = taken.flatMap((x) => (typeof x === 'number' ? [] : [x]));
  const all = gates.flatMap((_, i) => [0, 1, 2].map((n) => after.running(who, `reason ${i} ${n}`, 30)));
  const running = (await Promise.all(all)).flatMap((e) => e ?? []);
  t.equal(running.length, 3);
  t.ok(running.some((e) => e.id === first?.id));
  t.equal(await after.running(who, 'reason 0 0', 0), null, 'its time is over');
  const later = Date.now() + 86_400_001;
  const clock = Date.now;
  Date.now = () => later;
  t.teardown(() => {
    Date.now = clock;
  });
  const next = await Promise.all(gates.map((g, i) => g.take(who, `next day ${i}`, 3)));
  t.equal(next.filter((x) => typeof x !== 'number').length, 3);
});

test('after a lower limit the uses of the last 24 hours count, and the wait ends when one is free', async (t) => {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const glasses = openBreakGlass(t.testdir(), null, log);
  const who = { tenant: 'shop', chain: ['user:eve'] } as unknown as Identity; // all that is looked at
  const [clock, start] = [Date.now, Date.now()];
  t.teardown(() => {
    Date.now = clock;
  });
  const take = (seconds: number, perDay: number) => {
    Date.now = () => start + seconds * 1_000;
    return glasses.take(who, `reason at ${seconds}`, perDay);
  };
  const day = 86_400;
  for (const at of [0, 1_000, 2_000, 3_000]) t.type(await take(at, 4), 'object');
  t.type(await take(day, 4), 'object', 'the first slot is free again');
  for (const [perDay, at] of [
    [1, 2 * day],
    [2, day + 3_000],
    [4, day + 1_000],
  ] as const) {
    t.equal(await take(day + 1, perDay), at - day - 1, `${perDay} a day`);
    t.equal(await take(at - 1, perDay), 1);
  }
  t.type(await take(day + 3_000, 2), 'object');
  t.equal(await take(day + 3_000, 2), day - 3_000);
});

test('a file of a broken glass that lacks a part lets nobody through', async (t) => {
  const dir = t.testdir();
  const glasses = openBreakGlass(dir, null, {
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  });
  const who = { tenant: 'shop', chain: ['user:eve'] } as unknown as Identity; // all that is looked at
  await glasses.take(who, 'a reason', 3);
  t.not(await glasses.running(who, 'a reason', 30), null);
  const [name = ''] = readdirSync(dir);
  const whole = JSON.parse(readFileSync(join(dir, name), 'utf8')) as Record<string, unknown>; // our own file
  for (const part of ['id', 'startedAt', 'reason']) {
    writeFileSync(join(dir, name), JSON.stringify({ ...whole, [part]: undefined }));
    await t.rejects(glasses.running(who, 'a reason', 30), /is not as it was written/, part);
    await t.rejects(glasses.take(who, 'another', 3), /is not as it was written/, part);
  }
});
