import { test } from 'tap';
import { AuditUnavailable } from '../../../audit/index.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { watchedLog } from '../../support/watched-log.js';
import { freshAddress, startRest } from './fixture.js';

const rest = await startRest();
const HIDDEN = /^undeclared:\d+\.[\w-]{43}$/;
test('the log of a day', async (t) => {
  t.teardown(() => rest.close());

  await t.test('every request leaves one decision, and an outcome where it was allowed', async (t) => {
    const authorization = `Bearer ${await rest.test.token('user:ann')}`;
    const from = freshAddress();
    const replies = await Promise.all([
      rest.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order' }),
      rest.ask('user:ann', { osql: 'SELECT 1 / 0 AS a' }),
      rest.ask('user:ann', { osql: 'SELECT nothing' }),
      rest.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order', explain: true }),
      rest.ask('user:nil', { osql: 'SELECT id FROM osl.entities.order' }),
      rest.ask('user:den', { osql: 'SELECT email FROM osl.entities.customer' }),
      rest.ask('user:ann', '{'),
      rest.ask('user:ann', {}),
      rest.ask('user:ann', { sql: 'SELECT 1' }),
      rest.send('/osl/query', {
        method: 'POST',
        headers: { authorization, 'content-type': 'text/plain' },
        body: 'x',
      }),
      rest.send('/osl/query', { method: 'POST', from }),
      rest.send('/osl/query', { headers: { authorization: 'Bearer x' }, from }),
      rest.send('/osl/conformance', { headers: { authorization } }),
      rest.send('/nope', { from }),
      rest.send('/health', { method: 'POST', from }),
    ]);
    t.equal(new Set(replies.map((r) => r.requestId)).size, replies.length);
    for (const { requestId, status } of replies) {
      const own = await rest.test.records(requestId);
      const decisions = own.filter((r) => r.kind === 'decision');
      t.equal(decisions.length, 1, `status ${status}`);
      const outcomes = own.filter((r) => r.kind === 'outcome');
      t.equal(outcomes.length, decisions[0]?.decision === 'allow' ? 1 : 0, `status ${status}`);
      if (status === 200) t.equal(decisions[0]?.decision, 'allow');
    }
    t.match(await rest.test.verdict(), { integrity: 'intact', completeness: 'complete', openDecisions: 0 });
  });

  await t.test('a decision names versions, objects and a fingerprint, and holds no text', async (t) => {
    const osql = "SELECT id FROM osl.entities.customer WHERE name = 'a very secret literal'";
    const [first, second] = [await rest.ask('user:ann', { osql }), await rest.ask('user:ann', { osql })];
    const records = await rest.test.records(first.requestId);
    t.match(records[0], {
      surface: 'rest',
      tenant: 'shop',
      form: 'structured',
      chain: ['user:ann'],
      objects: ['osl.entities.customer'],
      versions: { manifest: String, policy: String },
    });
    t.equal(records[0]?.statement_hmac, (await rest.test.records(second.requestId))[0]?.statement_hmac);
    t.notMatch(JSON.stringify(await rest.test.records()), /secret literal/);
  });

  await t.test(
    'a refusal names what was asked for: declared objects in clear, all else as a fingerprint',
    async (t) => {
      const cases: readonly (readonly [who: string, body: unknown, code: string, ...RegExp[]])[] = [
        ['user:den', { osql: 'select email from customer' }, 'E2101', /^osl\.entities\.customer$/],
        [
          'user:ann',
          { osql: 'select nothing from osl.entities.customer' },
          'E0512',
          /^osl\.entities\.customer$/,
        ],
        ['user:ann', { osql: 'select id from a_secret_word' }, 'E0512', HIDDEN],
        [
          'user:ann',
          { osql: 'select 1 from customer c join "order" o on c.name = o.note' },
          'E0514',
          /^osl\.entities\.customer$/,
          /^osl\.entities\.order$/,
        ],
        [
          'user:nil',
          { osql: 'with customer as (select 1) select * from customer, "order"' },
          'E2102',
          /\.order$/,
        ],
        [
          'user:ann',
          { osql: "select text from RETRIEVE(facet => 'a_secret_word', query => 'x', top_k => 1)" },
          'E0241',
          HIDDEN,
        ],
        [
          'user:ann',
          { sql: 'select 1 from shop.samples, shop.customers' },
          'E0512',
          /customer$/,
          HIDDEN,
          HIDDEN,
        ],
        ['user:ann', { metrics: ['revenue', 'a_secret_word'] }, 'E0512', /^osl\.metrics\.revenue$/, HIDDEN],
        ['user:ann', { osql: 'select from where' }, 'E0511'],
      ];
      for (const [who, body, code, ...objects] of cases) {
        const name = JSON.stringify(body);
        const [record, ...more] = await rest.test.records((await rest.ask(who, body)).requestId);
        t.match(record, { decision: /deny|error/, code }, name);
        t.equal(more.length, 0, name);
        t.equal(record?.objects.length, objects.length, name);
        for (const [i, object] of objects.entries()) t.match(record?.objects[i], object, name);
      }
      t.notMatch(JSON.stringify(await rest.test.records()), /a_secret_word/);
    },
  );

  await t.test('what cannot be recorded is not answered', async (t) => {
    const failing = new AuditUnavailable('disk', 'the disk is full');
    const broken = await startRest({
      serve: (s) =>
        sealing(s, {
          audit: {
            ...watchedLog(
              sealedParts(s).audit,
              () => undefined,
              () => failing,
            ),
            close: async () => undefined,
            stats: () => ({ ...s.audit.stats(), failure: failing }),
          },
        }),
    });
    t.teardown(() => broken.close());
    for (const reply of [
      await broken.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order' }),
      await broken.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order', explain: true }),
      await broken.ask('user:ann', '{'),
      await broken.send('/nope'),
    ]) {
      t.match(reply.json(), { status: 503, code: 'E5030' });
      t.notOk('rows' in reply.json());
    }
    t.match((await broken.send('/ready')).json(), { checks: { audit: false } });
    t.match((await broken.send('/metrics')).text, /^osl_audit_failed 1$/m);
  });
});
