import tap, { test } from 'tap';
import { startRest } from './fixture.js';

const rest = await startRest();
tap.teardown(() => rest.close());

test('answers', async (t) => {
  await t.test('the envelope says what was asked, by which versions, and what was held back', async (t) => {
    const reply = await rest.ask('user:ann', {
      osql: 'SELECT id, name, email FROM osl.entities.customer WHERE id <= 2 ORDER BY id',
    });
    const manifest = rest.test.service.model();
    t.strictSame(reply.json(), {
      request_id: reply.requestId,
      form: 'structured',
      columns: [
        { name: 'id', type: 'int4', source: 'osl.entities.customer.id', redacted: false },
        { name: 'name', type: 'text', source: 'osl.entities.customer.name', redacted: false },
        { name: 'email', type: 'text', source: 'osl.entities.customer.email', redacted: true },
      ],
      rows: [
        { id: 1, name: 'Ada', email: '[redacted]' },
        { id: 2, name: 'Bo', email: '[redacted]' },
      ],
      row_count: 2,
      truncated: false,
      redacted_columns: ['customer.email'],
      redacted_fields: [],
      versions: { manifest: manifest.manifest.version, policy: manifest.snapshot?.version },
    });
    t.match(reply.headers, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    t.match(reply.requestId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/);
  });

  await t.test('a column that is a metric says how it is shown, whatever it is called', async (t) => {
    const shown = async (body: object): Promise<unknown> =>
      ((await rest.ask('user:ann', body)).json()['columns'] as { format?: object }[]).map((c) => c.format);
    const format = { kind: 'currency', currency: 'EUR' };
    const osql = 'select count(*), measure(revenue) as v, measure(revenue) + 1 from osl.entities."order"';
    t.strictSame(await shown({ osql }), [undefined, format, undefined]);
    t.strictSame(await shown({ metrics: [{ name: 'revenue', alias: 'v' }] }), [format]);
  });

  await t.test('each caller sees its own rows and masks', async (t) => {
    const osql = 'SELECT id, email FROM osl.entities.customer ORDER BY id';
    const seen = async (subject: string, claims = {}): Promise<unknown> =>
      (await rest.ask(subject, { osql }, claims)).json()['rows'];
    t.strictSame(await seen('user:ada'), [
      { id: 1, email: 'ada@eu.example' },
      { id: 2, email: 'bo@eu.example' },
      { id: 3, email: 'cy@us.example' },
      { id: 4, email: null },
    ]);
    t.strictSame(await seen('user:us'), [
      { id: 3, email: '[redacted]' },
      { id: 4, email: '[redacted]' },
    ]);
    const chain = ['user:eu', 'agent:bot'];
    t.strictSame(
      await seen('agent:bot', { chain, aclRoles: ['regional', 'analyst'] }),
      [
        { id: 1, email: '[redacted]' },
        { id: 2, email: '[redacted]' },
      ],
      'an agent sees what the one it acts for sees',
    );
    const denied = await rest.ask('user:den', { osql });
    t.match(denied.json(), { status: 403, code: 'E2101' });
    const nobody = await rest.ask('user:nil', { osql });
    t.match(nobody.json(), { status: 403, code: 'E2102' });
    t.notOk(nobody.headers['www-authenticate'], 'a better token would not help');
  });

  await t.test('equal names get a number, passing over real names', async (t) => {
    const reply = await rest.ask('user:ann', {
      osql: 'SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a, 5 AS "__proto__"',
    });
    t.equal(
      reply.text.slice(reply.text.indexOf('"rows"'), reply.text.indexOf(',"row_count"')),
      '"rows":[{"a":1,"a_3":2,"a_2":3,"a_4":4,"__proto__":5}]',
    );
  });

  await t.test('parameters are JSON scalars', async (t) => {
    const ask = (osql: string, parameters: readonly unknown[]) => rest.ask('user:ann', { osql, parameters });
    const both = await ask('SELECT id FROM osl.entities.customer WHERE id = $1 AND region = $2', [3, 'us']);
    t.strictSame(both.json()['rows'], [{ id: 3 }]);
    const typed = await ask('SELECT $1::bool AS b, $2::text AS n, $3::numeric AS x, $4::int8 AS i', [
      true,
      null,
      1.25,
      '9007199254740993',
    ]);
    t.strictSame(typed.json()['rows'], [{ b: true, n: null, x: '1.25', i: '9007199254740993' }]);
    const missing = await ask('SELECT $1::int4 AS a', []);
    t.match(missing.json(), { status: 400, code: 'E0511', sqlstate: '08P01' });
    const wrong = await ask('SELECT $1::int4 AS a', ['not a number']);
    t.match(wrong.json(), { status: 400, code: 'E0511', sqlstate: '22P02' });
    t.notMatch(wrong.text, 'not a number', 'neither the value nor the words of the database come back');
  });

  await t.test('a cap is told, never silent', async (t) => {
    const capped = await startRest({
      settings: { caps: { rows: 3, bytes: 1_000_000, evidence: 1_000, timeoutMs: 10_000 } },
    });
    t.teardown(() => capped.close());
    const reply = await capped.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order' });
    t.match(reply.json(), { row_count: 3, truncated: true });
    t.match(await capped.trail(reply.requestId), [{ decision: 'allow' }, { outcome: 'truncated', rows: 3 }]);
  });

  await t.test('a fault in the text has its place', async (t) => {
    const reply = await rest.ask('user:ann', { osql: "SELECT 'é😀',\n  names FROM osl.entities.customer" });
    t.equal(reply.status, 400);
    t.equal(reply.headers['content-type'], 'application/problem+json');
    t.strictSame(reply.json(), {
      type: 'urn:osl:error:E0512',
      title: 'Object not declared',
      status: 400,
      code: 'E0512',
      sqlstate: '42703',
      detail: 'column `names` is not declared',
      hint: 'perhaps you meant `name`',
      position: { offset: 16, line: 2, column: 3 },
      request_id: reply.requestId,
    });
  });

  await t.test('the database says nothing in its own words', async (t) => {
    const reply = await rest.ask('user:ann', { osql: 'SELECT 1 / (id - id) FROM osl.entities.order' });
    t.match(reply.json(), { status: 400, code: 'E0529', sqlstate: '22012', detail: 'division by zero' });
    t.match(await rest.trail(reply.requestId), [
      { decision: 'allow', code: null },
      { outcome: 'error', code: 'E0529' },
    ]);
  });
});

test('explain', async (t) => {
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
