import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { Catalogs } from '../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';
import { connectPg } from '../support/pg-client.js';
import { startRest } from '../surfaces/rest/fixture.js';

t.setTimeout(600_000);

t.test('an open session of the wire has the new version at its next statement', async (t) => {
  const rest = await startRest();
  const { test } = rest;
  const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
  const wire = createPgFrontend(test.service, { catalogs });
  const { port } = await wire.listen(0, '127.0.0.1');
  const client = await connectPg({ port, user: 'user:ann', password: await test.token('user:ann') });
  t.teardown(async () => {
    await client.end();
    await wire.stop(0);
    await catalogs.close();
    await rest.close();
  });
  const columns = async (): Promise<readonly string[]> => {
    const { rows } = await client.query<{ column_name: string }>(
      "select column_name from information_schema.columns where table_name = 'product' order by 1",
    );
    return rows.map((r) => r.column_name);
  };
  const prepared = { name: 'labels', text: 'select label from product order by id limit 1' };
  t.equal((await client.query(prepared)).rowCount, 1);
  t.strictSame(await columns(), ['id', 'label']);
  const { document, version } = test.service.model().manifest;
  const product = { ...document.entities['product'], columns: { id: null, title: { column: 'label' } } };
  const reply = await rest.send('/osl/objects', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await test.token('user:root', { roles: ['TENANT_ADMIN'] })}`,
      'content-type': 'application/json',
    },
    body: { fragment: { entities: { product } }, base_version: version },
  });
  t.equal(reply.status, 201, reply.text);
  await t.rejects(client.query(prepared), { code: '42703' }, 'a prepared statement is decided anew');
  t.strictSame(
    (await client.query('select * from product limit 0')).fields.map((f) => f.name),
    ['id', 'title'],
  );
  t.strictSame(await columns(), ['id', 'title'], 'no stale catalog');
});

const rest = await startRest();
t.teardown(() => rest.close());
const token = (): Promise<string> => rest.test.token('user:root', { roles: ['TENANT_ADMIN'] });

async function publish(bearer: string, name: string, base = rest.test.service.model().manifest.version) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` };
  const metrics = { [name]: { entity: 'order', expression: 'count(*)' } };
  return rest.send('/osl/objects', {
    method: 'POST',
    headers,
    body: { fragment: { metrics }, base_version: base },
  });
}

t.test('a token is good for one change of what is served', async (t) => {
  const one = await token();
  t.equal((await publish(one, 'first', 'another')).status, 412, 'what changes nothing does not use it up');
  t.equal((await publish(one, 'first')).status, 201);
  t.equal((await publish(one, 'first')).status, 200, 'nor does asking again for what is there');
  const replayed = await publish(one, 'second');
  t.match(replayed.json(), {
    code: 'E3001',
    detail: /^this token was already used for a change/,
    hint: /get a new token for each change$/,
  });
  t.equal(replayed.status, 401);
  t.match(await rest.trail(replayed.requestId), [
    { kind: 'decision', action: 'publish', subject: 'user:root', decision: 'deny', code: 'E3001' },
  ]);
  const asked = { 'content-type': 'application/json', authorization: `Bearer ${one}` };
  const body = { osql: 'select id from osl.entities.order limit 1' };
  t.equal(
    (await rest.send('/osl/query', { method: 'POST', headers: asked, body })).status,
    200,
    'questions go on',
  );
  t.equal((await publish(await token(), 'second')).status, 201);
});

t.test('two changes at once with one token are one', async (t) => {
  const one = await token();
  const both = await Promise.all([publish(one, 'left'), publish(one, 'right')]);
  t.equal(both.filter(({ status }) => status === 201).length, 1);
});
