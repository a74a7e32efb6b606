import { test } from 'tap';
import { verifyAuditLog } from '../../../audit/index.js';
import { ownerSettings } from '../../../src/service/settings/groups.js';
import { settingsReader } from '../../../src/service/settings/table.js';
import { answering, startReceiver, verifiedWith } from '../../service/lineage/receiver.js';
import { policyText } from '../../support/model-text.js';
import { type Reply, type RestFixture, startRest } from './fixture.js';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** Every column of the shop that a question can name, and names that nothing has. */
const OBJECTS: readonly string[] = [
  ...['id', 'name', 'email', 'tax_no', 'born', 'region', 'shoe_size'].map(
    (c) => `osl.entities.customer.${c}`,
  ),
  ...['id', 'customer_id', 'region', 'amount', 'note'].map((c) => `osl.entities.order.${c}`),
  ...['osl.entities.product.label', 'osl.entities.sample.words', 'osl.entities.parrot.name'],
];
const SUBJECTS = ['user:ann', 'user:ada', 'user:eu', 'user:den', 'user:nil'];

async function as(rest: RestFixture, subject: string, path: string, body?: unknown): Promise<Reply> {
  const roles = subject === 'user:root' ? ['TENANT_ADMIN'] : [];
  const authorization = `Bearer ${await rest.test.token(subject, { roles })}`;
  if (body === undefined) return rest.send(path, { headers: { authorization } });
  return rest.send(path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body,
  });
}

const why = (rest: RestFixture, subject: string, object: string): Promise<Reply> =>
  as(rest, subject, `/osl/why?object=${encodeURIComponent(object)}`);

const explain = async (rest: RestFixture, body: object): Promise<Record<string, unknown>> =>
  (await as(rest, 'user:root', '/osl/access/explain', body)).json();

test('why somebody sees what it sees', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());

  await t.test('a caller is told of what it sees, and is refused as a question would be', async (t) => {
    for (const subject of SUBJECTS)
      for (const object of OBJECTS) {
        const [, , entity, column] = object.split('.');
        const asked = await rest.ask(subject, {
          osql: `select ${column} from osl.entities.${entity} limit 1`,
        });
        const told = await why(rest, subject, object);
        t.equal(told.status, asked.status, `${subject} ${object}`);
        const [{ code, detail }, answer] = [told.json(), asked.json()];
        if (asked.status !== 200) {
          t.strictSame([code, detail], [answer['code'], answer['detail']], `${subject} ${object}`);
          t.equal(told.json()['position'] ?? null, null, 'no place in a text that nobody wrote');
          continue;
        }
        const [{ redacted }] = answer['columns'] as [{ redacted: boolean }]; // one column was asked for
        t.equal(told.json()['sees'] === 'clear', !redacted, `${subject} ${object}`);
        t.notMatch(
          told.text,
          /pii|secret|analyst|auditor|regional|attribute|shop\./,
          'no label, role or filter',
        );
      }
  });

  await t.test('of a bridge too, which no question can ask about alone', async (t) => {
    t.match((await why(rest, 'user:ann', 'osl.entities.line.pieces')).json(), { sees: 'clear' });
    t.match((await why(rest, 'user:eu', 'osl.entities.line.pieces')).json(), { code: 'E0512' });
  });

  await t.test('of a metric, what to ask instead, whether it is declared or not', async (t) => {
    for (const object of ['osl.metrics.revenue', 'osl.metrics.nothing'])
      t.match((await why(rest, 'user:ann', object)).json(), {
        code: 'E0511',
        detail: '`object` must be an entity, bridge or facet, or a column',
        hint: 'a metric is visible if all columns that it reads are: ask about each of them',
      });
  });

  await t.test('an admin is told the same of each, with the rules', async (t) => {
    for (const subject of SUBJECTS)
      for (const object of OBJECTS.slice(0, 6)) {
        const told = await why(rest, subject, object);
        const { sees } = await explain(rest, { as: subject, object });
        t.equal(sees, told.status === 200 ? told.json()['sees'] : 'nothing', `${subject} ${object}`);
      }
    t.match(await explain(rest, { as: 'user:ann', object: 'osl.entities.customer.email' }), {
      sees: 'masked',
      label: 'pii',
      mask: 'redact',
      because: [/roles\.analyst\.grants\[0\] shows it, and none has `unmask: \[pii\]`/],
      grants: [{ rule: 'roles.analyst.grants[0]', counts: true, rows: null }],
    });
    t.match(await explain(rest, { as: 'user:den', object: 'osl.entities.customer.email' }), {
      sees: 'nothing',
      denials: [{ rule: 'roles.no_addresses.deny[0]', columns: ['email'], held_by: ['user:den'] }],
    });
  });

  await t.test('of a chain it says who takes away', async (t) => {
    t.match(await explain(rest, { chain: ['user:ada', 'agent:bot'], object: 'customer.email' }), {
      sees: 'masked',
      roles: [
        { role: 'analyst', counts: true },
        { role: 'regional', counts: false, beyond: ['user:ada'] },
      ],
    });
    const claims = {
      chain: ['agent:bot', 'user:ada'],
      roles: ['auditor', 'analyst'],
      object: 'customer.email',
    };
    t.match(await explain(rest, claims), {
      sees: 'masked',
      taken_away_by: [{ subject: 'agent:bot', would_see: 'clear' }],
      because: [/role `auditor` does not count: it is beyond the ceiling of agent:bot/],
    });
  });

  await t.test('a row is looked for under the subject’s own filters', async (t) => {
    const row = async (who: object, key: readonly string[]) =>
      (await explain(rest, { ...who, object: 'customer', row: key }))['row'];
    t.strictSame(await row({ as: 'user:eu' }, ['1']), {
      key: ['1'],
      visible: true,
      shown_by: ['roles.regional.grants[0]'],
      taken_away_by: [],
    });
    t.match(await row({ as: 'user:eu' }, ['3']), { visible: false, shown_by: [] });
    t.match(await row({ as: 'user:eu' }, ['99']), { visible: false, shown_by: [] }, 'there is none');
    t.match(await row({ as: 'user:ada' }, ['3']), {
      visible: true,
      shown_by: ['roles.analyst.grants[0]', 'roles.auditor.grants[0]'],
    });
    t.match(await row({ chain: ['user:us', 'agent:bot'], roles: ['regional'] }, ['1']), {
      visible: false,
      taken_away_by: ['user:us'],
    });
    t.match(await row({ as: 'user:nil' }, ['1']), { visible: false });
    for (const key of [['1', '2'], ['one']])
      t.match(await explain(rest, { as: 'user:eu', object: 'customer', row: key }), {
        code: 'E0511',
      });
  });

  await t.test('only an admin may ask about others, and each question is on record', async (t) => {
    for (const subject of ['user:ann', 'user:ada', 'user:nil']) {
      const reply = await as(rest, subject, '/osl/access/explain', {
        as: 'user:eu',
        object: 'customer',
        row: ['1'],
      });
      t.match(reply.json(), { status: 403, code: 'E2101' });
    }
    const reply = await as(rest, 'user:root', '/osl/access/explain', { as: 'user:eu', object: 'customer' });
    t.match(await rest.trail(reply.requestId), [
      { action: 'explain_access', subject: 'user:root', decision: 'allow' },
      { action: 'explain_access', outcome: 'ok' },
    ]);
    const [decision] = await rest.test.records(reply.requestId);
    t.strictSame(decision?.objects, ['osl.entities.customer']);
    t.equal((await verifyAuditLog(rest.test.auditDir)).integrity, (await rest.test.verdict()).integrity);
  });

  await t.test('what says too little, or too much, is told', async (t) => {
    for (const [body, detail] of [
      [{ object: 'customer' }, /name the caller/],
      [{ object: 'customer', as: 'user:eu', chain: ['user:us'] }, /name the caller/],
      [{ object: 'customer', chain: ['user:us', 'user:us'] }, /names a subject twice/],
      [{ object: 'custmer', as: 'user:eu' }, /object `custmer` is not declared/],
      [{ object: 'customer.mail', as: 'user:eu' }, /column `mail` is not declared/],
      [{ object: 'labels', as: 'user:ann', row: ['1'] }, /a facet has passages/],
      [{ object: 'line', as: 'user:ann', row: ['1', '1'] }, /a row of an entity/],
    ] as const)
      t.match(await explain(rest, body), { status: 400, detail });
  });
});

const COMPUTED = `
version: 1
tenant: shop
connectors:
  db:
    kind: pglite
    tables:
      shop.pay: { columns: { id: { type: int4 }, amount: { type: int4, sensitivity: pii } } }
      shop.slip:
        columns: { id: { type: int4 }, pay_id: { type: int4 }, fee: { type: int4, sensitivity: pii }, n: { type: int4 } }
entities:
  pay: { source: db.shop.pay, primary_key: [id], columns: [id, amount] }
  slip:
    source: db.shop.slip
    primary_key: [id]
    entity_key_columns: [id, pay_id]
    columns: [id, pay_id, fee, n]
    computed:
      twice: { expression: n * 2 }
      double: { expression: "coalesce(fee, 0) * 2" }
      paid: { expression: pay.amount }
relationships:
  slip_pay: { from: slip.pay_id, to: pay.id, kind: many_to_one }
`;

const OF_SLIPS = policyText(
  'shop',
  { 'user:all': 'slips, pays', 'user:two': 'open', 'user:root': 'slips { admin: [TENANT_ADMIN] }' },
  `roles:
  slips: { grants: [{ on: slip, columns: "*" }] }
  pays: { grants: [{ on: pay, columns: "*" }] }
  open:
    grants:
      - { on: slip, columns: [id, n, fee] }
      - { on: slip, columns: [id, n, fee], unmask: [pii], rows: "id < 5" }
    deny: [{ on: slip, columns: [n] }]
masks: { pii: redact }
`,
);

test('a computed column is explained by the columns that it is computed from', async (t) => {
  const script =
    'CREATE SCHEMA shop; CREATE TABLE shop.pay (id int4 PRIMARY KEY, amount int4); CREATE TABLE shop.slip (id int4 PRIMARY KEY, pay_id int4, fee int4, n int4);';
  const rest = await startRest({ manifest: COMPUTED, policy: OF_SLIPS, script, schema: 'shop' });
  t.teardown(() => rest.close());
  const told = async (subject: string, column: string) => {
    const { sees, because, grants, detail } = (await why(rest, subject, `slip.${column}`)).json();
    return detail ?? [sees, because, (grants as readonly string[]).length];
  };
  const masked =
    'it is computed from sensitive columns, of which you see only the masked values; filters, joins and groups use them too';
  const partly =
    'it is computed from sensitive columns: unmasked in some of the rows that you see, masked in the others';
  t.strictSame(await told('user:all', 'double'), ['masked', [masked], 1]);
  t.strictSame(await told('user:all', 'paid'), ['masked', [masked], 2], 'with the grant of the other entity');
  t.match(await told('user:all', 'twice'), ['clear', [/your grant/], 1]);
  t.strictSame(await told('user:two', 'double'), ['partly_masked', [partly], 2]);
  t.match(
    await told('user:two', 'fee.more'),
    /column `fee.more` is not declared/,
    'a name of too many parts',
  );
  const ruled = async (object: string) => explain(rest, { as: 'user:two', object });
  t.match(await ruled('slip.double'), {
    because: [
      'roles.open.grants[0], roles.open.grants[1] show it: unmasked in the rows of those that unmask what it is made of, masked in the others',
    ],
  });
  t.match((await ruled('slip.twice'))['because'], [/roles\.open\.deny\[0\] takes n away/, /does not exist/]);
});

test('a request for access', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  process.env['OSL_OWNER_WEBHOOK_SECRET'] = SECRET;
  const environment = {
    OSL_OWNER_WEBHOOK: receiver.url,
    OSL_OWNER_WEBHOOK_NETWORKS: '127.0.0.0/8',
  };
  const owner = ownerSettings(settingsReader(environment, '/'));
  const rest = await startRest({ settings: { owner } });
  t.teardown(() => rest.close());
  const request = (subject: string, object: string, reason = 'for the survey'): Promise<Reply> =>
    as(rest, subject, '/osl/access-requests', { object, reason });

  await t.test('reaches the owner, signed, with what could be granted', async (t) => {
    const reply = await request('user:ann', 'osl.entities.customer.email');
    t.match(reply.json(), { delivered: true });
    t.equal(reply.status, 200);
    const [received] = receiver.received;
    if (received === undefined) throw new Error('nothing came');
    t.equal(verifiedWith(received, [SECRET]), SECRET);
    t.match(JSON.parse(received.body), {
      type: 'osl.access_request',
      id: reply.requestId,
      subject: 'user:ann',
      object: 'osl.entities.customer.email',
      reason: 'for the survey',
      declared: true,
      sees: 'masked',
      roles: [{ role: 'auditor', sees: 'clear', also: { count: 0 } }],
      grant: { on: 'customer', columns: ['email'], unmask: ['pii'] },
    });
    t.match(await rest.trail(reply.requestId), [
      { action: 'request_access', subject: 'user:ann', decision: 'allow' },
      { action: 'request_access', outcome: 'ok' },
    ]);
  });

  await t.test('is answered alike, whether or not there is such an object', async (t) => {
    const replies: (readonly [string, Reply])[] = [];
    for (const subject of ['user:eu', 'user:nil'])
      for (const object of [
        'osl.entities.sample',
        'osl.entities.parrot',
        'customer.tax_no',
        'customer.wings',
      ])
        replies.push([`${subject} ${object}`, await request(subject, object)]);
    for (const [name, reply] of replies) {
      const { request_id: _, ...rest } = reply.json();
      t.strictSame([reply.status, rest], [200, { delivered: true, approval: null }], name);
    }
    const bodies = receiver.received.map((r) => JSON.parse(r.body));
    t.match(
      bodies.filter((b) => b.subject === 'user:nil').map((b) => [b.object, b.declared]),
      [
        ['osl.entities.sample', true],
        ['osl.entities.parrot', false],
      ],
    );
  });

  await t.test('that does not arrive is told, and is on record', async (t) => {
    receiver.behave(answering(500));
    const reply = await request('user:ann', 'osl.entities.customer.email');
    t.match(reply.json(), { status: 503, code: 'E5034' });
    t.match(await rest.trail(reply.requestId), [{ decision: 'allow' }, { outcome: 'error', code: 'E5034' }]);
    t.match(rest.test.lines.at(-1), { level: 'error', fields: { reason: 'status 500' } });
  });

  await t.test('changes no right, and holds no control characters', async (t) => {
    receiver.behave(answering(204));
    await request('user:ann', 'osl.entities.customer.email');
    t.match((await why(rest, 'user:ann', 'osl.entities.customer.email')).json(), { sees: 'masked' });
    t.match((await request('user:ann', 'customer', 'a\u0007b')).json(), { status: 400, code: 'E0511' });
    t.match((await request('user:ann', 'customer', 'x'.repeat(501))).json(), { status: 400 });
  });
});

test('without a receiver a request is in the log alone', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());
  const reply = await as(rest, 'user:ann', '/osl/access-requests', { object: 'customer.email', reason: 'r' });
  t.match(reply.json(), { delivered: false });
});

test('a receiver without a secret, or that is none, stops the start', (t) => {
  delete process.env['OSL_OWNER_WEBHOOK_SECRET'];
  const settings = (url: string) => () => ownerSettings(settingsReader({ OSL_OWNER_WEBHOOK: url }, '/'));
  t.throws(settings('https://owner.example/hook'), /OSL_OWNER_WEBHOOK_SECRET is not set/);
  t.throws(settings('ftp://owner.example'), /http or https/);
  t.throws(settings('https://u:p@owner.example'), /without a user/);
  t.equal(ownerSettings(settingsReader({}, '/')), null);
  t.end();
});
