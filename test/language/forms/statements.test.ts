import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { lexicalQuery, stableSnapshot, termsOf } from '../../../src/content/index.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { NOTES as ARTICLES, articlesWorld, type Note } from './articles.js';
import { startForms } from './fixture.js';
import { NOTES, toyEmbeddings, vectorsWorld } from './vectors.js';

t.setTimeout(600_000);

/** Which statements of a question reached the database, in their order: it may not ask for more than these in a row. */
function steps(forms: Awaited<ReturnType<typeof startForms>>): readonly string[] {
  return forms.fronts.takeStatements().map(({ sql }) => {
    if (sql.includes('jsonb_to_recordset') && !sql.includes('osl_content')) return 'answer';
    if (sql.includes('word')) return 'counts of words';
    return /<[#=~]>/.test(sql) ? 'passages' : 'how many';
  });
}

t.test('the lexical lane', async (t) => {
  const forms = await startForms(articlesWorld([...ARTICLES, ...latin()]));
  t.teardown(() => forms.close());
  const { system } = forms.test.engine;
  const asked = async (more = '', query = 'report on the windmill'): Promise<readonly unknown[]> => {
    const from = `RETRIEVE(facet => 'notes', query => '${query}', top_k => 50)`;
    const { rows, status } = await forms.ask('user:eu', `select score, cite from ${from}${more}`);
    if (status !== 200) throw new Error(`status ${status}`);
    return rows;
  };
  const FIRST = ['counts of words', 'passages', 'answer'];
  const KNOWN = ['passages', 'answer'];
  // What differs in its text alone is counted by itself.
  const ALIKE = ' where article_id > 0';

  await t.test('sends two statements in a row once its words were counted, three before', async (t) => {
    steps(forms);
    const first = await asked();
    t.same(steps(forms), FIRST);
    t.ok(first.length > 1);
    t.same(await asked(), first);
    t.same(steps(forms), KNOWN);
    await asked('', 'windmill report');
    t.same(steps(forms), KNOWN, 'another question of the same words');
    await asked('', 'a windmill and a report of a canal');
    t.same(steps(forms), FIRST, 'a word that was not counted');
    await asked(ALIKE);
    t.same(steps(forms), FIRST, 'another permitted set');
  });

  await t.test(
    'gives what comparing each permitted passage gives, for common words and for rare ones',
    async (t) => {
      for (const [query, byIndex] of [
        ['report', false],
        ['report 7', false],
        ['7', true],
        ['13 7', true],
      ] as const) {
        forms.fronts.takeStatements();
        const told = scored(await asked('', query));
        t.ok(told.length > 0, query);
        t.same(told, await compared(system, query), query);
        const search = forms.fronts.takeStatements().find(({ sql }) => sql.includes('<#>'));
        t.equal(search?.sql.includes('&&'), byIndex, query);
      }
      t.same(await asked('', 'nowhere'), []);
    },
  );

  await t.test('looks at passages with a rare word alone only where these are the best', async (t) => {
    for (const [query, topK, searches] of [
      ['zymurgy harvest', 1, [true]],
      ['zymurgy harvest river', 1, [true, false]],
      ['zymurgy harvest', 2, [false]],
      ['harvest river', 1, [false]],
    ] as const) {
      const from = `RETRIEVE(facet => 'notes', query => '${query}', top_k => ${topK}) where lang = 'la'`;
      const ask = (): ReturnType<typeof forms.ask> => forms.ask('user:eu', `select score, cite from ${from}`);
      await ask();
      forms.fronts.takeStatements();
      const told = scored((await ask()).rows);
      const best = await compared(system, query, `${IN_EU} and n.lang = 'la'`);
      t.same(told, best.slice(0, topK), `${query}, ${topK}`);
      const sent = forms.fronts.takeStatements().filter(({ sql }) => sql.includes('<#>'));
      const byIndex = sent.map(({ sql }) => sql.includes('&&'));
      t.same(byIndex, searches, `${query}, ${topK}`);
    }
  });

  await t.test('takes what the indexer counted only where each passage may be seen', async (t) => {
    const query = 'windmill report 7 harvest';
    const told = async (): Promise<readonly unknown[]> => {
      const from = `RETRIEVE(facet => 'notes', query => '${query}', top_k => 50)`;
      return scored((await forms.ask('user:ann', `select score, cite from ${from}`)).rows);
    };
    const all = await told();
    t.same(all, (await compared(system, query, 'true')).slice(0, 50));
    await system.query(sql`delete from press.article where id = 1`);
    const fewer = await told();
    t.same(
      fewer,
      (await compared(system, query, 'true')).slice(0, 50),
      'an entity that is gone hides its passages',
    );
    t.notSame(scores(fewer), scores(all));
    await system.query(sql`insert into press.article values (1, 'Article 1', 'eu', 10)`);
    t.same(await told(), all);
  });

  await t.test(
    'has a plan for the values of each question, so that no caller reads by the plan of another',
    async (t) => {
      for (let i = 0; i < 8; i++) for (const who of ['user:de', 'user:eu']) await forms.ask(who, SAME);
      const kept = await system.query(
        sql`select generic_plans as g, custom_plans as c from pg_prepared_statements where statement like '%<#>%'`,
      );
      t.ok(
        kept.some(({ c }) => Number(c) >= 8),
        JSON.stringify(kept),
      );
      t.ok(
        kept.every(({ g }) => Number(g) === 0),
        JSON.stringify(kept),
      );
    },
  );

  await t.test('counts anew as soon as an entity is hidden, and as soon as it is back', async (t) => {
    const before = await asked();
    await asked();
    t.same(steps(forms).slice(-2), KNOWN);
    await system.query(sql`update press.article set region = 'us' where id in (1, 3, 5)`);
    const after = await asked();
    t.ok(steps(forms).includes('counts of words'));
    t.same(after, await asked(ALIKE), 'no score is of a word that was counted in what is hidden now');
    t.notSame(scores(after).slice(0, 1), scores(before).slice(0, 1), 'the rarity of words has changed');
    await system.query(sql`update press.article set region = 'eu' where id in (1, 3, 5)`);
    t.same(await asked(), before);
  });

  await t.test('counts anew where the clock decides, or what is not a table of the server', async (t) => {
    const byClock = " where lang = case when now() > '2020-01-01'::timestamptz then 'de' else 'en' end";
    await asked(byClock);
    await asked(byClock);
    steps(forms);
    await asked(byClock);
    t.same(steps(forms), FIRST);
    await system.script(sql`
      create view press.seen as select * from press.article;
      create table press.guarded (id int4);
      alter table press.guarded enable row level security;
      create table press.parent (id int4);
      create table press.child () inherits (press.parent);
    `);
    const article = { schema: 'press', table: 'article' };
    t.type(await stableSnapshot(system, [article]), 'string');
    for (const table of ['seen', 'guarded', 'parent', 'nothing'])
      t.equal(await stableSnapshot(system, [article, { schema: 'press', table }]), null, table);
  });
});

/**
 * One long note with a rare word, and notes with common ones: many times each, or once. One common word adds little to
 * what the rare one gives; two of them, many times each, are worth more.
 */
function latin(): readonly Note[] {
  const long = `zymurgy ${Array.from({ length: 35 }, (_, i) => (1_000 + i).toString(36)).join(' ')}`;
  const bodies = [
    long,
    ...Array(4).fill('harvest river '.repeat(10)),
    ...Array(8).fill('harvest river'),
    ...Array(9).fill('sea'),
  ];
  return bodies.map((body, i) => ({ id: `l${i}`, article: 1, lang: 'la', body }));
}

const SAME = `select score from RETRIEVE(facet => 'notes', query => 'windmill report 7', top_k => 3)`;

const IN_EU = "a.region = 'eu'";

/** By brute force over what `user:eu` may see, or `where` says. */
async function compared(system: SystemEngine, query: string, where = IN_EU): Promise<readonly unknown[]> {
  const permitted = `from osl_content."notes__masked" n join press.article a on a.id = n.entity_key where ${where}`;
  const counted = async (more: string, values: readonly unknown[]): Promise<number> => {
    const [row] = await system.query(generatedSql(`select count(*) as n ${permitted}${more}`), values);
    return Number(row?.['n']);
  };
  const frequencies = new Map<number, number>();
  for (const id of termsOf(query).ids)
    frequencies.set(id, await counted(' and n.terms @> array[$1::int4]', [id]));
  const weighted = lexicalQuery(termsOf(query), {
    documents: await counted('', []),
    documentFrequency: (id) => frequencies.get(id) ?? 0,
  });
  if (weighted === null) return [];
  const rows = await system.query(
    generatedSql(`select n.chunk_id, -(n.lex operator(public.<#>) $1::public.sparsevec) as score ${permitted}
        and n.terms && $2::int4[] order by score desc, n.chunk_id`),
    [weighted.vector, weighted.termIds],
  );
  return rows.map((r) => [r['chunk_id'], Number(Number(r['score']).toFixed(6))]);
}

function scored(rows: readonly unknown[]): readonly (readonly [string, number])[] {
  return rows.map((row) => {
    const { score, cite } = row as { score: number; cite: { chunk_id: string } }; // they are asked for
    return [cite.chunk_id, score];
  });
}

function scores(rows: readonly unknown[]): readonly unknown[] {
  return rows.map((row) => (row as { score: unknown }).score); // it is asked for
}

t.test('the lanes of a model', async (t) => {
  const server = await toyEmbeddings();
  t.teardown(() => server.close());
  const startWith = (retrieval: string, exactUpTo: number): ReturnType<typeof startForms> => {
    const world = vectorsWorld(retrieval, NOTES.slice(0, 1_200), server.url);
    return startForms({ ...world, settings: { ...world.settings, exactUpTo } });
  };
  const SENT = ['passages', 'answer'];
  for (const [name, retrieval, exactUpTo] of [
    ['one by one', '{ max_top_k: 50 }', 30_000],
    ['by signs, then exactly', '{ max_top_k: 50 }', 10],
    ['by an index, then exactly', '{ max_top_k: 50, approximate: true }', 10],
  ] as const) {
    const forms = await startWith(retrieval, exactUpTo);
    t.teardown(() => forms.close());
    const ask = (): ReturnType<typeof forms.ask> =>
      forms.ask(
        'user:ann',
        `select score, cite from RETRIEVE(facet => 'notes', query => '${NOTES[10]?.body}', top_k => 1)`,
      );
    steps(forms);
    const first = await ask();
    t.same(steps(forms), ['how many', ...SENT], `${name}: the first question`);
    t.same((await ask()).rows, first.rows);
    t.same(steps(forms), SENT, `${name}: two in a row`);
  }
});

t.test('what the answer is made of', async (t) => {
  const server = await toyEmbeddings();
  t.teardown(() => server.close());
  const forms = await startForms(vectorsWorld('{ max_top_k: 1000 }', NOTES.slice(0, 1_000), server.url));
  t.teardown(() => forms.close());
  const from = (more: string) =>
    `RETRIEVE(facet => 'notes', query => '${NOTES[10]?.body}', top_k => 1000)${more}`;
  const ask = async (select: string, more = '') => {
    forms.fronts.takeStatements();
    const { rows } = await forms.ask('user:ann', `select ${select} from ${from(more)}`);
    const sent = forms.fronts.takeStatements().find(({ sql }) => sql.includes('jsonb_to_recordset'));
    const passages = JSON.parse(sent?.values[0] ?? '[]') as readonly Readonly<Record<string, unknown>>[];
    return { rows, passages };
  };

  await t.test('passages bring the columns that the statement uses, and no others', async (t) => {
    for (const [select, more, columns] of [
      ['cite', '', ['#ordinal', 'cite']],
      ['score', " where text like 'w%'", ['#ordinal', 'score', 'text']],
      ['lang, article_id, redacted_fields', '', ['#ordinal', 'article_id', 'lang', 'redacted_fields']],
    ] as const) {
      const { passages } = await ask(select, more);
      t.same(Object.keys(passages[0] ?? {}).sort(), columns, select);
    }
  });

  await t.test('they come in their order, each with its own operator, however many', async (t) => {
    const { rows, passages } = await ask('cite, score, text, similarity(text) as s');
    t.same(
      passages.map((p) => p['#ordinal']),
      NOTES.slice(0, 1_000).map((_, i) => i + 1),
    );
    const answers = rows as readonly { readonly score: number; readonly s: number; readonly text: string }[];
    t.equal(new Set(answers.map((a) => a.text)).size, 1_000);
    // In a dense facet both are the cosine with the query: the one of the database, the other of the operator.
    t.same(
      answers.filter(({ score, s }) => Math.abs(score - s) > 2e-6),
      [],
    );
    t.same(
      answers.map((a) => a.score),
      answers.map((a) => a.score).sort((a, b) => b - a),
    );
  });
});
