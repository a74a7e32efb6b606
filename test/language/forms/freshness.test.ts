import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { contentStatus, indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import * as wire from '../../wire/support/bytes.js';
import { articlesWorld } from './articles.js';
import { at, startForms } from './fixture.js';
import { NOTES, toyEmbeddings, vectorsWorld } from './vectors.js';

/** The age of an index, in the schema and in each answer that uses it, is that of the rounds of `osl index`. */

t.setTimeout(180_000);

const forms = await startForms(articlesWorld());
t.teardown(() => forms.close());
const { open, service, engine } = forms.test;
const content = settingsFrom({}, '/').content;

const FOUND = "select text from RETRIEVE(facet => 'notes', query => 'windmill gazebo', top_k => 50)";

/** A round of `osl index`; null: one that a changed row brought about. */
const round = (readAt: Date | null) =>
  indexContent(service.model().manifest, open.databases, content, [], () => undefined, { readAt });

const indexesOf = async (subject: string, osql = FOUND): Promise<unknown> =>
  at((await forms.ask(subject, osql)).json, 'indexes');

async function schemaFor(subject: string) {
  const token = await forms.fronts.token({ subject, aclRoles: [ceilings[subject] ?? ''] });
  const reply = await fetch(`http://127.0.0.1:${forms.fronts.httpPort}/osl/schema?governed=true`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { body: (await reply.json()) as Readonly<Record<string, unknown>>, etag: reply.headers.get('etag') };
}
const ceilings: Readonly<Record<string, string>> = {
  'user:ada': 'raw',
  'user:de': 'german',
  'user:non': 'none',
};

/** Returns the state of a facet's index, as in the schema. */
async function toldIn(subject: string): Promise<unknown> {
  const { facets } = (await schemaFor(subject)).body;
  return Array.isArray(facets) ? facets.map((f) => [at(f, 'name'), at(f, 'indexed_at')]) : null;
}

/** Waits, since the knowledge of a server about a store may be some seconds old. */
async function untilSame(read: () => Promise<unknown>, wanted: unknown): Promise<void> {
  while (JSON.stringify(await read()) !== JSON.stringify(wanted)) await sleep(100);
}

t.test('an answer says when the texts that it was found in were read', async (t) => {
  const [held] = await engine.system.query(
    sql`select to_char(indexed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
       from osl_content.facet where facet = 'notes' and version = 'raw'`,
  );
  t.match(held?.['at'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  for (const subject of ['user:ada', 'user:ann', 'user:de'])
    t.same(await indexesOf(subject), [{ facet: 'notes', indexed_at: held?.['at'] }], subject);
  const key = 'select evidence from osl.entities.article where id = 1';
  t.same(await indexesOf('user:ann', key), [{ facet: 'notes', indexed_at: held?.['at'] }], 'by key, too');
  const { json } = await forms.ask('user:ann', 'select id from osl.entities.article where id = 1');
  t.notOk('indexes' in Object(json), 'an answer that rests on no text says nothing');
});

t.test('the wire gives the same rows, and no notice', async (t) => {
  const client = await forms.wire('user:ada');
  const messages = await client.exchange(wire.query(FOUND));
  t.notOk(messages.some((m) => m.type === 'N' || m.type === 'E'));
  t.equal(messages.filter((m) => m.type === 'D').length, (await forms.ask('user:ada', FOUND)).rows.length);
});

t.test('rounds are told although the clock was set back', async (t) => {
  const told = async () => ({
    store: (await service.content.ready('notes', 'raw')).indexedAt,
    schema: (await service.content.indexedAt(['notes'])).get('notes'),
  });
  await told();
  const { now } = Date;
  Date.now = () => now() - 3_600_000;
  try {
    const at = '2031-03-04T05:06:07Z';
    await round(new Date(at));
    for (let n = 0; n < 80 && (await told()).schema !== at; n++) await sleep(100);
    t.same(await told(), { store: at, schema: at });
  } finally {
    Date.now = now;
  }
});

t.test('rounds in turn are told, in answers and in the schema', async (t) => {
  const before = await schemaFor('user:ada');
  await round(new Date('2031-02-03T04:05:06.789Z'));
  const wanted = [{ facet: 'notes', indexed_at: '2031-02-03T04:05:06Z' }];
  await untilSame(() => indexesOf('user:ada'), wanted);
  await untilSame(() => toldIn('user:ada'), [['notes', '2031-02-03T04:05:06Z']]);
  t.same(await toldIn('user:non'), [], 'only of facets that the caller is shown');
  const after = await schemaFor('user:ada');
  t.equal(after.body['version'], before.body['version'], 'what can be asked is the same');
  t.not(after.etag, before.etag, 'what is read is not');
});

t.test('a round that a changed row brought about is not told: the row may be hidden', async (t) => {
  const passages = async (): Promise<number> => (await forms.ask('user:ada', FOUND)).rows.length;
  const before = await passages();
  await engine.system.query(
    sql`insert into press.note (id, article_id, lang, body) values ('gazebo', 1, 'en', 'A gazebo beside the windmill.')`,
  );
  await round(null);
  t.equal(await passages(), before + 1, 'what was read is there at once');
  const [held] = await engine.system.query(
    sql`select count(distinct indexed_at)::int as n, min(extract(year from indexed_at))::int as y from osl_content.facet`,
  );
  t.same(held, { n: 1, y: 2031 });
  t.same(await indexesOf('user:de'), [{ facet: 'notes', indexed_at: '2031-02-03T04:05:06Z' }]);
});

t.test('the operator is told how many rows a store is behind: what the next round then does', async (t) => {
  const standing = () => contentStatus(service.model().manifest, open.databases, ['notes']);
  const [before] = await standing();
  t.match(before, { version: 'raw', state: 'ready', behind: { added: 0, changed: 0, removed: 0 } });
  await engine.system.script(sql`
    insert into press.note (id, article_id, lang, body) values ('new', 1, 'en', 'A new note.');
    update press.note set body = body || ' and more' where id in (select id from press.note where id not in ('new', 'gazebo') order by id limit 2);
    delete from press.note where id = 'gazebo';`);
  const behind = await standing();
  t.same(
    behind.map((s) => [s.version, s.behind]),
    [
      ['raw', { added: 1, changed: 2, removed: 1 }],
      ['masked', { added: 1, changed: 2, removed: 1 }],
    ],
  );
  t.same(await standing(), behind, 'which changes nothing');
  const done = (await round(null)).filter((s) => s.facet === 'notes');
  t.same(
    done.map(({ added, changed, removed }) => ({ added, changed, removed })),
    behind.map((s) => s.behind),
  );
  t.match(
    (await standing()).map((s) => s.behind),
    [before?.behind, before?.behind],
  );
});

t.test('of two legs the older one counts', async (t) => {
  const server = await toyEmbeddings();
  t.teardown(() => server.close());
  const both = await startForms(
    vectorsWorld('{ max_top_k: 50, hybrid: true }', NOTES.slice(0, 40), server.url),
  );
  t.teardown(() => both.close());
  const [dense, lexical] = ['2031-01-01T00:00:00Z', '2030-01-01T00:00:00Z'];
  await both.test.engine.system.query(
    sql`update osl_content.facet set indexed_at = case facet when 'notes' then $1::timestamptz else $2::timestamptz end`,
    [dense, lexical],
  );
  const read = async (mode: string): Promise<unknown> => {
    const osql = `select text from RETRIEVE(facet => 'notes', query => 'w1', top_k => 3, mode => '${mode}')`;
    return at((await both.ask('user:ann', osql)).json, 'indexes');
  };
  t.same(await read('hybrid'), [{ facet: 'notes', indexed_at: lexical }]);
  t.same(await read('dense'), [{ facet: 'notes', indexed_at: dense }]);
  t.same(await read('lexical'), [{ facet: 'notes', indexed_at: lexical }]);
});
