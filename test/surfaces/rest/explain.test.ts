import { test } from 'tap';
import { startRest } from './fixture.js';

const rest = await startRest();
test('explain', async (t) => {
  t.teardown(() => rest.close());
  const osql = 'SELECT id, email FROM osl.entities.customer WHERE id = 1';

  await t.test('gives the plan and no rows, and no SQL', async (t) => {
    const reply = await rest.ask('user:eu', { osql, explain: true });
    t.equal(reply.status, 200);
    const body = reply.json();
    t.same(Object.keys(body), [
      'request_id',
      'form',
      'plan',
      'objects',
      'grants',
      'columns',
      'redacted_columns',
      'versions',
    ]);
    t.match(body, {
      form: 'structured',
      objects: ['osl.entities.customer'],
      columns: [{ name: 'id' }, { name: 'email', redacted: true }],
      plan: { step: 'select', inputs: [{ step: 'scan', detail: { row_filter: 'applied' } }] },
    });
    t.notMatch(reply.text, /regional|"region"|shop\.customers|attribute/, 'no role, filter column or table');
    t.match(await rest.trail(reply.requestId), [
      { action: 'explain', decision: 'allow' },
      { action: 'explain', outcome: 'ok', rows: 0 },
    ]);
  });

  await t.test('shows SQL to an admin role that counts, and to no claim of one', async (t) => {
    const admin = await rest.ask('user:root', { osql, explain: true }, { roles: ['TENANT_ADMIN'] });
    t.match(admin.json()['sql'], /shop.*customers/i);
    const without = await rest.ask('user:root', { osql, explain: true });
    t.notOk('sql' in without.json());
    const claimed = await rest.ask('user:ann', { osql, explain: true }, { roles: ['TENANT_ADMIN'] });
    t.equal(claimed.status, 200);
    t.notOk('sql' in claimed.json(), 'the ceiling has no admin role');
  });

  await t.test('refuses what the question itself would be refused for', async (t) => {
    const unknown = await rest.ask('user:ann', { osql: 'SELECT * FROM osl.entities.nothing', explain: true });
    t.match(unknown.json(), { status: 400, code: 'E0512' });
    t.match(await rest.trail(unknown.requestId), [{ action: 'explain', decision: 'error', code: 'E0512' }]);
    for (const [body, code] of [
      [{ sql: 'SELECT 1 FROM shop.samples', explain: true }, 'E0512'],
      [{ sql: '', explain: true }, 'E0246'],
      [{ metrics: ['revenue'], group_by: ['product__label'], explain: true }, 'E1001'],
      [{ metrics: ['profit'], explain: true }, 'E0512'],
    ] as const) {
      t.match((await rest.ask('user:ann', body)).json(), { code });
    }
  });
});
