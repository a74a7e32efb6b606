import { createHash } from 'node:crypto';
import t from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { sliceCodePoints } from '../../content/reference.js';
import { postQuery, startFrontends } from '../../support/frontends.js';
import { articlesWorld, NOTES, PEOPLE } from './articles.js';
import { type Answer, at, startForms } from './fixture.js';

t.setTimeout(600_000);

const forms = await startForms(articlesWorld());
t.teardown(() => forms.close());
const { ask, fronts, test } = forms;

const ASKED = 'report on the windmill';
const SECRET = `ghp_${'aB3d'.repeat(9)}`;
const PII = [...PEOPLE.flatMap((p) => [p.name, p.email]), 'Ångström', 'Quux', SECRET];

/** `RETRIEVE` of notes about a report, which every note is. */
function notes(topK: number | string = 5, query = "'report on the windmill'"): string {
  return `RETRIEVE(facet => 'notes', query => ${query}, top_k => ${topK})`;
}

function memos(): string {
  return "RETRIEVE(facet => 'memos', query => 'memo', top_k => 5)";
}

/** Statements that reached the engine since the last call, over a store or not. */
function statements(): string[] {
  return fronts.takeStatements().map((s) => s.sql);
}

async function stored(version: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return test.engine.system.query(
    generatedSql(`select n.chunk_id, n.text, n.doc_id, a.region, n.lang from osl_content."notes__${version}" n
     join press.article a on a.id = n.entity_key`),
  );
}

const chunks = await stored('masked');
const PERMITTED: readonly (readonly [string, number])[] = [
  ['user:ann', chunks.length],
  ['user:ada', (await stored('raw')).length],
  ['user:eu', chunks.filter((c) => c['region'] === 'eu').length],
  ['user:de', chunks.filter((c) => c['lang'] === 'de').length],
  ['user:non', 0],
  ['user:odd', chunks.length],
  ['user:both', (await stored('raw')).length],
  ['user:mix', chunks.length],
];

t.test('exactly min(k, permitted) passages come', async (t) => {
  for (const [who, permitted] of PERMITTED) {
    for (const k of [1, 5, 15, 50]) {
      const { status, rows } = await ask(who, `select score, cite from ${notes(k)}`);
      t.equal(status, 200);
      t.equal(rows.length, Math.min(k, permitted), `${who}, ${k} of ${permitted}`);
      const scores = rows.map((r) => Number(r['score']));
      t.same(
        scores,
        [...scores].sort((a, b) => b - a),
        'best first',
      );
    }
  }
});

t.test('a query that can lead nowhere is told so', async (t) => {
  const client = await forms.wire('user:ann');
  for (const query of ['the of and', '?! … —', 'The']) {
    const refused = await ask('user:ann', `select text from ${notes(5, `'${query}'`)}`);
    t.same([refused.status, refused.code], [400, 'E0511'], query);
    t.match(refused.message, /no word to look for/);
    const { outcome } = await client.simple(`select text from ${notes(5, `'${query}'`)}`);
    t.match(outcome, { kind: 'refused', sqlstate: '42804' });
  }
  const long = `${'windmill '.repeat(115_000)}`;
  const told = await ask('user:ann', `select text from ${notes(5, '$1')}`, { parameters: [long] });
  t.same([told.status, told.code], [400, 'E0511']);
  t.match(told.message, /the length of `query`.*100000/);
  for (const query of ['风车报告', 'отчёт о мельнице', 'รายงานกังหันลม', 'تقرير']) {
    const other = await ask('user:ann', `select text from ${notes(5, `'${query}'`)}`);
    t.same([other.status, other.rows], [200, []], `no passage has a word of ${query}`);
  }
  const mixed = await ask('user:ann', `select text from ${notes(5, "'风车 windmill'")}`);
  t.equal(mixed.rows.length, 5);
});

t.test('a caller gets the version that is due to it, and no other store is touched', async (t) => {
  for (const [who, version] of [
    ['user:ann', 'masked'],
    ['user:eu', 'masked'],
    ['user:de', 'masked'],
    ['user:ada', 'raw'],
    ['user:non', null],
    ['user:odd', 'masked'],
    ['user:both', 'raw'],
    ['user:mix', 'masked'],
  ] as const) {
    statements();
    const { rows } = await ask(who, `select cite from ${notes(10)}`);
    const tables = statements().flatMap((sql) => sql.match(/osl_content\.\w+/g) ?? []);
    const stores = new Set(tables.map((table) => table.replace(/__words$/, ''))); // the word counts of the same store
    t.same([...stores], version === null ? [] : [`osl_content.notes__${version}`], who);
    t.same([...new Set(rows.map((r) => at(r, 'cite', 'version')))], version === null ? [] : [version]);
  }
});

t.test('no personal value and no secret is in a byte that a masked caller gets', async (t) => {
  const queries = [
    `select * from ${notes(50)}`,
    `select * from ${notes(50, "'Zoë Ångström zoe@press.example'")}`,
    `select text, classify(text, ARRAY['Balthasar Quux', 'x']) is null as none, dedup(text) from ${notes(50)}`,
    'select id, evidence from osl.entities.article where id in (1, 2, 3, 4, 5, 6, 7, 8)',
    `select a.title, r.text, r.author from osl.entities.article a join ${notes(50)} r on a.id = r.article_id`,
    'select name, email from osl.entities.person',
  ];
  for (const who of ['user:ann', 'user:eu', 'user:de']) {
    for (const query of queries) {
      if (who !== 'user:ann' && query.includes('person')) continue;
      const { status, raw } = await ask(who, query);
      t.equal(status, 200, query);
      // The caller's own words may stand in nothing but its question.
      for (const value of PII) t.notOk(raw.includes(value), `${who}: ${value}`);
    }
  }
  const client = await forms.wire('user:ann');
  for (const query of queries) {
    const { raw, outcome } = await client.simple(query);
    t.equal(outcome.kind, 'rows');
    for (const value of PII) t.notOk(raw.includes(value), `wire: ${value}`);
  }
  const clear = await ask('user:ada', `select * from ${notes(50)}`);
  for (const value of PII) t.ok(clear.raw.includes(value), `the auditor sees ${value}`);
});

t.test('passages of hidden entities never come, and filters hold before the best are taken', async (t) => {
  const eu = await ask('user:eu', `select article_id from ${notes(50)}`);
  t.ok(eu.rows.every((r) => Number(r['article_id']) % 2 === 1));
  for (const body of [
    { osql: "where lang = 'de'", parameters: [] },
    { osql: 'where lang = $1', parameters: ['de'] },
  ]) {
    statements();
    const best = await ask('user:ann', `select lang, article_id from ${notes(3)} ${body.osql}`, {
      parameters: body.parameters,
    });
    t.equal(best.rows.length, 3, 'the best English passages do not fill the answer');
    t.ok(best.rows.every((r) => r['lang'] === 'de'));
    t.ok(statements().some((sql) => sql.includes('osl_content') && /lang = \$\d+.* limit /.test(sql)));
  }
  const keyed = await ask('user:ann', `select article_id from ${notes(50)} where article_id = any ($1)`, {
    parameters: ['{3,4}'],
  });
  t.same([...new Set(keyed.rows.map((r) => r['article_id']))].sort(), ['3', '4']);
  const hidden = await ask('user:eu', `select article_id from ${notes(50)} where article_id in (2, 4)`);
  t.same(hidden.rows, []);
});

t.test('a citation leads to the text that is served', async (t) => {
  for (const who of ['user:ann', 'user:ada']) {
    const { rows } = await ask(who, `select text, article_id, cite from ${notes(50)}`);
    // The overlap is 0, so that a document is its chunks, laid by their offsets.
    for (const row of rows) {
      const text = String(row['text']);
      const [start, end] = [Number(at(row, 'cite', 'start')), Number(at(row, 'cite', 'end'))];
      t.equal([...text].length, end - start);
      t.equal(createHash('sha256').update(text).digest('hex'), at(row, 'cite', 'sha256'));
      t.equal(at(row, 'cite', 'facet'), 'notes');
      const source = NOTES.find((n) => n.id === at(row, 'cite', 'doc_id'));
      t.equal(row['article_id'], String(source?.article));
      t.equal(sliceCodePoints(servedOf(source?.body ?? '', who), start, end), text);
    }
  }
});

/** The document in the version of `who`, worked out by hand. */
function servedOf(body: string, who: string): string {
  if (who === 'user:ada') return body;
  return PII.filter((v) => v !== 'Quux' && v !== 'Ångström').reduce(
    (text, value) => text.replaceAll(value, '[redacted]'),
    body,
  );
}

const REFUSALS: readonly (readonly [string, string, (readonly unknown[])?, string?])[] = [
  ["select text from RETRIEVE(facet => 'nope', query => 'x', top_k => 5)", 'E0241'],
  ["select text from RETRIEVE(facet => 'article', query => 'x', top_k => 5)", 'E0241'],
  ...[0, -1, 51, "'x'", 1.5, 'null', '99999999999', '1 + 1'].map(
    (k) => [`select text from ${notes(k)}`, 'E0511'] as const,
  ),
  ...[0, -1, 51, 'x', 99999999999, '9'.repeat(400), null, '0x10', '1e1', '', '5.0'].map(
    (k) => [`select text from ${notes('$1')}`, 'E0511', [k]] as const,
  ),
  [`select text from ${notes(5, "''")}`, 'E0511'],
  [`select text from ${notes(5, "' '")}`, 'E0511'],
  [`select text from ${notes(5, 'null')}`, 'E0511'],
  [`select text from ${notes(5, '$1')}`, 'E0511', ['\t ']],
  [`select text from ${notes(5, '$1')}`, 'E0511', [null]],
  [`select text from ${notes(5, '$1')}`, 'E0511', []],
  ["select text from RETRIEVE(facet => 'notes', query => 'x')", 'E0511'],
  ["select text from RETRIEVE(facet => 'notes', query => 'x', top_k => 5, top_k => 5)", 'E0511'],
  ["select text from RETRIEVE(facet => 'notes', query => 'x', top_k => 5, speed => 5)", 'E0511'],
  ["select text from RETRIEVE('notes', 'x', 5)", 'E0511'],
  [`select text from ${notes()} where words > 3`, 'E0511'],
  [`select text from ${notes()} where lang = 'de' or score > 0`, 'E0511'],
  [`select nope from ${notes()}`, 'E0512'],
  [`select body from ${notes()}`, 'E0512'],
  [`select embedding from ${notes()}`, 'E0512'],
  [`select "#chunk_id" from ${notes()}`, 'E0512'],
  [`select "#ordinal" from ${notes()}`, 'E0512'],
  [`select invent(text) from ${notes()}`, 'E0511'],
  [`select similarity(lang) from ${notes()}`, 'E0511'],
  [`select similarity(text, lang) from ${notes()}`, 'E0511'],
  [`select similarity(text, 'a', 'b') from ${notes()}`, 'E0511'],
  [`select cluster(text, k => 0) from ${notes()}`, 'E0511'],
  [`select cluster(text, k => 0) from ${notes()}`, 'E0511'],
  [`select cluster(text, k => $1) from ${notes()}`, 'E0511', ['1001']],
  [`select cluster(text, speed => 2) from ${notes()}`, 'E0511'],
  [`select classify(text, ARRAY['a', 'b', 'a']) from ${notes()}`, 'E0511'],
  [`select classify(text, $1) from ${notes()}`, 'E0511', ['[{"label": "a"}, {"label": "a"}]']],
  [`select tag(text, ARRAY['a'], threshold => 2) from ${notes()}`, 'E0511'],
  [`select a.id from osl.entities.article a join ${notes()} r on a.title = r.lang`, 'E0514'],
  [`select a.id from osl.entities.article a join ${notes()} r on a.id = r.words`, 'E0514'],
  [`select a.id from osl.entities.article a join ${notes()} r on a.id > r.article_id`, 'E0514'],
  [`select a.id from osl.entities.article a join ${notes()} r on true`, 'E0514'],
  [`select a.title from osl.entities.account a join ${memos()} r on a.code = r.account`, 'E0515'],
  ['select id, evidence from osl.entities.article', 'E0511'],
  ["select id, evidence from osl.entities.article where title = 'x'", 'E0511'],
  ['select id, evidence from osl.entities.article where id in (1) or id in (2)', 'E0511'],
  ['select id, evidence from osl.entities.article where id = views', 'E0511'],
  [
    'select id, evidence from osl.entities.article where id = (select max(id) from osl.entities.article)',
    'E0511',
  ],
  [
    'select id, evidence from osl.entities.article where id in (select id from osl.entities.article)',
    'E0511',
  ],
  ['select id, evidence from osl.entities.article where id > 1', 'E0511'],
  ['select id, evidence from osl.entities.article where id = 1', 'E0512', [], 'user:non'],
];

t.test('what is wrong is refused with its code, before anything is read', async (t) => {
  for (const [query, code, parameters = [], who = 'user:ann'] of REFUSALS) {
    statements();
    const answer = await ask(who, query, { parameters });
    t.equal(answer.code, code, `${query} ${JSON.stringify(parameters)}: ${answer.message}`);
    t.same(statements(), []);
  }
});

t.test('every encoder operator gives a column of its type', async (t) => {
  const select = `select similarity(text) as a, similarity(text, $1) as b, classify(text, ARRAY['wind', 'sea']) as c,
    classify(text, ARRAY['wind', 'sea'], min_score => 1) as d, tag(text, ARRAY['wind', 'sea'], threshold => -1) as e,
    rank(text) as f, rank(text, 'harbour', lambda => 0.5) as g, dedup(text, threshold => 0.9) as h,
    outlier(text, k => 2) as i, outlier(text, k => 500) as j, cluster(text, k => 2) as k, score
    from ${notes(8)}`;
  const { status, rows, types } = await ask('user:ann', select, { parameters: ['a mill'] });
  t.equal(status, 200);
  t.same(types, [
    ...['float8', 'float8', 'text', 'text', 'text[]', 'int4', 'int4', 'jsonb', 'float8', 'float8', 'int4'],
    'float8',
  ]);
  t.equal(rows.length, 8);
  for (const row of rows) {
    t.ok(Math.abs(Number(row['a'])) <= 1 && Math.abs(Number(row['b'])) <= 1);
    t.match(row, { c: /wind|sea/, d: null, h: { group: Number, is_duplicate: Boolean }, j: null });
    t.same([...(row['e'] as string[])].sort(), ['sea', 'wind']);
  }
  const ranks = (name: string): number[] => rows.map((r) => Number(r[name])).sort((a, b) => a - b);
  t.same(ranks('f'), [1, 2, 3, 4, 5, 6, 7, 8]);
  t.same(ranks('g'), [1, 2, 3, 4, 5, 6, 7, 8]);
  t.same([...new Set(ranks('k'))], [1, 2]);
  const again = await ask('user:ann', select, { parameters: ['a mill'] });
  t.same(again.rows, rows, 'the same again');
  const filtered = await ask(
    'user:ann',
    `select cluster(text, k => 2) as k, count(*) as n from ${notes(8)} where similarity(text, 'windmill') > -1 group by 1 order by 1`,
  );
  t.equal(
    filtered.rows.reduce((n, r) => n + Number(r['n']), 0),
    8,
  );
});

t.test(
  'decoder operators are refused before their arguments are judged where there is no model',
  async (t) => {
    const ann = await forms.wire('user:ann');
    for (const call of [
      'extract(text, \'{"type": "object", "properties": {"a": {"type": "string"}}}\')',
      'summarize(text)',
      "score(text, 'useful')",
      "generate(text, 'a title')",
      "complete(text, 'Title of {text}')",
      ...['extract', 'summarize', 'score', 'generate', 'complete'].flatMap((name) => [
        `${name}(text)`,
        `${name}(text, 1 + 1, 'too', 'many')`,
        `${name}(text, nothing => 1)`,
      ]),
    ]) {
      const osql = `select ${call} from ${notes()}`;
      for (const who of ['user:ann', 'user:non']) {
        statements();
        const { status, code } = await ask(who, osql, { explain: who === 'user:non' });
        t.same([status, code, statements()], [503, 'E0521', []], `${who}: ${call}`);
      }
      const told = { kind: 'refused', sqlstate: '0A000', message: /needs a language model/ };
      t.match((await ann.simple(osql)).outcome, told, `simple: ${call}`);
      t.match((await ann.extended(osql)).outcome, told, `extended: ${call}`);
    }
  },
);

t.test('an encoder operator without its arguments has documented ones', async (t) => {
  const bare = await ask(
    'user:ann',
    `select similarity(text) as s, rank(text) as r, dedup(text) as d, outlier(text) as o, cluster(text) as k,
       classify(text) as c, tag(text) as t from ${notes(8)}`,
  );
  const told = await ask(
    'user:ann',
    `select similarity(text, QUERY) as s, rank(text, QUERY, lambda => 1) as r, dedup(text, threshold => 0.95) as d,
       outlier(text, k => 5) as o, cluster(text, k => 5) as k, classify(text, array[WORDS]) as c,
       tag(text, array[WORDS], threshold => 0.2) as t from ${notes(8)}`
      .replaceAll('QUERY', `'${ASKED}'`)
      .replaceAll('WORDS', (ASKED.toLowerCase().match(/\p{L}{3,}/gu) ?? []).map((w) => `'${w}'`).join(', ')),
  );
  t.equal(bare.status, 200, bare.message);
  t.equal(bare.rows.length, 8);
  t.same(bare.rows, told.rows);
  t.ok(bare.rows.every((r) => r['c'] !== null && Array.isArray(r['t'])));
});

t.test('metadata keeps its values, whatever its name and type', async (t) => {
  const { rows } = await ask(
    'user:ada',
    `select cite, words, rating, tags, source, author from ${notes(50)}`,
  );
  t.ok(rows.some((r) => r['rating'] === 'Infinity'));
  for (const row of rows) {
    const i = NOTES.findIndex((n) => n.id === at(row, 'cite', 'doc_id'));
    const rating = i === 0 ? 'Infinity' : i + 0.5;
    t.match(row, { words: i, rating, source: `desk ${i}`, author: PEOPLE[i % 2]?.name });
    t.same(row['tags'], ['a b', null, 'c"d']);
  }
  const scored = await ask('user:ada', `select score from ${notes(1)}`);
  t.same([scored.types, typeof scored.rows[0]?.['score']], [['float8'], 'number'], 'a passage has one score');
  const masked = await ask('user:ann', `select author, redacted_fields from ${notes(3)}`);
  t.ok(masked.rows.every((r) => r['author'] === '[redacted]' && String(r['redacted_fields']) === 'author'));
  t.same(at(masked.json, 'redacted_fields'), ['author']);
});

t.test('entities join the passages about them', async (t) => {
  const passages = await ask('user:ann', `select article_id, score from ${notes(20)}`);
  const counted = await ask(
    'user:ann',
    `select a.id, count(*) as n, max(r.score) as best, sum(a.views) as views
     from osl.entities.article a join ${notes(20)} r on a.id = r.article_id group by a.id order by a.id`,
  );
  const expected = [...new Set(passages.rows.map((r) => Number(r['article_id'])))]
    .sort((a, b) => a - b)
    .map((id) => {
      const mine = passages.rows.filter((r) => r['article_id'] === String(id));
      const best = Math.max(...mine.map((r) => Number(r['score'])));
      return { id, n: String(mine.length), best, views: String(id * 10 * mine.length) };
    });
  t.same(counted.rows, expected);
  const all = await ask(
    'user:ann',
    `select a.id, count(r.text) as n from osl.entities.article a left join ${notes(20)} r on a.id = r.article_id
     group by a.id order by a.id`,
  );
  t.equal(all.rows.length, 9, 'LEFT keeps those without a passage');
  t.equal(all.rows.at(-1)?.['n'], '0');
  const none = await ask(
    'user:ann',
    `select a.id from osl.entities.article a left join ${notes(20)} r on a.id = r.article_id where r.lang = 'xx'`,
  );
  t.same(none.rows, [], 'WHERE over the side that LEFT may null still filters');
  const clear = await ask(
    'user:acc',
    `select a.title, r.text from osl.entities.account a join ${memos()} r on a.code = r.account order by 1`,
  );
  t.same(
    clear.rows.map((r) => r['title']),
    ['First', 'Second'],
  );
  t.same((await ask('user:ann', `select text from ${memos()}`)).rows, [], 'no passage without a clear key');
});

t.test('the scan of an entity is given the keys of the passages that it is joined with', async (t) => {
  const scanOf = async (who: string, text: string): Promise<string> => {
    fronts.takeStatements();
    t.equal((await ask(who, text)).status, 200, text);
    const joined = statements().at(-1);
    return /from press\.article as t(?: where (.*?))?\) as r\d/.exec(joined ?? '')?.[1] ?? 'all of it';
  };
  const on = `${notes(3)} r on a.id = r.article_id`;
  const among = /^\(?t\.id = any \(\$\d+::\w+\[\]\)\)?$/;
  t.match(await scanOf('user:ann', `select a.title from osl.entities.article a join ${on}`), among);
  t.match(
    await scanOf('user:eu', `select a.title from osl.entities.article a join ${on}`),
    /t\.region = \$\d+::text\) and \(t\.id = any /,
    'beside the row filter',
  );
  t.equal(
    await scanOf('user:ann', `select a.title from osl.entities.article a left join ${on}`),
    'all of it',
    'LEFT keeps those without a passage',
  );
  t.match(
    await scanOf(
      'user:ann',
      `select a.title from ${notes(3)} r left join osl.entities.article a on a.id = r.article_id`,
    ),
    among,
    'and the passages without an article',
  );
});

function cited(answer: Answer, field: string): string[] {
  return answer.rows.flatMap((r) => {
    const evidence = r['evidence'];
    return Array.isArray(evidence) ? evidence.map((e) => String(at(e, 'cite', field))) : [];
  });
}

const documents = (answer: Answer): string[] => cited(answer, 'doc_id');
const versions = (answer: Answer): string[] => cited(answer, 'version');

t.test(
  'evidence that a cap clips is told of where it is only shown, and nothing is computed from it',
  async (t) => {
    const capped = await startFrontends({
      ...test.open,
      service: { ...test.service, caps: { ...test.service.caps, evidence: 2 } },
    });
    t.teardown(() => capped.stop());
    const asker = async (text: string) => {
      const authorization = `Bearer ${await capped.token({ subject: 'user:ann', aclRoles: ceiling })}`;
      return postQuery(capped.httpPort, { osql: text }, { authorization });
    };
    const ceiling = [...(test.service.model().snapshot?.subjects.get('user:ann')?.ceiling ?? [])];
    const of = (outputs: string, more = ''): string =>
      `select ${outputs} from osl.entities.article where id in (1, 2, 3)${more}`;
    const shown = [
      of('id, evidence'),
      of('id, evidence', ' order by id limit 2'),
      `select e from (${of('id, evidence as e')}) t`,
      `select count(*) from (${of('id, evidence')}) t`,
      `with t as (${of('id, evidence as e')}) select e from t`,
    ];
    for (const text of shown) {
      const { status, json } = await asker(text);
      t.match({ status, truncated: at(json, 'truncated') }, { status: 200, truncated: true }, text);
    }
    const computed = [
      of('jsonb_array_length(evidence)'),
      of('id', ' and evidence is not null'),
      of('evidence::text'),
      of('evidence', ' order by 1'),
      of('distinct evidence'),
      of('count(evidence)'),
      `select count(e) from (${of('evidence as e')}) t`,
      `select id from (${of('id, evidence as e')}) t where e is null`,
      `with t as (${of('evidence as e')}) select jsonb_array_length(e) from t`,
      `${of('evidence')} union all select '[]'::jsonb`,
      of("id, case when evidence is null then 'none' else 'some' end"),
    ];
    for (const text of computed) {
      const { json } = await asker(text);
      const told = { code: at(json, 'code'), detail: at(json, 'detail') };
      t.match(told, { code: 'E0519', detail: /^the evidence of these keys has more than 2 passages/ }, text);
    }
    const wire = await capped.asker('extended wire', { subject: 'user:ann', aclRoles: ceiling });
    t.teardown(() => wire.end());
    t.match((await wire.ask(of('id, evidence'))).outcome, { kind: 'refused', code: 'E0519' });
  },
);

t.test('Joint: an entity with its evidence, in the version that is due', async (t) => {
  const expected = (...articles: number[]): string[] =>
    NOTES.filter((n) => articles.includes(n.article)).map((n) => n.id);
  for (const [where, parameters, articles] of [
    ['id in (1, 2)', [], [1, 2]],
    ['id = 1', [], [1]],
    ['id = $1', [1], [1]],
    ['id = any ($1)', ['{1, 2}'], [1, 2]],
    ["id in (1, 2) and region = 'us'", [], [2]],
    ['id in (1, 77)', [], [1]],
  ] as const) {
    const answer = await ask(
      'user:ann',
      `select id, title, evidence from osl.entities.article where ${where}`,
      {
        parameters,
      },
    );
    t.equal(answer.status, 200, where);
    t.same([...new Set(documents(answer))].sort(), expected(...articles), where);
    t.same([...new Set(versions(answer))], ['masked']);
  }
  const eu = await ask('user:eu', 'select id, evidence from osl.entities.article where id in (1, 2)');
  t.same([eu.rows.length, [...new Set(documents(eu))].sort()], [1, expected(1)]);
  const bare = await ask('user:ann', 'select id, evidence from osl.entities.article where id = 9');
  t.same(bare.rows, [{ id: 9, evidence: null }]);
  const raw = await ask('user:ada', 'select evidence from osl.entities.article where id = 1');
  t.ok(raw.raw.includes(PEOPLE[0].email));
  const odd = await ask('user:odd', 'select id, evidence from osl.entities.article where id = 1');
  t.same([...new Set(documents(odd))].sort(), expected(1));
  t.same([...new Set(versions(odd))], ['masked']);
});

const FORMS: readonly (readonly [string, string, readonly string[]])[] = [
  ['retrieve', `select text from ${notes()}`, ['osl.facets.notes']],
  [
    'cross_modal',
    `select a.title, r.text from osl.entities.article a join ${notes()} r on a.id = r.article_id`,
    ['osl.entities.article', 'osl.facets.notes'],
  ],
  [
    'joint',
    'select title, evidence from osl.entities.article where id in (1, 2)',
    ['osl.entities.article', 'osl.facets.notes'],
  ],
];

t.test('one decision names every object and the grants, and explain reads nothing', async (t) => {
  for (const [form, query, objects] of FORMS) {
    fronts.takeAudit();
    const { requestId } = await ask('user:ann', query);
    const records = (await test.records(requestId)).filter((r) => r.kind === 'decision');
    t.match(records, [{ form, decision: 'allow', objects }], form);
    t.equal(records.length, 1);
    statements();
    const explained = await ask('user:ann', query, { explain: true });
    t.equal(explained.status, 200);
    t.same(statements(), []);
    t.match(explained.json, { form, objects });
    t.not(at(explained.json, 'grants', 'length'), 0, `${form} rests on a grant`);
  }
});

t.test('the wire gives what REST gives', async (t) => {
  const client = await forms.wire('user:eu');
  for (const [, query] of FORMS) {
    const rest = await ask('user:eu', query);
    const { outcome } = await client.simple(query);
    t.equal(outcome.kind, 'rows');
    if (outcome.kind !== 'rows') continue;
    const names = outcome.columns;
    const asText = (v: unknown): string | null =>
      v === null || typeof v === 'string' ? v : JSON.stringify(v);
    t.same(
      outcome.rows,
      rest.rows.map((r) => names.map((n) => asText(r[n]))),
    );
  }
  const { outcome, types } = await client.extended(
    `select text, score, cite from ${notes('$2', '$1')} where lang = $3`,
    { values: ['windmill', '3', 'de'] },
  );
  t.equal(outcome.kind === 'rows' ? outcome.rows.length : outcome.message, 0, 'no German note on windmills');
  t.same(types, ['25', '701', '3802'], 'cite is jsonb');
  for (const [query, sqlstate] of [
    [`select summarize(text) from ${notes()}`, /./],
    ["select text from RETRIEVE(facet => 'nope', query => 'x', top_k => 5)", /^42/],
  ] as const) {
    const reply = await client.simple(query);
    t.match(reply.outcome, { kind: 'refused', sqlstate });
  }
});

t.test('a masked field of passages is a redacted column, wherever it is used', async (t) => {
  const redacted = async (who: string, query: string): Promise<readonly unknown[]> =>
    (at((await ask(who, query)).json, 'columns') as readonly { redacted: boolean }[]).map((c) => c.redacted);
  const questions: readonly (readonly [string, readonly boolean[]])[] = [
    [`select text, author, article_id, score, cite from ${notes(2)}`, [true, true, false, false, false]],
    [`select upper(author) as a, max(article_id) as b from ${notes(2)} group by 1`, [true, false]],
    [`select d.a, d.b from (select author as a, article_id as b from ${notes(2)}) d`, [true, false]],
    [
      `select a.title, r.author from osl.entities.article a join ${notes(2)} r on a.id = r.article_id`,
      [false, true],
    ],
  ];
  for (const [query, masked] of questions) {
    t.same(await redacted('user:ann', query), masked, query);
    t.same(
      await redacted('user:ada', query),
      masked.map(() => false),
      'the auditor reads them',
    );
  }
});

t.test('explain says how the passages are found', async (t) => {
  const explained = async (who: string, query: string, parameters: readonly unknown[] = []) => {
    const { json } = await ask(who, query, { explain: true, parameters });
    return at(json, 'plan');
  };
  const retrieve = { step: 'retrieve', detail: { object: 'osl.facets.notes', lane: 'exact', max_top_k: 50 } };
  t.match(await explained('user:ann', `select rank(text), lang from ${notes(7)} where lang = 'de'`), {
    inputs: [
      {
        ...retrieve,
        detail: {
          version: 'masked',
          top_k: 7,
          metadata_filters: 1,
          row_filter: 'none',
          operators: ['RANK'],
        },
      },
    ],
  });
  t.match(await explained('user:de', `select text from ${notes('$1')}`), {
    inputs: [{ ...retrieve, detail: { top_k: 'a parameter', metadata_filters: 0, row_filter: 'applied' } }],
  });
  t.match(await explained('user:non', `select text from ${notes(3)}`), {
    inputs: [{ ...retrieve, detail: { version: 'none is due: no passages' } }],
  });
  t.notMatch(JSON.stringify(await explained('user:de', `select text from ${notes(3)}`)), /"de"|german/);
  const joint = 'select title, evidence from osl.entities.article where id in (1, 2)';
  t.match(await explained('user:ada', joint), {
    inputs: [
      {
        step: 'left join',
        inputs: [
          { step: 'scan' },
          { step: 'hydrate', detail: { facets: ['notes in version raw'], passages: true, derived: [] } },
        ],
      },
    ],
  });
});
