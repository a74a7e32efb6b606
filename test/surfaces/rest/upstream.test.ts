import t from 'tap';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { type RestFixture, startRest } from './fixture.js';

/** What goes upstream, as an admin is shown it: on both engines. */

const POLICY = SHOP_POLICY.replace(
  'admin: [TENANT_ADMIN] }',
  `admin: [TENANT_ADMIN] }
  user:ops: { ceiling: [watcher], admin: [TENANT_ADMIN], attributes: { region: secretland } }`,
).replace(
  'roles:\n',
  `roles:
  watcher:
    grants:
      - { on: customer, columns: "*", rows: "region = attribute('region') or name = 'Policyword'" }
`,
);
const ROLES = { roles: ['TENANT_ADMIN'] };
const HIDDEN = /secretland|Policyword|\\\\x[0-9a-f]{20}/;

type Answer = Readonly<Record<string, unknown>>;

function upstreamOf(body: Answer): Answer {
  const upstream = body['upstream'];
  return typeof upstream === 'object' && upstream !== null ? { ...upstream } : {};
}

async function shows(t: Tap, rest: RestFixture): Promise<void> {
  const osql = "SELECT name FROM osl.entities.customer WHERE name <> 'Bo' AND id IN (1, 2) AND id < $1";
  const asked = { osql, explain: true, parameters: [9] };

  await t.test('the statement, and where its parameters come from', async (t) => {
    const reply = await rest.ask('user:ops', { ...asked, upstream: 'statement' }, ROLES);
    t.equal(reply.status, 200, reply.text);
    const { sql, parameters, plan } = upstreamOf(reply.json());
    t.equal(sql, reply.json()['sql']);
    t.equal(plan, undefined);
    const members = Array.isArray(parameters) ? parameters : [];
    t.strictSame(new Set(members.map((p) => JSON.stringify(p))).size, members.length);
    t.ok(String(sql).includes(`$${members.length}`) && !String(sql).includes(`$${members.length + 1}`));
    for (const expected of [
      { type: 'text', from: 'literal', value: 'Bo' },
      { type: 'int4[]', from: 'literal', value: '{"1","2"}' },
      { type: 'int4', from: 'parameter', number: 1 },
      { type: 'text', from: 'attribute' },
      { type: 'text', from: 'gateway' },
    ])
      t.strictSame(
        members.find((p) => p.from === expected.from && p.type === expected.type),
        expected,
      );
    t.notMatch(reply.text, HIDDEN);
    t.match(await rest.trail(reply.requestId), [
      { action: 'explain', subject: 'user:ops', decision: 'allow' },
      { action: 'explain', outcome: 'ok', rows: 0 },
    ]);
  });

  await t.test('the plan, of no values', async (t) => {
    const hashed = 'SELECT count(DISTINCT tax_no) FROM osl.entities.customer GROUP BY tax_no';
    for (const body of [asked, { osql: hashed, explain: true }]) {
      // A plan for the values themselves would be made at first; one that serves all, from the sixth run on.
      for (let run = 0; run < 2; run++) {
        const reply = await rest.ask('user:ops', { ...body, upstream: 'plan' }, ROLES);
        t.equal(reply.status, 200, reply.text);
        t.match(upstreamOf(reply.json())['plan'], /Scan on customers[\s\S]*\(cost=.*rows=[\s\S]*\$\d/);
        t.notMatch(reply.text, HIDDEN);
        t.match(await rest.trail(reply.requestId), [
          { action: 'explain_plan', subject: 'user:ops', decision: 'allow' },
          { action: 'explain_plan', outcome: 'ok', rows: 0 },
        ]);
      }
    }
    const answer = await rest.ask('user:ops', { osql: 'SELECT id FROM osl.entities.customer' }, ROLES);
    t.match(answer.json(), { rows: [], row_count: 0 }, 'a question after it is answered as ever');
  });

  await t.test('every shape and form', async (t) => {
    for (const body of [
      { sql: 'SELECT name FROM shop.customers' },
      { metrics: ['revenue'] },
      { osql: 'SELECT 1 AS one' },
    ]) {
      const reply = await rest.ask('user:root', { ...body, explain: true, upstream: 'plan' }, ROLES);
      t.match(upstreamOf(reply.json())['plan'], /\(cost=/, reply.text);
    }
  });

  await t.test('to nobody else, and before the question is looked at', async (t) => {
    for (const upstream of ['statement', 'plan'] as const) {
      for (const [subject, claims] of [
        ['user:ann', ROLES],
        ['user:root', {}],
        ['user:root', { ...ROLES, chain: ['user:ann', 'user:root'] }],
        ['user:nil', {}],
      ] as const) {
        for (const text of ['SELECT id FROM osl.entities.customer', 'SELECT * FROM osl.entities.nothing']) {
          const reply = await rest.ask(subject, { osql: text, explain: true, upstream }, claims);
          t.match(reply.json(), { status: 403, code: 'E2101', detail: /only admins can see the SQL/ });
          t.notMatch(reply.text, /shop|cost=/);
          const [record] = await rest.trail(reply.requestId);
          t.match(record, { action: /^explain/, subject, decision: 'deny', code: 'E2101' });
        }
      }
    }
  });

  await t.test('a body that asks for it in no way there is', async (t) => {
    for (const wrong of [
      { upstream: 'plan' },
      { explain: true, upstream: 'analyze' },
      { explain: true, upstream: true },
    ])
      t.match((await rest.ask('user:root', { osql: 'SELECT 1', ...wrong }, ROLES)).json(), {
        status: 400,
        code: 'E0511',
        detail: /`upstream`/,
      });
  });
}

type Tap = typeof t;

const native = await startNativePostgres();
t.teardown(() => native?.stop());
t.test('upstream, of the embedded engine', async (t) => {
  const rest = await startRest({ policy: POLICY });
  t.teardown(() => rest.close());
  await shows(t as Tap, rest);
});
t.test('upstream, of a native server', { skip: native === null ? NO_NATIVE : false }, async (t) => {
  if (native === null) return;
  const rest = await startRest({ policy: POLICY, postgres: native });
  t.teardown(() => rest.close());
  await shows(t as Tap, rest);
});
