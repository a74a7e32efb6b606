import { emit } from 'osl-compiler';
import t from 'tap';
import { PermittedSets } from '../../../src/ask/data/runtime/permitted-counts.js';
import { generatedSql, sql } from '../../../src/base/sql.js';
import type { Service } from '../../../src/service/service.js';
import { replacing } from '../../support/replacing.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { at, startForms } from './fixture.js';
import { insertNotes, NOTES, toyEmbeddings, vectorsWorld } from './vectors.js';

t.setTimeout(600_000);

/** Each finds candidates, and compares them exactly in the same statement. */
const APPROXIMATE = '<#>';
const SIGNS = '<~>';
const EXACT = '<=>';

const lanes = { few: new PermittedSets(1_000_000), many: new PermittedSets(0) };
let sets = lanes.many;
/** Ways in which statements that compared vectors found their candidates, in order. */
let sent: string[] = [];
let last: { readonly sql: string; readonly values: readonly string[] } = { sql: '', values: [] };

const server = await toyEmbeddings();
t.teardown(() => server.close());
const some = NOTES.slice(0, 1_100);
const forms = await startForms(
  vectorsWorld('{ max_top_k: 50, approximate: true }', some, server.url),
  (service: Service): Service => ({
    ...sealing(service, {
      engines: new Map(
        [...sealedParts(service).engines].map(([name, engine]) => {
          const execute: typeof engine.execute = (plan, values, ...rest) => {
            const { sql } = emit(plan);
            const mark = [APPROXIMATE, SIGNS, EXACT].find((operator) => sql.includes(operator));
            if (mark !== undefined) {
              sent.push(mark);
              if (mark === APPROXIMATE)
                last = { sql, values: values.map((v) => Buffer.from(v.bytes ?? []).toString('utf8')) };
            }
            return engine.execute(plan, values, ...rest);
          };
          return [name, replacing(engine, { execute })];
        }),
      ),
    }),
    permitted: { areMany: (...args) => sets.areMany(...args) },
  }),
);
t.teardown(() => forms.close());
const { system } = forms.test.engine;

/** Few rows would be sorted rather than looked up; the planner is told that there are many. */
async function asMany(): Promise<void> {
  await system.script(
    sql`update pg_catalog.pg_class set reltuples = 1000000 where relname in ('notes__raw', 'notes__raw__bits')`,
  );
}
await asMany();

async function found(who: string, k: number, more = '') {
  sent = [];
  const { rows, message } = await forms.ask(
    who,
    `select score, cite, article_id, lang from RETRIEVE(facet => 'notes', query => 'w1 w2 w3', top_k => ${k})${more}`,
  );
  if (message !== '') throw new Error(message);
  const passages = rows.map((r) => ({ id: String(at(r['cite'], 'doc_id')), score: Number(r['score']) }));
  return { passages, rows, lanes: sent };
}

const scores = async (who: string): Promise<ReadonlyMap<string, number>> => {
  sets = lanes.few;
  const { passages, lanes: used } = await found(who, 50);
  sets = lanes.many;
  if (used.join() !== EXACT) throw new Error(`an exact search went by ${used.join()}`);
  return new Map(passages.map((p) => [p.id, p.score]));
};

t.test('a large permitted set is searched by the index, a small one exactly', async (t) => {
  t.same((await found('user:ann', 5)).lanes, [APPROXIMATE]);
  t.same((await found('user:eu', 5)).lanes, [APPROXIMATE]);
  t.same((await found('user:odd', 5)).lanes, [APPROXIMATE, SIGNS], 'too few come back: again, exactly');
  t.same(
    (await found('user:de', 5, " where lower(lang) = 'de'")).lanes,
    [SIGNS],
    'no index orders what is fenced',
  );
  t.same(
    (await found('user:de', 5, " where lang = 'de'")).lanes,
    [APPROXIMATE],
    'a filter that cannot fail needs no fence',
  );
  sets = lanes.few;
  t.same((await found('user:ann', 5)).lanes, [EXACT]);
  sets = lanes.many;
});

t.test(
  'whatever it misses: permitted passages only, as many as there are, with their true scores',
  async (t) => {
    const exact = await scores('user:eu');
    const { passages, rows } = await found('user:eu', 50);
    t.equal(passages.length, 50);
    t.ok(rows.every((r) => Number(r['article_id']) % 2 === 1));
    for (const { id, score } of passages) t.equal(exact.get(id) ?? score, score, id);
    t.same(
      passages.map((p) => p.score),
      passages.map((p) => p.score).sort((a, b) => b - a),
      'best first',
    );
    const hits = passages.filter((p) => exact.has(p.id)).length;
    t.ok(hits >= 45, `${hits} of the best 50`);
    const odd = await found('user:odd', 50);
    t.equal(odd.passages.length, some.filter((n) => n.lang === 'xx').length);
    t.same(
      odd.passages,
      [...(await scores('user:odd'))].map(([id, score]) => ({ id, score })),
    );
  },
);

t.test('the index is what finds them', async (t) => {
  for (const who of ['user:ann', 'user:eu', 'user:de']) {
    await found(who, 5);
    const plan = await system.query(generatedSql(`explain ${last.sql}`), last.values);
    t.match(JSON.stringify(plan), /Index Scan using \w*embedding/, who);
  }
});

t.test('hidden documents may change what it misses, and nothing else', async (t) => {
  const before = await scores('user:eu');
  const near = some
    .filter((n) => n.article % 2 === 0)
    .map((n, i) => ({ ...n, id: `x${n.id}`, body: `w1 w2 w3 w${i % 7}` }));
  await system.script(generatedSql(insertNotes(near)));
  await forms.reindex();
  await asMany();
  t.same(await scores('user:eu'), before, 'the exact lane sees none of them');
  const { passages, rows } = await found('user:eu', 50);
  t.equal(passages.length, 50, 'never short');
  t.ok(rows.every((r) => Number(r['article_id']) % 2 === 1));
  for (const { id, score } of passages) t.equal(before.get(id) ?? score, score, id);
  const explained = await forms.ask(
    'user:eu',
    "select text from RETRIEVE(facet => 'notes', query => 'w1', top_k => 3)",
    {
      explain: true,
    },
  );
  t.match(JSON.stringify(explained.json), /"lane":\{"few":"exact","many":"approximate index"\}/);
});
