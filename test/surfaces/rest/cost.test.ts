import { test } from 'tap';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { policyText } from '../../support/model-text.js';
import { connectPg } from '../../support/pg-client.js';
import { startRest } from './fixture.js';
import { LARGE } from './large.js';

/** Roles that set a cap on what the database reckons for one question. */

const GRANTS = '[{ on: event, columns: "*" }]';
const POLICY = policyText(
  'shop',
  {
    'user:small': 'small, wide',
    'user:wide': 'wide',
    'user:free': 'free',
  },
  `roles:
  small: { grants: ${GRANTS}, max_cost: 100 }
  wide: { grants: ${GRANTS}, max_cost: 1000000000 }
  free: { grants: ${GRANTS} }
masks: {}
limits: { query: 1000 }
`,
);
const SCRIPT = `
CREATE SCHEMA shop;
CREATE TABLE shop.events (id int4 PRIMARY KEY, filler text);
INSERT INTO shop.events SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n;
ANALYZE shop.events;
`;
const POINT = 'SELECT filler FROM osl.entities.event WHERE id = 7';
const ALL = 'SELECT id, filler FROM osl.entities.event';

test('a cap on the cost of a question', async (t) => {
  const rest = await startRest({ manifest: LARGE.manifest, policy: POLICY, script: SCRIPT });
  t.teardown(() => rest.close());

  await t.test('what is beyond it is refused before it runs, and nobody is told by how much', async (t) => {
    for (let time = 0; time < 3; time++) {
      t.equal((await rest.ask('user:small', { osql: POINT })).status, 200);
      const reply = await rest.ask('user:small', { osql: ALL });
      t.match(reply.json(), { status: 400, code: 'E0527', sqlstate: '54001' });
      t.notMatch(`${reply.json()['detail']} ${reply.json()['hint']}`, /\d/);
      t.match(await rest.trail(reply.requestId), [{ kind: 'decision', decision: 'error', code: 'E0527' }]);
    }
  });

  await t.test('the least of the roles that a caller claims, and none without one', async (t) => {
    t.equal((await rest.ask('user:small', { osql: ALL }, { aclRoles: ['wide'] })).status, 200);
    t.equal((await rest.ask('user:wide', { osql: ALL })).status, 200);
    t.equal((await rest.ask('user:free', { osql: ALL })).status, 200);
    t.equal(
      (await rest.ask('user:small', { osql: ALL, explain: true })).status,
      200,
      'to explain it reads nothing',
    );
  });

  await t.test('it is the same whatever the values', async (t) => {
    for (const id of [-1, 1, 10_000]) {
      const reply = await rest.ask('user:small', { osql: `${ALL} WHERE id > ${id}` });
      t.equal(reply.json()['code'], 'E0527', `${id}`);
    }
  });

  await t.test('on the wire: simple, prepared, and again', async (t) => {
    const frontend = createPgFrontend(rest.test.service);
    t.teardown(() => frontend.stop(0));
    const { port } = await frontend.listen(0, '127.0.0.1');
    const password = await rest.test.token('user:small');
    const client = await connectPg({ port, user: 'user:small', password });
    t.teardown(() => client.end());
    for (let time = 0; time < 6; time++) {
      t.equal((await client.query('select filler from event where id = 7')).rows.length, 1);
      await t.rejects(client.query('select id, filler from event'), { code: '54001' });
      const prepared = { name: 'all', text: 'select id from event where id > $1', values: [1] };
      await t.rejects(client.query(prepared), { code: '54001' });
      await t.rejects(client.query('copy (select id from event) to stdout'), { code: '54001' });
    }
  });
});
