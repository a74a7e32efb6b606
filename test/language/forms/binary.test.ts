import { oidOf, QueryError, type TypeName } from 'osl-compiler';
import t from 'tap';
import { textOfBinary } from '../../../src/ask/data/runtime/constants.js';
import { sql } from '../../../src/base/sql.js';
import { startFrontends, WireClient } from '../../support/frontends.js';
import { startTestService } from '../../support/service.js';
import { articlesWorld } from './articles.js';
import { startForms } from './fixture.js';
import { GRAPH_WORLD } from './graph.js';

t.setTimeout(600_000);

const int = (n: number): Buffer => {
  const b = Buffer.alloc(4);
  b.writeInt32BE(n);
  return b;
};
const long = (n: number): Buffer => {
  const b = Buffer.alloc(8);
  b.writeBigInt64BE(BigInt(n));
  return b;
};
const list = (...items: readonly Buffer[]): Buffer =>
  Buffer.concat([
    int(1),
    int(0),
    int(oidOf('int4')),
    int(items.length),
    int(1),
    ...items.flatMap((i) => [int(i.length), i]),
  ]);

t.test('RETRIEVE takes its query and top_k in binary', async (t) => {
  const forms = await startForms(articlesWorld());
  t.teardown(() => forms.close());
  const client = await forms.wire('user:eu');
  const osql = "select text from RETRIEVE(facet => 'notes', query => $1, top_k => $2)";
  const asText = await client.extended(osql, { values: ['windmill', '3'] });
  t.equal(asText.outcome.kind === 'rows' && asText.outcome.rows.length, 3);
  for (const [what, count, oid] of [
    ['int4', int(3), 0],
    ['int4, declared', int(3), oidOf('int4')],
    ['int8, declared', long(3), oidOf('int8')],
  ] as const) {
    const values = [Buffer.from('windmill'), count];
    const { outcome } = await client.extended(osql, { values, formats: [1, 1] }, [oidOf('text'), oid]);
    t.same(outcome, asText.outcome, what);
  }
  const wrong = await client.extended(osql, { values: ['windmill', Buffer.from([1, 2])], formats: [0, 1] });
  t.match(wrong.outcome, { kind: 'refused', code: 'E0511', sqlstate: '22P02' }, 'two bytes are no int4');
  const large = await client.extended(osql, { values: ['windmill', int(1_000_000)], formats: [0, 1] });
  t.match(large.outcome, { kind: 'refused', code: 'E0511' }, 'the limit holds in binary too');
});

t.test('TRAVERSE takes its keys in binary', async (t) => {
  const forms = await startForms(GRAPH_WORLD);
  t.teardown(() => forms.close());
  await forms.test.engine.system.script(
    sql`insert into g.node select n, true from generate_series(1, 4) n; insert into g.link select n, n + 1, true from generate_series(1, 3) n`,
  );
  const client = await forms.wire('user:all');
  const walk = (keys: string): string =>
    `select id, depth from TRAVERSE(anchor => 'node', target => 'node', keys => ${keys}, direction => 'out')`;
  const expected = await client.simple(walk("('2')"));
  t.same(expected.outcome.kind === 'rows' && expected.outcome.rows, [
    ['3', '1'],
    ['4', '2'],
  ]);
  const one = await client.extended(walk('($1, $1)'), { values: [int(2)], formats: [1] });
  t.same(one.outcome, expected.outcome, 'one key');
  const many = await client.extended(walk('$1'), { values: [list(int(2))], formats: [1] });
  t.same(many.outcome, expected.outcome, 'a list');
  const cut = await client.extended(walk('$1'), { values: [list(int(2)).subarray(0, 22)], formats: [1] });
  t.match(cut.outcome, { kind: 'refused', sqlstate: '22P02' }, 'a list that ends too early');
});

t.test('what Postgres writes in binary is read as what it writes in text', async (t) => {
  const test = await startTestService();
  const fronts = await startFrontends(test.open);
  const caller = { subject: 'user:ann', aclRoles: ['analyst'] };
  const client = await WireClient.login(fronts.pgPort, caller.subject, await fronts.token(caller));
  t.teardown(async () => {
    client.end();
    await fronts.stop();
    await test.close();
  });
  const columns: readonly (readonly [string, TypeName])[] = [
    ['flag', 'bool'],
    ['small', 'int2'],
    ['id', 'int4'],
    ['big', 'int8'],
    ['words', 'text'],
    ['token', 'uuid'],
    ['bytes', 'bytea'],
    ['\'{"a": [1, "é"]}\'::jsonb', 'jsonb'],
    ["string_to_array('a,b c,,\"d\\e\",x', ',', 'x')", 'text[]'],
    ['array[small, 7::int2, null]', 'int2[]'],
  ];
  for (const [expr, type] of columns) {
    const query = `select ${expr} from sample where id = 1`;
    const text = await client.extended(query);
    const binary = await client.extended(query, { results: [1] });
    if (text.outcome.kind !== 'rows' || binary.outcome.kind !== 'rows') throw new Error(query);
    const bytes = Buffer.from(binary.outcome.rows[0]?.[0]?.slice(2) ?? '', 'hex');
    const plain = text.outcome.rows[0]?.[0] ?? '';
    const read = textOfBinary(bytes, type);
    if (type === 'jsonb') t.same(JSON.parse(read), JSON.parse(plain), expr);
    else if (type.endsWith('[]')) t.equal(read.replaceAll('"', ''), plain.replaceAll('"', ''), expr);
    else t.equal(read, plain, expr);
    if (!['text', 'bytea', 'jsonb'].includes(type))
      t.throws(() => textOfBinary(bytes.subarray(0, -1), type), QueryError, `${expr}, one byte short`);
  }
  t.equal(textOfBinary(Buffer.from('7ff0000000000000', 'hex'), 'float8'), 'Infinity');
  t.equal(textOfBinary(Buffer.from('3f8ccccd', 'hex'), 'float4').slice(0, 3), '1.1');
  t.throws(() => textOfBinary(Buffer.alloc(8), 'timestamptz'), /cannot be a binary timestamptz/);
});
