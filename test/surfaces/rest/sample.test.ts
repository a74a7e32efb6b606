import t, { test } from 'tap';
import { sql } from '../../../src/base/sql.js';
import { bridgeText, policyText } from '../../support/model-text.js';
import { inOneMoment } from '../../support/moment.js';
import { freshAddress, type Reply, startRest } from './fixture.js';

/** One table per mask, with a column of every type under a label of that mask; row 2 is all NULL. */
const TYPES = [
  ...['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'uuid', 'date', 'time'],
  ...['timestamp', 'timestamptz', 'interval', 'bytea', 'jsonb', 'int4[]', 'text[]', 'jsonb[]'],
  ...['inet', 'cidr', 'macaddr', 'macaddr8', 'money', 'timetz', 'tsvector', 'varbit', 'inet[]'],
  ...['int4range', 'numrange', 'tstzrange', 'int8multirange'],
];
const MASKS = ['redact', 'null', 'hash', 'partial', 'year', 'deny'];
const VALUES: Readonly<Record<string, string>> = {
  bool: 'true',
  uuid: "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
  date: "'2026-01-31'",
  time: "'12:00'",
  timestamp: "'2026-01-31 10:00'",
  timestamptz: "'2026-01-31 10:00+00'",
  interval: "'1 day'",
  bytea: "'\\xdead'",
  jsonb: "'{}'",
  text: "'sesame'",
  'int4[]': "'{1}'",
  inet: "'10.0.0.1'",
  cidr: "'10.0.0.0/8'",
  macaddr: "'08:00:2b:01:02:03'",
  macaddr8: "'08:00:2b:01:02:03:04:05'",
  timetz: "'03:04:05+02'",
  tsvector: "'cat:1'",
  varbit: "B'101'",
  'inet[]': "'{10.0.0.1}'",
  int4range: "'[1,5)'",
  numrange: "'[1,5)'",
  tstzrange: "'[2026-01-01,2026-02-01)'",
  int8multirange: "'{[1,5)}'",
  'text[]': "'{a}'",
  'jsonb[]': "'{}'",
};
const column = (type: string): string => `c_${type.replace('[]', '_list')}`;
const names = TYPES.map(column);

const MANIFEST = `
version: 1
tenant: shop
connectors:
  db:
    kind: pglite
    tables:
${MASKS.map(
  (mask) => `      vault.${mask}_:
        columns:
          id: { type: int4 }
${TYPES.map((type) => `          ${column(type)}: { type: "${type}", sensitivity: s_${mask} }`).join('\n')}`,
).join('\n')}
      vault.pay:
        columns:
          id: { type: int4, sensitivity: s_redact }
          team: { type: text }
          state: { type: text }
          amount: { type: int4, sensitivity: s_redact }
          note: { type: text, sensitivity: s_redact }
      vault.link:
        columns: { a: { type: int4 }, b: { type: int4 } }
      vault.slip:
        columns: { id: { type: int4 }, pay_id: { type: int4 }, fee: { type: int4, sensitivity: s_redact }, n: { type: int4 } }
entities:
${MASKS.map(
  (mask) => `  m_${mask}:
    source: db.vault.${mask}_
    primary_key: [id]
    columns: [id, ${names.join(', ')}]`,
).join('\n')}
  pay: { source: db.vault.pay, primary_key: [id], columns: [id, team, state, amount, note] }
  slip:
    source: db.vault.slip
    primary_key: [id]
    entity_key_columns: [id, pay_id]
    columns: [id, pay_id, fee, n]
    computed:
      twice: { expression: n * 2 }
      share: { expression: 100 / n }
      double: { expression: "coalesce(fee, 0) * 2" }
      paid: { expression: pay.amount }
      total: { expression: double + paid }
      secret: { expression: n + 1, sensitivity: s_top }
      secreter: { expression: secret + 1 }
relationships:
  slip_pay: { from: slip.pay_id, to: pay.id, kind: many_to_one }
bridges:
${bridgeText('link', 'vault.link', ['m_redact', 'a'], ['pay', 'b'])}
`;

const POLICY = policyText(
  'shop',
  {
    'user:low': 'low',
    'user:top': 'top',
    'user:mix': 'plain, open, noted',
    'user:key': 'keyed',
    'user:team': 'team { attributes: { team: red } }',
    'user:blue': 'team { attributes: { team: blue } }',
    'user:den': 'low, none_of_pay, no_notes',
    'user:some': 'keyed, no_notes',
    'user:sum': 'sums',
    'user:nil': '',
    'user:clerk': 'slips, plain, open, noted',
    'user:few': 'slips, open',
    'user:whole': 'slips, fees, tops, keyed',
    'user:part': 'slips, tops_of_2, keyed',
    'user:adder': 'slips, sums',
    'agent:bot': 'low, team { attributes: { team: { any: true } } }',
  },
  `roles:
  low:
    grants:
${[...MASKS.map((m) => `m_${m}`), 'pay', 'link'].map((n) => `      - { on: ${n}, columns: "*" }`).join('\n')}
  top:
    grants:
${MASKS.map((m) => `      - { on: m_${m}, columns: "*", unmask: [s_${m}] }`).join('\n')}
      - { on: pay, columns: "*", unmask: [s_redact] }
  plain:
    grants: [{ on: pay, columns: [id, team, state, amount] }]
  open:
    grants: [{ on: pay, columns: [id, amount], unmask: [s_redact], rows: "state = 'open'" }]
  noted:
    grants: [{ on: pay, columns: [id, note], unmask: [s_redact], rows: "team = 'red'" }]
  keyed:
    grants: [{ on: pay, columns: "*", unmask: [s_redact] }]
  team:
    grants: [{ on: pay, columns: "*", unmask: [s_redact], rows: "team = attribute('team')" }]
  sums:
    grants: [{ on: pay, columns: "*", unmask: [s_redact], min_group_size: 5 }]
  slips:
    grants: [{ on: slip, columns: "*", rows: "id < 5" }]
  fees:
    grants: [{ on: slip, columns: "*", unmask: [s_redact, s_top], rows: "id < 5" }]
  tops:
    grants: [{ on: slip, columns: "*", unmask: [s_top], rows: "id < 5" }]
  tops_of_2:
    grants: [{ on: slip, columns: "*", unmask: [s_top], rows: "id = 2" }]
  none_of_pay:
    grants: []
    deny: [{ on: pay }]
  no_notes:
    grants: []
    deny: [{ on: pay, columns: [note] }]
masks: { s_redact: redact, s_null: "null", s_hash: hash, s_partial: partial, s_year: year, s_deny: deny }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA vault;
${MASKS.map(
  (
    mask,
  ) => `CREATE TABLE vault.${mask}_ (id int4 PRIMARY KEY, ${TYPES.map((type) => `${column(type)} ${type}`).join(', ')});
INSERT INTO vault.${mask}_ VALUES (1, ${TYPES.map((type) => VALUES[type] ?? '7').join(', ')});
INSERT INTO vault.${mask}_ (id) VALUES (2);`,
).join('\n')}
CREATE TABLE vault.pay (id int4 PRIMARY KEY, team text, state text, amount int4, note text);
INSERT INTO vault.pay VALUES
  (1, 'red', 'open', 10, 'one'), (2, 'red', 'shut', 20, NULL), (3, 'blue', 'open', NULL, 'three'),
  (4, 'blue', 'shut', NULL, 'four');
INSERT INTO vault.pay SELECT n, CASE WHEN n % 2 = 0 THEN 'red' ELSE 'blue' END, 'shut', n, 'note ' || n
  FROM generate_series(150, 5, -1) AS n;
CREATE TABLE vault.slip (id int4 PRIMARY KEY, pay_id int4, fee int4, n int4);
INSERT INTO vault.slip VALUES (1, 1, 5, 1), (2, 2, 6, 2), (3, 3, NULL, 4), (4, NULL, 8, 5), (5, 1, 9, 0);
CREATE TABLE vault.link (a int4, b int4, PRIMARY KEY (a, b));
`;

const OPTIONS = { manifest: MANIFEST, policy: POLICY, script: SCRIPT, schema: 'vault' };
t.setTimeout(600_000);

const rest = await startRest(OPTIONS);

async function sample(subject: string, body: unknown, claims = {}, on = rest): Promise<Reply> {
  const authorization = `Bearer ${await on.test.token(subject, claims)}`;
  const headers = { 'content-type': 'application/json', authorization };
  return on.send('/osl/sample', { method: 'POST', headers, body });
}

const rowsOf = (reply: Reply) => reply.json()['rows'] as readonly Readonly<Record<string, unknown>>[];

test('samples of entities', async (t) => {
  t.teardown(() => rest.close());

  await t.test('the envelope is the contract’s', async (t) => {
    const reply = await sample('user:mix', { kind: 'table', name: 'pay', limit: 1 });
    t.strictSame(reply.json(), {
      request_id: reply.requestId,
      kind: 'table',
      name: 'pay',
      rows: [{ id: 1, team: 'red', state: 'open', amount: 10, note: 'one' }],
      redacted_columns: ['pay.amount', 'pay.id', 'pay.note'],
      redacted_fields: [],
    });
    t.match(reply.headers, { 'cache-control': 'no-store', 'content-type': 'application/json' });
  });

  await t.test(
    'a masked cell of any type under any mask is the literal, also where it is NULL',
    async (t) => {
      for (const mask of MASKS.filter((m) => m !== 'deny')) {
        const reply = await sample('user:low', { kind: 'table', name: `m_${mask}` });
        const hidden = Object.fromEntries(names.map((name) => [name, '[redacted]']));
        t.strictSame(
          rowsOf(reply),
          [1, 2].map((id) => ({ id, ...hidden })),
          mask,
        );
        t.strictSame(reply.json()['redacted_columns'], names.map((name) => `m_${mask}.${name}`).sort());
        t.notMatch(reply.text, /sesame|s\*\*\*|[0-9a-f]{64}/, `${mask} says nothing of the value`);
      }
      const denied = await sample('user:low', { kind: 'table', name: 'm_deny' });
      t.strictSame(rowsOf(denied), [{ id: 1 }, { id: 2 }], 'a denied column is not there, as with *');
      t.strictSame(denied.json()['redacted_columns'], []);
    },
  );

  await t.test('who may read it sees every value, and NULL as null', async (t) => {
    for (const mask of MASKS) {
      const reply = await sample('user:top', { kind: 'table', name: `m_${mask}` });
      const [full, empty] = rowsOf(reply);
      t.match(full, {
        c_text: 'sesame',
        c_int4: 7,
        c_int8: '7',
        c_bool: true,
        c_int4_list: [1],
        c_jsonb: {},
      });
      t.strictSame(empty, { id: 2, ...Object.fromEntries(names.map((name) => [name, null])) });
      t.strictSame(reply.json()['redacted_columns'], []);
    }
  });

  await t.test('cells are the union of grants, cell by cell; a real NULL stays null', async (t) => {
    const reply = await sample('user:mix', { kind: 'table', name: 'pay', limit: 100 });
    // `id` is clear where either unmasking grant has the row, `amount` where it is open, `note` in the red team.
    t.strictSame(
      rowsOf(reply)
        .slice(0, 4)
        .map((r) => r['note']),
      ['one', null, '[redacted]', 'note 6'],
      'by the keys that are seen; masked ones come last',
    );
    const byNote = new Map(rowsOf(reply).map((r) => [`${r['id']} ${r['note']}`, r]));
    t.match(byNote.get('1 one'), { amount: 10, note: 'one' });
    t.match(byNote.get('2 null'), { amount: '[redacted]', note: null });
    t.match(byNote.get('3 [redacted]'), { amount: null, note: '[redacted]' });
    t.notOk(
      rowsOf(reply).some((r) => r['id'] === 4),
      'of row 4 no grant shows the key',
    );
    t.ok(rowsOf(reply).some((r) => r['id'] === '[redacted]' && r['amount'] === '[redacted]'));
    t.strictSame(reply.json()['redacted_columns'], ['pay.amount', 'pay.id', 'pay.note']);
  });

  await t.test('computed columns are in it, each as far as all that it reads may be seen', async (t) => {
    const slips = async (subject: string) => {
      const reply = await sample(subject, { kind: 'table', name: 'slip' });
      return { reply, rows: rowsOf(reply), shown: reply.json()['redacted_columns'] };
    };
    const clerk = await slips('user:clerk');
    const fee = { fee: '[redacted]', double: '[redacted]', total: '[redacted]' };
    t.strictSame(
      clerk.rows,
      [
        { id: 1, pay_id: 1, n: 1, twice: 2, share: 100, paid: 10, ...fee },
        { id: 2, pay_id: 2, n: 2, twice: 4, share: 50, paid: '[redacted]', ...fee },
        { id: 3, pay_id: 3, n: 4, twice: 8, share: 25, paid: null, ...fee },
        { id: 4, pay_id: null, n: 5, twice: 10, share: 20, paid: null, ...fee },
      ],
      'row 5, of which `share` fails, is hidden',
    );
    t.strictSame(clerk.shown, ['pay.amount', 'slip.double', 'slip.fee', 'slip.paid', 'slip.total']);
    t.match(await rest.test.records(clerk.reply.requestId), [
      { objects: ['osl.entities.pay', 'osl.entities.slip'] },
      { outcome: 'ok', rows: 4 },
    ]);
    t.strictSame(
      (await slips('user:few')).rows.map((r) => r['paid']),
      [10, null, null, null],
      'a parent that is hidden is none',
    );
    const whole = await slips('user:whole');
    t.strictSame(whole.rows[0], {
      ...{ id: 1, pay_id: 1, fee: 5, n: 1, twice: 2, share: 100, double: 10, paid: 10, total: 20 },
      ...{ secret: 2, secreter: 3 },
    });
    t.strictSame(whole.shown, []);
    t.notOk('paid' in ((await slips('user:adder')).rows[0] ?? { paid: 0 }), 'of what shows groups alone');
  });

  await t.test('a label of its own hides a computed column wherever some row has it masked', async (t) => {
    const names = async (subject: string): Promise<string> =>
      Object.keys(rowsOf(await sample(subject, { kind: 'table', name: 'slip' }))[0] ?? {}).join();
    t.match(await names('user:whole'), /,secret,secreter$/);
    for (const subject of ['user:part', 'user:clerk']) {
      t.notMatch(await names(subject), /secret/, subject);
      const authorization = `Bearer ${await rest.test.token(subject)}`;
      const ask = (path: string, body?: unknown) =>
        rest.send(path, {
          ...(body === undefined ? {} : { method: 'POST', body }),
          headers: { 'content-type': 'application/json', authorization },
        });
      for (const column of ['secret', 'secreter', 'sum(secret)'])
        t.match((await ask('/osl/query', { osql: `select ${column} from osl.entities.slip` })).json(), {
          status: 403,
          code: 'E2101',
        });
      t.equal((await ask('/osl/query', { osql: 'select * from osl.entities.slip limit 1' })).status, 200);
      t.notMatch((await ask('/osl/schema?governed=true')).text, /secret/);
      t.notMatch((await ask('/osl/domain-map?governed=true')).text, /secret/);
    }
  });

  await t.test('the first rows by key come, 8 unless told, 100 at most', async (t) => {
    const ids = async (limit?: number): Promise<unknown[]> =>
      rowsOf(await sample('user:key', { kind: 'table', name: 'pay', limit })).map((r) => r['id']);
    t.strictSame(await ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
    t.strictSame(await ids(3), [1, 2, 3]);
    t.equal((await ids(100)).length, 100);
    t.strictSame(await ids(100), await ids(100));
  });

  await t.test('who reads no key gets the same rows again', async (t) => {
    const body = { kind: 'table', name: 'pay', limit: 50 };
    const first = rowsOf(await sample('user:low', body));
    t.equal(first.length, 50);
    await rest.test.engine.system.query(sql`update vault.pay set amount = amount where id % 3 = 0`); // moves rows
    t.strictSame(rowsOf(await sample('user:low', body)), first);
  });

  await t.test('rows stay inside the row filter, and a chain sees what all of it may', async (t) => {
    const teams = async (subject: string, claims = {}): Promise<unknown[]> => {
      const rows = rowsOf(await sample(subject, { kind: 'table', name: 'pay', limit: 100 }, claims));
      return [...new Set(rows.map((r) => r['team']))].sort();
    };
    t.strictSame(await teams('user:team'), ['red']);
    t.strictSame(await teams('agent:bot', { aclRoles: ['team'] }), ['blue', 'red']);
    t.strictSame(await teams('agent:bot', { chain: ['user:blue', 'agent:bot'], aclRoles: ['team'] }), [
      'blue',
    ]);
    const control = await sample(
      'user:team',
      { kind: 'table', name: 'pay' },
      { roles: ['team'], aclRoles: [] },
    );
    t.match(control.json(), { status: 403, code: 'E2102' }, 'data roles come from acl_roles only');
  });

  await t.test('what is wrong is refused, the same for the hidden and the undeclared', async (t) => {
    const cases: readonly (readonly [string, unknown, number, string])[] = [
      ['user:low', { kind: 'table', name: 'nothing' }, 400, 'E0254'],
      ['user:team', { kind: 'table', name: 'm_hash' }, 400, 'E0254'],
      ['user:low', { kind: 'table', name: 'link' }, 400, 'E0254'],
      ['user:low', { kind: 'table', name: 'PAY' }, 400, 'E0254'],
      ['user:low', { kind: 'table', name: 'osl.facets.pay' }, 400, 'E0254'],
      ['user:low', { kind: 'table', name: '__proto__' }, 400, 'E0254'],
      ['user:low', { kind: 'facet', name: 'pay' }, 400, 'E0241'],
      ['user:den', { kind: 'table', name: 'pay' }, 403, 'E2101'],
      ['user:sum', { kind: 'table', name: 'pay' }, 403, 'E2103'],
      ['user:nil', { kind: 'table', name: 'pay' }, 403, 'E2102'],
      ['user:nil', { kind: 'facet', name: 'nothing' }, 400, 'E0241'],
      ['user:low', { kind: 'view', name: 'pay' }, 400, 'E0511'],
      ['user:low', { name: 'pay' }, 400, 'E0511'],
      ['user:low', { kind: 'table' }, 400, 'E0511'],
      ['user:low', { kind: 'table', name: '' }, 400, 'E0511'],
      ['user:low', { kind: 'table', name: 7 }, 400, 'E0511'],
      ...[0, -1, 101, 1.5, '8', 1e300].map(
        (limit) => ['user:low', { kind: 'table', name: 'pay', limit }, 400, 'E0511'] as const,
      ),
      ['user:low', { kind: 'table', name: 'pay', where: 'true' }, 400, 'E0511'],
      ['user:low', { osql: 'select 1' }, 400, 'E0511'],
      ['user:low', { metrics: ['revenue'], kind: 'table', name: 'pay' }, 400, 'E0511'],
      ['user:low', [], 400, 'E0511'],
      ['user:low', '{', 400, 'E0511'],
    ];
    for (const [who, body, status, code] of cases) {
      const reply = await sample(who, body);
      t.match(reply.json(), { status, code }, `${who} ${JSON.stringify(body)}`);
    }
    const text = async (who: string, name: string): Promise<string> => {
      const { request_id, ...rest } = (await sample(who, { kind: 'table', name })).json();
      t.type(request_id, 'string');
      return JSON.stringify(rest).replaceAll(name, 'X');
    };
    t.equal(await text('user:team', 'm_hash'), await text('user:team', 'm_hush'), 'a name tells nothing');
    t.match((await sample('user:low', { kind: 'table', name: 'pays' })).json(), {
      hint: 'perhaps you meant `pay`',
    });
  });

  await t.test('a denied column is left out', async (t) => {
    t.strictSame(Object.keys(rowsOf(await sample('user:some', { kind: 'table', name: 'pay' }))[0] ?? {}), [
      'id',
      'team',
      'state',
      'amount',
    ]);
  });

  await t.test('identity comes first', async (t) => {
    const body = { kind: 'table', name: 'pay' };
    const headers = { 'content-type': 'application/json' };
    const send = (more = {}, sent: unknown = body) =>
      rest.send('/osl/sample', {
        method: 'POST',
        headers: { ...headers, ...more },
        body: sent,
        from: freshAddress(),
      });
    t.match((await send()).json(), { status: 403, code: 'E2102' });
    t.match((await send({}, '{')).json(), { status: 403, code: 'E2102' }, 'before the body is judged');
    t.match((await send({ authorization: 'Bearer x' })).json(), { status: 401, code: 'E3001' });
    t.match((await send({ 'x-actor-roles': 'top', 'x-osl-subject': 'user:top' })).json(), { code: 'E2102' });
    const authorization = `Bearer ${await rest.test.token('user:low')}`;
    t.match((await send({ authorization, 'content-type': 'text/plain' })).json(), { status: 415 });
    t.match((await rest.send('/osl/sample', { headers: { authorization } })).json(), { status: 405 });
  });

  await t.test('each sample leaves a decision and an outcome, and no name that was refused', async (t) => {
    const allowed = await sample('user:low', { kind: 'table', name: 'pay', limit: 3 });
    t.match(await rest.test.records(allowed.requestId), [
      {
        kind: 'decision',
        action: 'sample',
        decision: 'allow',
        objects: ['osl.entities.pay'],
        form: 'structured',
      },
      { kind: 'outcome', action: 'sample', outcome: 'ok', rows: 3 },
    ]);
    for (const [body, code, decision] of [
      [{ kind: 'table', name: 'a_secret_name' }, 'E0254', 'error'],
      [{ kind: 'table', name: 'pay', limit: 0 }, 'E0511', 'error'],
    ] as const) {
      const refused = await sample('user:low', body);
      const records = await rest.test.records(refused.requestId);
      t.match(records, [{ kind: 'decision', action: 'sample', decision, code }]);
      t.equal(records.length, 1);
    }
    const denied = await sample('user:den', { kind: 'table', name: 'pay' });
    t.match(await rest.test.records(denied.requestId), [
      { action: 'sample', decision: 'deny', code: 'E2101' },
    ]);
    t.notMatch(JSON.stringify(await rest.test.records()), /a_secret_name/);
    t.match(await rest.test.verdict(), { integrity: 'intact', openDecisions: 0 });
  });

  await t.test('thirty a second and subject, apart from questions', async (t) => {
    const limited = await startRest({ ...OPTIONS, policy: POLICY.replace(/^limits:.*$/m, '') });
    t.teardown(() => limited.close());
    const body = { kind: 'table', name: 'pay', limit: 1 };
    const replies = await inOneMoment(() =>
      Promise.all(Array.from({ length: 60 }, () => sample('user:low', body, {}, limited))),
    );
    const refused = replies.filter((r) => r.status === 429);
    t.equal(replies.length - refused.length, 30);
    t.match(refused[0]?.headers, { 'retry-after': '1' });
    t.match(refused[0]?.json(), { code: 'E4290' });
    t.equal((await limited.ask('user:low', { osql: 'select 1' })).status, 200, 'a bucket of its own');
    t.equal((await sample('user:team', body, {}, limited)).status, 200, 'of each subject');
  });

  await t.test('hidden rows and hidden cells change no byte', async (t) => {
    const bodies = [3, 100].map((limit) => ({ kind: 'table', name: 'pay', limit }));
    const seen = async (on: typeof rest): Promise<readonly string[]> => {
      const texts: string[] = [];
      for (const who of ['user:team', 'user:mix', 'user:low']) {
        for (const body of bodies) {
          const { text, requestId } = await sample(who, body, {}, on);
          texts.push(text.replace(requestId, ''));
        }
      }
      return texts;
    };
    const before = await seen(rest);
    const twin = await startRest({
      ...OPTIONS,
      script: `${SCRIPT}
UPDATE vault.pay SET amount = CASE WHEN amount IS NULL THEN -1 END, note = 'other' || id
  WHERE team = 'blue' AND state = 'shut';
UPDATE vault.pay SET id = id + 1000 WHERE team = 'blue' AND state = 'shut';`,
    });
    t.teardown(() => twin.close());
    t.strictSame(await seen(twin), before);
    const clear = (on: typeof rest) => sample('user:key', bodies[1], {}, on).then((r) => r.text.slice(60));
    t.not(await clear(twin), await clear(rest), 'the two do differ');
  });
});
