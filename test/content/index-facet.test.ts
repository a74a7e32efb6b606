import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EncoderName } from 'osl-compiler';
import tap, { test } from 'tap';
import { generatedSql, sql } from '../../src/base/sql.js';
import { ngramVector } from '../../src/content/embed/lexical-v1.js';
import {
  ContentError,
  DEFAULT_MIN_LENGTH,
  dropStore,
  type IndexProgress,
  indexFacet,
  lexicalEmbedder,
  lexicalQuery,
  openStore,
  runEncoder,
  storeState,
  termsOf,
} from '../../src/content/index.js';
import { measuredLength } from '../../src/content/lexical/bm25.js';
import { openEngine, type SystemEngine, type SystemQueries } from '../../src/engine/index.js';
import type { ArgumentValues } from '../../src/model/facets/arguments.js';
import { metadataColumn, storeTable } from '../../src/model/facets/store-names.js';
import { NO_NATIVE, nativeFixture } from '../engine/fixture.js';
import { fc } from '../support/fast-check.js';
import { replacing } from '../support/replacing.js';
import { systemRoleScript } from '../support/system-role.js';
import {
  ARTICLES,
  article,
  counting,
  createShop,
  derivedRows,
  derivingManifest,
  exceptingManifest,
  facet,
  facetOf,
  indexShop,
  manifest,
  PEOPLE,
  prose,
  putArticle,
  storeRows,
  testEngine,
} from './fixture.js';
import { parseVector, sliceCodePoints } from './reference.js';

tap.setTimeout(600_000);

type Row = Record<string, unknown>;

const plain = (rows: readonly Row[]): Row[] => rows.map((r) => ({ ...r }));

test('indexing', async (t) => {
  const engine = await testEngine();
  t.teardown(() => engine.close());
  const { system } = engine;
  const epoch = async (version: string) => Number((await storeState(system, 'article', version))?.epoch);

  await t.test('raw chunks are slices of the source, by the offsets that they state', async (t) => {
    await createShop(system);
    const summary = await indexShop(system, 'raw');
    t.match(summary, {
      documents: 5,
      added: 5,
      changed: 0,
      removed: 0,
      redactions: { byKind: {}, values: 0 },
    });
    const rows = await storeRows(system, 'raw');
    t.equal(rows.length, summary.chunks);
    t.ok(rows.length > 8);
    for (const row of rows) {
      const body = ARTICLES.find((a) => a.id === row['doc_id'])?.body ?? '';
      t.equal(sliceCodePoints(body, Number(row['start_char']), Number(row['end_char'])), row['text']);
      t.equal(createHash('sha256').update(`${row['text']}`).digest('hex'), row['sha256']);
      t.equal(row['chunk_id'], `${row['doc_id']}#${`${row['ordinal']}`.padStart(6, '0')}`);
    }
    const wrong = await system.query(
      sql`select c.chunk_id from osl_content.article__raw c join shop.article a on a.id = c.doc_id
        where substr(a.body, c.start_char + 1, c.end_char - c.start_char) <> c.text or c.entity_key is distinct from a.product
           or c.author is distinct from a.author or c.words <> a.words or c.__ordinal <> 7 or c.redacted_fields <> '{}'`,
    );
    t.strictSame(wrong, [], 'Postgres counts the same characters');
  });

  await t.test('every letter of a document is in some chunk, and no chunk is too long', async (t) => {
    const rows = await storeRows(system, 'raw');
    for (const { id, body } of ARTICLES) {
      const covered = new Set<number>();
      for (const row of rows.filter((r) => r['doc_id'] === id)) {
        t.ok(`${row['text']}`.length <= facet.chunking.maxChars);
        for (let i = Number(row['start_char']); i < Number(row['end_char']); i++) covered.add(i);
      }
      const missed = [...body].filter((c, i) => !covered.has(i) && /\S/.test(c));
      t.strictSame(missed, []);
    }
  });

  await t.test('nothing changed: nothing embedded, the epoch stands', async (t) => {
    const before = await epoch('raw');
    const embedder = counting(lexicalEmbedder);
    t.match(await indexShop(system, 'raw', { embedder }), { documents: 5, added: 0, changed: 0, removed: 0 });
    t.equal(embedder.texts, 0);
    t.equal(await epoch('raw'), before);
  });

  await t.test('what was added, changed and removed is, and the rest is left alone', async (t) => {
    const before = await storeRows(system, 'raw');
    const start = await epoch('raw');
    await putArticle(system, article('a2', 2, 'n', 'New', 'Quite another text about zebras.'));
    await putArticle(system, article('a9', 9, 'n', 'Added', 'A text about giraffes.'));
    await system.query(sql`delete from shop.article where id = 'a3'`);
    t.match(await indexShop(system, 'raw'), { documents: 5, added: 1, changed: 1, removed: 1 });
    const after = await storeRows(system, 'raw');
    const same = (rows: readonly Row[]) =>
      plain(rows.filter((r) => !['a2', 'a3', 'a9'].includes(`${r['doc_id']}`)));
    t.strictSame(same(after), same(before));
    t.strictSame(
      after.filter((r) => ['a2', 'a3', 'a9'].includes(`${r['doc_id']}`)).map((r) => r['text']),
      ['Quite another text about zebras.', 'A text about giraffes.'],
    );
    t.ok((await epoch('raw')) > start);
  });

  await t.test('what operators compare is kept exactly, in half the room', async (t) => {
    const rows = await system.query(
      sql`select text, dense::text as dense, pg_typeof(dense)::text as type, pg_column_size(dense) as size from osl_content.article__raw`,
    );
    for (const { text, dense, type, size } of rows) {
      t.equal(type, 'halfvec');
      t.ok(Number(size) <= 2 * 1_024 + 8, `${size}`);
      t.strictSame(parseVector(String(dense)), ngramVector(String(text)));
    }
  });

  await t.test('how many passages hold each word is what counting them gives', async (t) => {
    const counted = await system.query(
      sql`select term, count(*) as passages from (select unnest(terms) as term from osl_content.article__raw
         union all select 0 from osl_content.article__raw) as h group by 1 order by 1`,
    );
    t.ok(counted.length > 20);
    const kept = await system.query(
      sql`select term, passages from osl_content.article__raw__words order by 1`,
    );
    t.strictSame(plain(kept), plain(counted));
  });

  await t.test('a store has the average length of its first passages, and keeps it', async (t) => {
    const average = async (): Promise<number> => {
      const [row] = await system.query(
        sql`select average_length as n from osl_content.facet where facet = 'article' and version = 'raw'`,
      );
      return Number(row?.['n']);
    };
    const weights = () =>
      system.query(
        sql`select chunk_id, lex::text as lex from osl_content.article__raw where doc_id = 'a1' order by 1`,
      );
    await createShop(system);
    await indexShop(system, 'raw');
    const lengths = await system.query(sql`select length from osl_content.article__raw`);
    const before = await average();
    t.equal(
      before,
      measuredLength(
        lengths.map((r) => Number(r['length'])),
        1,
      ),
    );
    const kept = await weights();
    await putArticle(
      system,
      article('long', 1, 'n', 'Long', 'Many different words about whales and ships. '.repeat(400)),
    );
    await indexShop(system, 'raw');
    t.equal(await average(), before);
    t.strictSame(await weights(), kept, 'no document that comes later changes the score of another');
    await createShop(system);
    await indexShop(system, 'raw');
  });

  await t.test('metadata and keys count as content', async (t) => {
    await system.query(sql`update shop.article set product = 77, title = 'Other' where id = 'a2'`);
    t.match(await indexShop(system, 'raw'), { changed: 1 });
    const [row] = (await storeRows(system, 'raw')).filter((r) => r['doc_id'] === 'a2');
    t.match(row, { entity_key: 77, title: 'Other' });
  });

  await t.test('the masked version has none of the declared values', async (t) => {
    await createShop(system);
    const summary = await indexShop(system, 'masked');
    t.match(summary.redactions, {
      byKind: { person: 7, pii: 2, email: 1, secret: 1 },
      exceptions: { short: 3 },
      skippedColumns: [{ column: 'shop.person.photo', type: 'bytea' }],
    });
    const rows = await storeRows(system, 'masked');
    const stored = rows.map((r) => JSON.stringify({ ...r, dense: null, lex: null })).join('\n');
    for (const value of [
      'zoe@',
      'ångström <',
      'ångström"',
      'strasser',
      'Straßer',
      'hansi',
      'ghp_',
      'other@host',
    ]) {
      t.notOk(stored.toLowerCase().normalize('NFKC').includes(value.toLowerCase()), value);
    }
    t.match(stored, /Ångströmsson/, 'whole words only');
    const a1 = rows.filter((r) => r['doc_id'] === 'a1');
    t.match(a1.at(-1)?.['text'], /Written by \[redacted\] <\[redacted\]>\.$/);
    t.match(a1[0], { author: '[redacted]', title: 'On mills', redacted_fields: ['author'] });
    const a2 = rows.find((r) => r['doc_id'] === 'a2');
    t.match(a2, { title: 'Notes by [redacted]', redacted_fields: ['author', 'title'] });
    const a5 = rows.find((r) => `${r['text']}`.startsWith('The windmill of Zo'));
    t.match(a5?.['doc_id'], /^redacted-[0-9a-f]{24}$/, 'an id that holds a value has a stand-in');
    const documents = await system.query(
      sql`select doc_id from osl_content.document where version = 'masked'`,
    );
    t.notMatch(JSON.stringify(documents), /stra/i);
  });

  await t.test(
    'a value in most documents is told of as a probable word, and an exception leaves it',
    async (t) => {
      const people = [...PEOPLE, { id: 'p8', name: 'ReadMe', email: null }];
      const many = Array.from({ length: 12 }, (_, i) =>
        article(
          `p${i}/README.md`,
          1,
          null,
          `Number ${i}`,
          i === 0 ? 'By Straßer, in the readme' : `Text ${i}`,
        ),
      );
      await createShop(system, people, many);
      const told = await indexShop(system, 'masked');
      t.strictSame(told.redactions.words, [{ value: 'README', label: 'person', documents: 12, of: 12 }]);
      const ids = async () => (await storeRows(system, 'masked')).map((r) => String(r['doc_id'])).sort();
      t.ok(
        (await ids()).every((id) => id.startsWith('redacted-')),
        'each name is a pseudonym',
      );
      t.strictSame(
        (await indexShop(system, 'masked')).redactions.words,
        [],
        'nothing changed: nothing is told',
      );
      t.strictSame(
        (await indexShop(system, 'raw')).redactions.words,
        [],
        'nothing is replaced in the raw version',
      );
      const excepting = facetOf(exceptingManifest);
      await t.rejects(openStore(system, excepting, 'masked', lexicalEmbedder, DEFAULT_MIN_LENGTH), {
        code: 'storeMismatch',
      });
      const [summary] = await indexFacet(system, exceptingManifest, excepting, {
        embedder: lexicalEmbedder,
        versions: ['masked'],
      });
      t.match(summary?.redactions, { words: [], exceptions: { short: 2, declared: 2 } });
      await openStore(system, excepting, 'masked', lexicalEmbedder, DEFAULT_MIN_LENGTH); // it takes its place
      t.ok((await ids()).every((id) => id.endsWith('README.md')));
      const [first] = (await storeRows(system, 'masked')).filter((r) => r['doc_id'] === 'p0/README.md');
      t.equal(first?.['text'], 'By Straßer, in the readme', 'in any case and spelling');
      await createShop(system);
      await indexShop(system, 'masked');
    },
  );

  await t.test('a new declared value redacts old text again, and only that', async (t) => {
    await system.query(sql`insert into shop.person values ('p9', 'turns slowly', null, null, null, null)`);
    const embedder = counting(lexicalEmbedder);
    const summary = await indexShop(system, 'masked', { embedder });
    t.match(summary, { added: 0, changed: 3 });
    t.notMatch(JSON.stringify(await storeRows(system, 'masked')), /turns slowly/i);
    t.match(await indexShop(system, 'masked'), { changed: 0 });
  });

  await t.test('an abort in the middle leaves whole batches, and the next run goes on', async (t) => {
    await createShop(system);
    const stop = new AbortController();
    let batches = 0;
    const progress: IndexProgress[] = [];
    await t.rejects(
      indexFacet(
        system,
        manifest,
        facet,
        { embedder: lexicalEmbedder, versions: ['raw'], batch: 2, signal: stop.signal },
        (p) => {
          progress.push(p);
          if (++batches === 2) stop.abort(new Error('stopped'));
        },
      ),
      { message: 'stopped' },
    );
    t.match(progress, [
      { facet: 'article', version: 'raw', done: 2, total: 5 },
      { done: 4, total: 5 },
    ]);
    t.ok(progress.every((p) => p.documentsPerSecond > 0 && p.secondsLeft !== null));
    t.match(await storeState(system, 'article', 'raw'), { state: 'building' });
    await t.rejects(openStore(system, facet, 'raw', lexicalEmbedder, 3), { code: 'storeBuilding' });
    const held = await storeRows(system, 'raw');
    t.ok(held.length > 0);
    t.match(await indexShop(system, 'raw'), { documents: 5, added: 1, changed: 0 });
    t.match(await openStore(system, facet, 'raw', lexicalEmbedder, 3), {
      state: 'ready',
      table: 'article__raw',
    });
    const resumed = await storeRows(system, 'raw');
    await createShop(system);
    await indexShop(system, 'raw');
    t.strictSame(plain(resumed), plain(await storeRows(system, 'raw')), 'as an unbroken run makes it');
  });

  await t.test('an embedder that fails leaves nothing of its batch', async (t) => {
    await createShop(system);
    let calls = 0;
    const embedder = counting(lexicalEmbedder, () => {
      if (++calls === 2) throw new ContentError('endpoint', 'the endpoint answered 500');
    });
    await t.rejects(indexShop(system, 'raw', { embedder }), { code: 'endpoint' });
    const ids = new Set((await storeRows(system, 'raw')).map((r) => r['doc_id']));
    t.strictSame([...ids], ['Straßer/a5']);
  });

  await t.test(
    'another embedder or other settings are refused, and indexing makes a new store',
    async (t) => {
      await createShop(system);
      await indexShop(system, 'raw');
      const start = await epoch('raw');
      const other = { ...lexicalEmbedder, fingerprint: 'other' };
      await t.rejects(openStore(system, facet, 'raw', other, 3), { code: 'storeMismatch' });
      await t.rejects(openStore(system, facet, 'raw', lexicalEmbedder, 4), { code: 'storeMismatch' });
      const smaller = { ...facet, chunking: { maxChars: 150, overlapChars: 0, by: 'structure' as const } };
      t.match(await openStore(system, smaller, 'raw', lexicalEmbedder, 3), { isCutAsDeclared: false });
      await t.rejects(openStore(system, facet, 'masked', lexicalEmbedder, 3), { code: 'storeMissing' });
      await t.rejects(openStore(system, facet, 'none', lexicalEmbedder, 3), { code: 'unknownVersion' });
      t.match(await indexShop(system, 'raw', { embedder: other }), { added: 5 });
      t.match(await openStore(system, facet, 'raw', lexicalEmbedder, 3), { isCutAsDeclared: true });
      t.equal(await epoch('raw'), start, 'who has the old settings is served the old store');
      t.match(await openStore(system, facet, 'raw', other, 3), { state: 'ready', table: 'article__raw' });
      t.ok((await epoch('raw')) > start, 'the epoch goes on');
      await t.rejects(openStore(system, facet, 'raw', lexicalEmbedder, 3), { code: 'storeMismatch' });
      t.match(await indexShop(system, 'raw', { embedder: other }), { added: 0, documents: 5 });
    },
  );

  await t.test('two runs at once: the later one wins, the other says so', async (t) => {
    await createShop(system);
    let inner: Promise<unknown> | null = null;
    const embedder = {
      ...lexicalEmbedder,
      async embed(texts: readonly string[], role: 'document' | 'query') {
        inner ??= indexShop(system, 'raw');
        await inner;
        return lexicalEmbedder.embed(texts, role);
      },
    };
    await t.rejects(indexShop(system, 'raw', { embedder }), { code: 'overtaken' });
    t.match(await storeState(system, 'article', 'raw'), { state: 'ready', documents: 5 });
  });

  await t.test('ids that do not identify are refused before anything is made', async (t) => {
    await createShop(system);
    await system.script(
      sql`alter table shop.article drop constraint article_pkey; alter table shop.article alter id drop not null`,
    );
    await system.query(sql`insert into shop.article (id, body) values ('a1', 'twice')`);
    await t.rejects(indexShop(system, 'raw'), { code: 'documentIds' });
    await system.query(sql`delete from shop.article where body = 'twice'`);
    await system.query(sql`insert into shop.article (id, body) values (null, 'none')`);
    await t.rejects(indexShop(system, 'raw'), { code: 'documentIds' });
    t.equal(await storeState(system, 'article', 'raw'), null);
  });

  await t.test('the extension is looked for where it must lie', async (t) => {
    await createShop(system);
    await system.script(sql`create schema elsewhere; alter extension vector set schema elsewhere`);
    await t.rejects(indexShop(system, 'raw'), { code: 'vectorExtension', hint: /set schema public/ });
    await system.script(sql`alter extension vector set schema public`);
    t.match(await indexShop(system, 'raw'), { added: 5 });
  });

  await t.test(
    'a successor of settings that were given up is not served until it is read again',
    async (t) => {
      await createShop(system);
      const deriving = facetOf(derivingManifest);
      const hoursLater = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);
      const indexDeriving = (readAt: Date) =>
        indexFacet(system, derivingManifest, deriving, {
          embedder: lexicalEmbedder,
          versions: ['raw'],
          readAt,
        });
      const open = () => openStore(system, deriving, 'raw', lexicalEmbedder, DEFAULT_MIN_LENGTH);
      await indexShop(system, 'raw', { readAt: hoursLater(0) });
      await indexDeriving(hoursLater(0));
      await system.query(sql`delete from shop.article where id = 'a3'`);
      await indexShop(system, 'raw', { readAt: hoursLater(25) });
      await t.rejects(open(), { code: 'storeMismatch' });
      await indexDeriving(hoursLater(26));
      await open();
      t.notOk(
        (await storeRows(system, 'raw')).some((row) => row['doc_id'] === 'a3'),
        'it is deleted',
      );
      await dropStore(system, facet.name, 'raw');
      await createShop(system);
      await indexShop(system, 'raw');
    },
  );

  await t.test('a store can be dropped', async (t) => {
    await createShop(system);
    await indexShop(system, 'raw');
    await dropStore(system, 'article', 'raw');
    t.equal(await storeState(system, 'article', 'raw'), null);
    t.strictSame(plain(await system.query(sql`select to_regclass('osl_content.article__raw') as t`)), [
      { t: null },
    ]);
    t.equal((await system.query(sql`select 1 from osl_content.document`)).length, 0);
  });

  await t.test('hidden documents change no row of the visible ones', async (t) => {
    const masked = async (articles: typeof ARTICLES) => {
      await createShop(system, PEOPLE, articles);
      await indexShop(system, 'masked');
      return plain(await storeRows(system, 'masked')).filter(
        (r) => r['doc_id'] === 'a1' || r['doc_id'] === 'a2',
      );
    };
    const few = await masked(ARTICLES);
    const secret = Array.from({ length: 20 }, (_, i) =>
      article(`b${i}`, 8, null, 't', prose('windmill', 30)),
    );
    t.strictSame(await masked([...ARTICLES.slice(0, 2), ...secret]), few);
  });

  await t.test('twin corpora: every operator says the same of the visible passages', async (t) => {
    const calls: readonly (readonly [EncoderName, ArgumentValues])[] = [
      ['SIMILARITY', {}],
      ['CLASSIFY', { labels: ['windmill', 'harbour crane'] }],
      ['TAG', { labels: ['windmill', 'harbour crane'], threshold: 0.1 }],
      ['RANK', { lambda: 0.6 }],
      ['DEDUP', { threshold: 0.8 }],
      ['OUTLIER', { k: 2 }],
      ['CLUSTER', { k: 3 }],
    ];
    const seen = (r: Row): boolean => r['doc_id'] === 'a1' || r['doc_id'] === 'a2';
    const told = async (articles: typeof ARTICLES, leak: boolean): Promise<unknown[]> => {
      await createShop(system, PEOPLE, articles);
      await indexShop(system, 'masked');
      const rows = await storeRows(system, 'masked');
      const passages = (leak ? rows : rows.filter(seen)).map((r) => ({
        chunkId: `${r['chunk_id']}`,
        text: `${r['text']}`,
        vector: parseVector(`${r['dense']}`),
      }));
      const context = { embedder: lexicalEmbedder, query: 'mills in the wind' };
      const columns = await Promise.all(
        calls.map(([name, args]) => runEncoder(name, passages, args, context)),
      );
      const visible = new Set(rows.filter(seen).map((r) => r['chunk_id']));
      return columns.map((column) => column.filter((_, i) => visible.has(passages[i]?.chunkId)));
    };
    const hidden = Array.from({ length: 6 }, (_, i) =>
      article(`A${i}`, 8, null, 't', prose('windmill', 2 + i)),
    );
    const twins = [ARTICLES, [...ARTICLES, ...hidden], [...ARTICLES.slice(0, 2), ...hidden.slice(2)]];
    const answers: unknown[][] = [];
    for (const twin of twins) answers.push(await told(twin, false));
    const [one, two, three] = answers;
    t.strictSame(two, one);
    t.strictSame(three, one);
    const leaky = [await told(ARTICLES, true), await told([...ARTICLES, ...hidden], true)];
    const differing = calls.filter((_, i) => JSON.stringify(leaky[0]?.[i]) !== JSON.stringify(leaky[1]?.[i]));
    t.strictSame(
      differing.map(([name]) => name),
      ['RANK', 'DEDUP', 'OUTLIER', 'CLUSTER'],
      'a lane that lets hidden passages through is caught by each operator that compares passages',
    );
  });

  await t.test('the query and the chunks meet in SQL as BM25 has it', async (t) => {
    await createShop(system);
    await indexShop(system, 'raw');
    const rows = await ranked(system, 'slowly turning WINDMILLS', 'true');
    t.strictSame(new Set(rows.map((r) => r['doc_id'])), new Set(['a1', 'Straßer/a5', 'a2', 'a3']));
    t.ok(`${rows[0]?.['text']}`.includes('windmill'));
    t.strictSame(await ranked(system, 'xylophone', 'true'), []);
    const permitted = "doc_id = 'a2'";
    const alone = await ranked(system, 'windmill cranes', permitted);
    t.ok(alone.length > 0 && alone.every((r) => Number(r['score']) > 0 && `${r['text']}`.includes('crane')));
    await system.query(sql`delete from osl_content.article__raw where doc_id <> 'a2'`);
    t.strictSame(await ranked(system, 'windmill cranes', permitted), alone, 'hidden rows shift no score');
  });
});

async function ranked(system: SystemEngine, text: string, permitted: string): Promise<Row[]> {
  const terms = termsOf(text);
  const [all] = await system.query(
    generatedSql(`select count(*) as n from osl_content.article__raw where ${permitted}`),
  );
  const found = await system.query(
    generatedSql(`select q.id, count(*) as n from unnest($1::int4[]) q(id) join osl_content.article__raw c on c.terms @> array[q.id]
      where ${permitted} group by q.id`),
    [terms.ids],
  );
  const frequencies = new Map(found.map((r) => [Number(r['id']), Number(r['n'])]));
  const query = lexicalQuery(terms, {
    documents: Number(all?.['n']),
    documentFrequency: (id) => frequencies.get(id) ?? 0,
  });
  if (query === null) return [];
  const rows = await system.query(
    generatedSql(`select doc_id, text, -(lex operator(public.<#>) $1::public.sparsevec) as score from osl_content.article__raw
      where ${permitted} and terms && $2::int4[] order by 3 desc, chunk_id`),
    [query.vector, query.termIds],
  );
  return plain(rows);
}

test('kill -9 in the middle of indexing: the next run goes on with what was committed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'osl-content-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const dataDir = join(folder, 'pg');
  const child = spawn(process.execPath, [...process.execArgv, 'dist/test/content/killed.js', dataDir], {
    stdio: 'inherit',
  });
  t.strictSame(await once(child, 'exit'), [null, 'SIGKILL']);
  const engine = await openEngine({ kind: 'pglite', dataDir });
  t.teardown(() => engine.close());
  const { system } = engine;
  t.match(await storeState(system, 'article', 'masked'), { state: 'building' });
  const embedder = counting(lexicalEmbedder);
  const summary = await indexShop(system, 'masked', { embedder }, derivingManifest);
  t.match(summary, { documents: 5, added: 1, changed: 0 });
  const rows = plain(await storeRows(system, 'masked'));
  t.ok(embedder.texts < rows.length);
  const derived = plain(await derivedRows(system, 'masked'));
  t.ok(derived.length > 0);
  t.ok(derived.every((d) => rows.some((r) => r['chunk_id'] === d['chunk_id'])));
  const clear = (all: readonly Row[]) => all.filter((r) => !`${r['doc_id']}`.startsWith('redacted-'));
  await createShop(system);
  await indexShop(system, 'masked', {}, derivingManifest);
  t.strictSame(clear(rows), clear(plain(await storeRows(system, 'masked'))));
  t.strictSame(
    clear(derived),
    clear(plain(await derivedRows(system, 'masked'))),
    'and what is derived from it',
  );
});

test('the role of the system credentials, as the docs make it, is enough to index with', async (t) => {
  const engine = await testEngine();
  t.teardown(() => engine.close());
  const { system } = engine;
  await createShop(system);
  await t.rejects(
    indexShop(asRole(system, 'osl_system'), 'masked'),
    { name: 'UpstreamFailure' },
    'there is none yet',
  );
  await system.script(generatedSql(systemRoleScript()));
  const own = asRole(system, 'osl_system');
  t.match(await indexShop(own, 'raw'), { documents: 5, added: 5 });
  t.match(await indexShop(own, 'masked'), { documents: 5, added: 5, redactions: { values: 6 } });
  await putArticle(system, article('a9', 1, null, 'New', prose('mill', 3)));
  t.match(await indexShop(own, 'masked'), { added: 1 }, 'again, with what it made itself');
  await t.resolves(
    openStore(own, facet, 'masked', lexicalEmbedder, DEFAULT_MIN_LENGTH),
    'what RETRIEVE asks first',
  );
  const [reads] = await system.query(
    sql`select pg_catalog.has_table_privilege($1, 'osl_content.' || pg_catalog.quote_ident(f.table_name), 'SELECT') as y
       from osl_content.facet f limit 1`,
    [system.reader],
  );
  t.match(reads, { y: true }, 'questions read the store as the reader');
  await dropStore(own, 'article', 'raw');
  await system.script(sql`drop schema osl_content cascade; drop owned by osl_system; drop role osl_system`);
});

/** The door as another role sees it. */
function asRole(system: SystemEngine, role: string): SystemEngine {
  const transaction = <T>(work: (tx: SystemQueries) => Promise<T>): Promise<T> =>
    system.transaction(async (tx) => {
      await tx.script(generatedSql(`set local role ${role}`));
      return work(tx);
    });
  return replacing(system, {
    transaction,
    query: (sql, params) => transaction((tx) => tx.query(sql, params)),
    script: (ddl) => transaction((tx) => tx.script(ddl)),
    copyIn: (target, rows) => transaction((tx) => tx.copyIn(target, rows)),
    grantRead: (schema) =>
      transaction((tx) =>
        tx.script(
          generatedSql(
            `grant usage on schema ${schema} to ${system.reader}; grant select on all tables in schema ${schema} to ${system.reader}`,
          ),
        ),
      ),
  });
}

test('a server without pgvector says so before anything is made', async (t) => {
  const fixture = await nativeFixture();
  if (fixture === null) {
    t.plan(0, NO_NATIVE);
    return;
  }
  t.teardown(() => fixture.close());
  const { system } = fixture.engine;
  const [there] = await system.query(sql`select 1 from pg_available_extensions where name = 'vector'`);
  await createShop(system);
  if (there !== undefined) {
    t.match(await indexShop(system, 'masked'), { added: 5 });
    return;
  }
  await t.rejects(indexShop(system, 'raw'), { code: 'vectorExtension', hint: /install pgvector/ });
  t.equal((await system.query(sql`select 1 from pg_namespace where nspname = 'osl_content'`)).length, 0);
});

test('a facet version has a table of its own, whatever the names', async (t) => {
  t.equal(storeTable('readme', 'masked'), 'readme__masked');
  const long = 'x'.repeat(63);
  const pairs = [
    ['a', 'b__c'],
    ['a__b', 'c'],
    ['a_', 'b'],
    ['a', '_b'],
    [long, 'raw'],
    [long, 'masked'],
    [`${long.slice(1)}y`, 'raw'],
  ] as const;
  const names = pairs.map(([facet, version]) => storeTable(facet, version));
  t.equal(new Set(names).size, pairs.length);
  t.ok(names.every((name) => Buffer.byteLength(name) <= 63));
});

test('property: two facet versions never share a table', async (t) => {
  const name = fc.stringMatching(/^[ab]_{0,2}[ab_]{0,6}$/);
  fc.assert(
    fc.property(
      name,
      name,
      name,
      name,
      (a, b, c, d) => (a === c && b === d) || storeTable(a, b) !== storeTable(c, d),
    ),
    { numRuns: 20_000 },
  );
  t.pass();
});

test('a metadata field of a name that the store uses has another column', async (t) => {
  t.equal(metadataColumn('kind'), 'kind');
  t.equal(metadataColumn('text'), '__text');
});
