import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { contentPlane } from '../../../src/service/indexing/content.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { systemReads } from '../../../src/service/system-reads.js';
import { json } from '../../content/server.js';
import { startForms } from './fixture.js';
import { NOTES, toyEmbeddings, toyVector, vectorsWorld } from './vectors.js';

t.setTimeout(600_000);

const server = await toyEmbeddings();
const working = server.answer;
const content = {
  embeddings: { url: server.url, keyEnv: null, retries: 1, backoffMs: 5, timeoutMs: 5_000 },
  chat: null,
};
const some = NOTES.slice(0, 40);
const forms = await startForms({
  ...vectorsWorld('{ max_top_k: 50 }', some, server.url),
  settings: { content },
});
t.teardown(async () => {
  await forms.close();
  await server.close();
});
const { open, service, engine } = forms.test;

const planeOf = () =>
  contentPlane(() => service.model().manifest, systemReads(open.databases), content, service.log, '.');
const retrieve = (topK = 5, query = some[3]?.body ?? ''): Promise<Awaited<ReturnType<typeof forms.ask>>> =>
  forms.ask('user:ann', `select cite, score from RETRIEVE(facet => 'notes', query => $1, top_k => ${topK})`, {
    parameters: [query],
  });

t.beforeEach(() => {
  server.answer = working;
});

t.test('what is indexed by an endpoint is found by it, best first', async (t) => {
  const { status, rows } = await retrieve(40);
  t.equal(status, 200);
  t.equal(rows.length, 40);
  const scores = rows.map((r) => Number(r['score']));
  t.same(
    scores,
    [...scores].sort((a, b) => b - a),
  );
  t.match(rows[0], { cite: { doc_id: some[3]?.id }, score: 1 }, 'a text is nearest to itself');
  const [row] = await engine.system.query(sql`select count(*) as n from osl_content.notes__raw`);
  t.equal(Number(row?.['n']), 40);
});

t.test('an order of its own is put right', async (t) => {
  const before = (await retrieve()).rows;
  server.answer = ({ body }, r) => {
    const input = body['input'] as readonly string[]; // as we send it
    const data = input.map((text, index) => ({ index, embedding: toyVector(text) }));
    json(r, { data: data.reverse() });
  };
  await engine.system.query(sql`update press.note set body = body || ' again' where id <> $1`, [some[3]?.id]);
  await forms.reindex();
  t.match((await retrieve(1)).rows, [{ cite: { doc_id: some[3]?.id }, score: 1 }]);
  server.answer = working;
  await engine.system.query(sql`update press.note set body = regexp_replace(body, ' again$', '')`);
  await forms.reindex();
  t.same((await retrieve()).rows, before);
});

const BROKEN: readonly (readonly [string, typeof server.answer])[] = [
  ['another width', (_, r) => json(r, { data: [{ index: 0, embedding: [1, 2] }] })],
  ['a number that is none', (_, r) => json(r, { data: [{ index: 0, embedding: [null, 1, 1] }] })],
  ['NaN', (_, r) => void r.writeHead(200).end('{"data": [{"index": 0, "embedding": [NaN]}]}')],
  ['too few', (_, r) => json(r, { data: [] })],
  ['too many', (_, r) => json(r, { data: [0, 1].map((index) => ({ index, embedding: [1, 1, 1] })) })],
  ['an index twice', (_, r) => json(r, { data: [{ index: 7, embedding: [1, 1, 1] }] })],
  ['zeros', (_, r) => json(r, { data: [{ index: 0, embedding: [0, 0, 0] }] })],
  ['a failure', (_, r) => json(r, { error: 'the key is sk-123' }, 500)],
  ['no answer', () => undefined],
];

t.test('a query that was embedded before is not embedded again', async (t) => {
  server.asked.length = 0;
  const first = await retrieve(5, 'a query of its own');
  t.equal(server.asked.length, 1);
  server.answer = (_, r) => json(r, {}, 500);
  t.same((await retrieve(5, 'a query of its own')).rows, first.rows);
  t.equal(server.asked.length, 1);
  t.equal((await retrieve(5, 'another query')).status, 503, 'what failed is not kept');
  server.answer = working;
  t.equal((await retrieve(5, 'another query')).status, 200);
});

t.test('an answer that is none is E0522, and nothing is served from it', async (t) => {
  for (const [name, answer] of BROKEN) {
    server.answer = answer;
    const reply = await retrieve(5, `not asked before: ${name}`);
    t.same([reply.status, reply.code], [503, 'E0522'], name);
    t.notOk(reply.raw.includes('sk-123'), 'the endpoint is not quoted');
    t.ok(reply.raw.includes('the embedding model of facet `notes` is unavailable'), name);
    t.notOk(reply.raw.includes('osl index'), 'which would not mend it');
  }
});

t.test('indexing with such answers fails, and leaves the store as it was', async (t) => {
  const rows = () =>
    engine.system.query(
      sql`select chunk_id, text, embedding::text as e from osl_content.notes__raw order by chunk_id`,
    );
  const before = await rows();
  await engine.system.query(sql`update press.note set body = 'changed ' || body where id = $1`, [
    some[0]?.id,
  ]);
  // A model of another width is another model, for which the store is made anew: see below.
  for (const [name, answer] of BROKEN.filter(([name]) => name !== 'another width')) {
    server.answer = answer;
    const indexed = indexContent(service.model().manifest, open.databases, content, [], () => undefined);
    await t.rejects(indexed, { name: 'ContentError' }, name);
    t.ok(JSON.stringify(await rows()) === JSON.stringify(before), name);
  }
});

t.test('a store that another width was indexed with is not read', async (t) => {
  const wide: typeof server.answer = (asked, r) => {
    const input = asked.body['input'] as readonly string[]; // as we send it
    json(r, { data: input.map((_, index) => ({ index, embedding: [1, 2, 3, 4, 5] })) });
  };
  server.answer = wide;
  const plane = planeOf();
  await t.rejects(plane.ready('notes', 'raw'), { code: 'E0522', message: /another embedder/ });
  server.answer = working;
  const again = planeOf();
  await t.resolves(again.ready('notes', 'raw'), 'the same model serves');
  server.answer = (asked, r) => {
    const input = asked.body['input'] as readonly string[]; // as we send it
    if (input.length > 1) json(r, {}, 500);
    else wide(asked, r);
  };
  const indexed = indexContent(service.model().manifest, open.databases, content, [], () => undefined);
  await t.rejects(
    indexed,
    { name: 'ContentError' },
    'another is begun beside it for the other model, and fails',
  );
  const half = planeOf();
  await t.rejects(half.ready('notes', 'raw'), { code: 'E0522' }, 'what is half built is not read');
  server.answer = working;
  const kept = planeOf();
  await t.resolves(kept.ready('notes', 'raw'), 'and the first still serves its own model');
  await forms.reindex();
  const built = planeOf();
  await t.resolves(built.ready('notes', 'raw'));
});
