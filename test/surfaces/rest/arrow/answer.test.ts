import { test } from 'tap';
import { layoutOf } from '../../../../src/surfaces/rest/routes/query.js';
import { startRest } from '../fixture.js';
import { asJson, readArrow } from './read.js';

const ARROW = { headers: { accept: 'application/vnd.apache.arrow.stream' } };
const rest = await startRest();

test('answers in Arrow', async (t) => {
  t.teardown(() => rest.close());
  const json = async (subject: string, body: unknown) => (await rest.ask(subject, body)).json();
  const arrow = async (subject: string, body: unknown) => {
    const reply = await rest.ask(subject, body, ARROW);
    t.equal(reply.status, 200, reply.status === 200 ? 'answered' : reply.text);
    return { reply, stream: readArrow(reply.bytes) };
  };

  await t.test('say what they are of, and in the trailer how they went', async (t) => {
    const osql = 'SELECT id, name, email FROM osl.entities.customer ORDER BY id';
    const { reply, stream } = await arrow('user:ann', { osql });
    t.equal(reply.headers['content-type'], 'application/vnd.apache.arrow.stream');
    t.match(reply.headers, { vary: 'accept', 'cache-control': 'no-store' });
    const { request_id: _, rows, ...told } = await json('user:ann', { osql });
    const { metadata } = stream.schema;
    t.equal(metadata.get('osl.request_id'), reply.requestId);
    t.equal(metadata.get('osl.form'), 'structured');
    t.strictSame(JSON.parse(metadata.get('osl.versions') ?? ''), told['versions']);
    const { columns, ...members } = told;
    t.strictSame(stream.trailer, { request_id: reply.requestId, ...members });
    t.strictSame(
      stream.schema.fields.map(({ name, metadata: m }) => {
        return {
          name,
          type: m.get('osl.type'),
          source: m.get('osl.source') ?? null,
          redacted: m.get('osl.redacted') === 'true',
        };
      }),
      columns,
    );
    t.strictSame(asJson(stream), rows);
    t.ok(stream.ended);
    t.strictSame(
      (await rest.trail(reply.requestId)).map((r) => r.outcome ?? r.decision),
      ['allow', 'ok'],
    );
  });

  await t.test('hold the masks of the caller, and say which aggregates rest on them', async (t) => {
    for (const subject of ['user:ann', 'user:ada', 'user:eu']) {
      for (const osql of [
        'SELECT id, email, tax_no, born FROM osl.entities.customer ORDER BY id',
        'SELECT count(email) AS n, min(born) AS first FROM osl.entities.customer',
      ]) {
        const told = await json(subject, { osql });
        if (told['rows'] === undefined) continue; // this subject may not ask that
        const { stream } = await arrow(subject, { osql });
        t.strictSame(asJson(stream), told['rows'], `${subject}: ${osql}`);
        const { redacted_columns, partial_columns } = told;
        t.match(stream.trailer, { redacted_columns });
        t.strictSame(stream.trailer?.['partial_columns'], partial_columns);
      }
    }
  });

  await t.test('are of all three bodies', async (t) => {
    for (const body of [
      { sql: 'SELECT id, name FROM shop.customers ORDER BY id' },
      { metrics: ['revenue'], group_by: ['customer__region'], order_by: ['customer__region'] },
      { osql: 'SELECT $1::int8 AS big, $2::numeric AS exact', parameters: ['9007199254740993', '1.10'] },
    ]) {
      const told = await json('user:ann', body);
      t.ok(told['rows'], JSON.stringify(told));
      t.strictSame(asJson((await arrow('user:ann', body)).stream), told['rows'], JSON.stringify(body));
    }
  });

  await t.test('without rows are a schema and a trailer', async (t) => {
    const { stream } = await arrow('user:ann', { osql: 'SELECT id FROM osl.entities.customer WHERE id < 0' });
    t.match(stream.trailer, { row_count: 0, truncated: false });
    t.equal(stream.schema.fields.length, 1);
    t.strictSame(
      stream.batches.map((b) => b.numRows),
      [0],
    );
  });

  await t.test('without columns have a number of rows all the same', async (t) => {
    const { stream } = await arrow('user:ann', { osql: 'SELECT' });
    t.equal(stream.schema.fields.length, 0);
    t.strictSame(
      stream.batches.map((b) => b.numRows),
      [1, 0],
    );
  });

  await t.test('have names of their own for columns of one name', async (t) => {
    const { stream } = await arrow('user:ann', { osql: 'SELECT 1 AS a, 2 AS a' });
    t.strictSame(asJson(stream), [{ a: 1, a_2: 2 }]);
  });

  await t.test('refuse what Arrow has no value for, and other columns keep theirs', async (t) => {
    const of = (column: string, id: number) =>
      `SELECT id, ${column} FROM osl.entities.sample WHERE id = ${id}`;
    for (const [osql, what] of [
      [of('day', 2), 'column `day` holds infinity'],
      [of('local', 2), 'column `local` holds -infinity'],
      [of('moment', 2), 'column `moment` holds infinity'],
      [of('moments', 1), 'column `moments` holds infinity'],
      [of('texts', 2), 'column `texts` holds an array of 2 dimensions'],
      ["SELECT '24:00:00'::time AS t", 'column `t` holds 24:00:00'],
      ["SELECT '294248-01-01'::timestamp AS t", 'column `t` holds a time after 294247-01-10'],
      ["SELECT '2600000 hours'::interval AS i", 'column `i` holds more than 292 years in hours'],
    ] as const) {
      const reply = await rest.ask('user:ann', { osql }, ARROW);
      t.match(reply.json(), {
        status: 406,
        code: 'E4060',
        detail: `${what}, which its Arrow type cannot represent`,
      });
      t.equal(reply.headers['content-type'], 'application/problem+json');
      t.match(await rest.trail(reply.requestId), [
        { decision: 'allow' },
        { outcome: 'error', code: 'E4060' },
      ]);
      t.equal((await rest.ask('user:ann', { osql })).status, 200, 'JSON has it');
    }
    const as = { osql: 'SELECT day::text AS day, real4, exact FROM osl.entities.sample WHERE id = 2' };
    t.strictSame(asJson((await arrow('user:ann', as)).stream), [
      { day: 'infinity', real4: 'NaN', exact: 'NaN' },
    ]);
  });

  await t.test('are never half of a refusal', async (t) => {
    for (const [subject, osql, code] of [
      ['user:ann', 'SELECT nothing FROM osl.entities.customer', 'E0512'],
      ['user:ann', 'SELEC 1', 'E0511'],
      ['user:nil', 'SELECT id FROM osl.entities.customer', 'E2102'],
    ] as const) {
      const reply = await rest.ask(subject, { osql }, ARROW);
      t.match(reply.json(), { code });
      t.equal(reply.headers['content-type'], 'application/problem+json');
    }
  });

  await t.test('are not plans', async (t) => {
    const reply = await rest.ask('user:ann', { osql: 'SELECT 1 AS a', explain: true }, ARROW);
    t.equal(reply.headers['content-type'], 'application/json');
  });
});

test('a truncated answer says so in its trailer', async (t) => {
  const caps = { rows: 7, bytes: 1_000_000, evidence: 1_000, timeoutMs: 10_000 };
  const small = await startRest({ settings: { caps } });
  t.teardown(() => small.close());
  const reply = await small.ask('user:ann', { osql: 'SELECT id FROM osl.entities.order ORDER BY id' }, ARROW);
  const { batches, trailer, ended } = readArrow(reply.bytes);
  t.match(trailer, { row_count: 7, truncated: true });
  t.strictSame(
    batches.map((b) => b.numRows),
    [7, 0],
  );
  t.ok(ended);
  t.match(await small.trail(reply.requestId), [{}, { outcome: 'truncated', rows: 7 }]);
});

test('which layout a client gets', async (t) => {
  const arrow = 'application/vnd.apache.arrow.stream';
  for (const [accept, layout] of [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/*', 'json'],
    ['text/csv', 'json'],
    [arrow, 'arrow'],
    [`${arrow}, application/json`, 'arrow'],
    [`application/json, ${arrow}`, 'arrow'],
    [`application/json, ${arrow};q=0.9`, 'json'],
    [`${arrow};q=0.2, application/json;q=0.3, application/x-ndjson;q=0.4`, 'ndjson'],
    [`${arrow};q=0.5, */*;q=0.1`, 'arrow'],
    [`${arrow};q=0.5, */*`, 'json'],
    [`${arrow};q=0`, 'json'],
    [`${arrow};q=0.000, application/x-ndjson`, 'ndjson'],
    [`${arrow};q=nonsense`, 'json'],
    [`${arrow}; charset=x ; Q=0.5`, 'arrow'],
    [`${arrow}x`, 'json'],
    [arrow.toUpperCase(), 'arrow'],
    ['text/html, Application/X-NDJSON;q=0.5', 'ndjson'],
    ['application/json, application/x-ndjson', 'ndjson'],
    [';;q=,,,', 'json'],
  ] as const) {
    t.equal(layoutOf(accept), layout, String(accept));
  }
});
