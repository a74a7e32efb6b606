import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pgClient from 'pg';
import t, { test } from 'tap';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';
import { type RestFixture, startRest } from '../surfaces/rest/fixture.js';
import { ROOT } from '../tools/cli/support.js';
import { query } from '../wire/support/bytes.js';
import { Client } from '../wire/support/client.js';

/** Promises of recipes that tests of a policy cannot check: they need a running server. */
t.setTimeout(240_000);

async function serve(recipe: string, script: string): Promise<RestFixture> {
  const read = (file: string): string =>
    readFileSync(join(ROOT, 'examples', 'cookbook', recipe, file), 'utf8');
  const manifest = read('manifest.yaml').replace('kind: postgres\n    url_env: DATABASE_URL', 'kind: pglite');
  const rest = await startRest({
    embedded: true,
    manifest,
    policy: read('policy.yaml'),
    script,
    schema: 'public',
  });
  t.teardown(() => rest.close());
  return rest;
}

test('on-call: the reason opens the glass, for who may break it, and is on record', async (t) => {
  const rest = await serve(
    'on-call',
    `create table public.patient (id int4 primary key, name text not null, ward text not null, allergy text);
     insert into public.patient values (1, 'Ada', 'east', 'latex'), (2, 'Bob', 'west', 'penicillin');`,
  );
  const question = { osql: 'select name, allergy from osl.entities.patient order by id' };
  const rows = async (headers: Record<string, string> = {}, chain: readonly string[] = ['user:otto']) =>
    (await rest.ask('user:otto', question, { headers, chain })).json()['rows'];
  const own = [{ name: 'Ada', allergy: 'latex' }];
  const reason = 'resuscitation in room 12';
  t.strictSame(await rows(), own);
  t.strictSame(await rows({ 'osl-break-glass': encodeURIComponent(reason) }), [
    ...own,
    { name: 'Bob', allergy: 'penicillin' },
  ]);
  t.strictSame(await rows(), own, 'and only where it is said');
  const records = await rest.test.records();
  const [broken, ...more] = records.filter((r) => r.action === 'break_glass' && r.kind === 'decision');
  t.match(broken?.detail, reason);
  t.strictSame(more, []);

  const pg = createPgFrontend(rest.test.service);
  t.teardown(() => pg.stop(0));
  const { port } = await pg.listen(0, '127.0.0.1');
  const client = await Client.login(port, 'user:otto', await rest.test.token('user:otto'));
  t.teardown(() => client.socket.destroy());
  const said = async (text: string): Promise<string> => (await client.ask(query(text))).join('\n');
  t.notMatch(await said('select name from patient'), /Bob/);
  await said(`SET osl.break_glass = '${reason} again'`);
  t.match(await said('select name from patient'), /Bob/);
});

test('four-eyes: neither of two people publishes, and the pipeline sees nothing of what it publishes over', async (t) => {
  const rest = await serve(
    'four-eyes',
    'create table public.orders (id int4 primary key, amount numeric not null);',
  );
  const fragment = 'metrics:\n  revenue: { entity: order, expression: sum(amount) }\n';
  const send = async (subject: string, path: string, body: unknown, headers: Record<string, string> = {}) => {
    const token = await rest.test.token(subject, { roles: ['TENANT_ADMIN'] });
    const all = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers };
    return rest.send(path, { method: 'POST', headers: all, body });
  };
  const base = async (): Promise<string> => {
    const reply = await send('service:release', '/osl/validate', { fragment });
    const { versions } = reply.json() as { versions: { manifest: string } }; // docs/rest.md
    return versions.manifest;
  };
  const version = await base();
  for (const subject of ['user:amy', 'user:rob']) {
    const reply = await send(subject, '/osl/objects', { fragment, base_version: version });
    t.equal(reply.status, 403, subject);
  }
  const published = await send('service:release', '/osl/objects', { fragment, base_version: version });
  t.equal(published.status, 201, published.text);
  t.equal(
    (await rest.ask('user:amy', { osql: 'select measure(revenue) from osl.entities.order' })).status,
    200,
  );
  const admin = { roles: ['TENANT_ADMIN'] };
  const reply = await rest.ask('service:release', { osql: 'select id from osl.entities.order' }, admin);
  t.equal(reply.status, 403, reply.text);
});

test('service-account: it logs in with its password, and the question after the twentieth of a minute is refused', async (t) => {
  const rest = await serve(
    'service-account',
    `create table public.orders (id int4 primary key, status text not null, amount numeric not null, customer_email text);
     insert into public.orders values (1, 'paid', 10, 'ada@engine.example');`,
  );
  const pg = createPgFrontend(rest.test.service);
  t.teardown(() => pg.stop(0));
  const { port } = await pg.listen(0, '127.0.0.1');
  const login = { host: '127.0.0.1', port, database: 'osl', user: 'metabase' };
  const wrong = new pgClient.Client({ ...login, password: 'change me, please' });
  await t.rejects(wrong.connect());
  const client = new pgClient.Client({ ...login, password: 'change me please' });
  await client.connect();
  t.teardown(() => client.end());
  const question = 'select status from "order"';
  let answered = 0;
  const refusal: unknown = await (async () => {
    // Where the machine is so slow that a minute passes on the way, another one begins.
    for (; answered < 200; answered++) await client.query(question);
  })().catch((error: unknown) => error);
  t.ok(answered >= 20, `${answered} answers`);
  t.match(refusal, { code: '53400' });
  const again = await rest.ask('user:ana', { osql: 'select status from osl.entities.order' });
  t.equal(again.status, 200, 'another member has a count of its own');
  const over = await rest.ask('service:dashboard', { osql: 'select status from osl.entities.order' });
  t.equal(over.status, 429, 'the count is one for all surfaces');
  t.ok(Number(over.headers['retry-after']) > 0);
});
