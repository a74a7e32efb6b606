import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { LANGUAGES, type Language } from '../../../src/model/facets/retrieval-options.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { manifestText, policyText } from '../../support/model-text.js';
import { at, startForms } from './fixture.js';
import { toyEmbeddings } from './vectors.js';

/** Passages in languages that say which they are, found by other forms of their words, as REST answers. */

t.setTimeout(300_000);

interface Corpus {
  readonly passages: readonly string[];
  /** Queries, each with the number of the passage that is to come first, or null where none is. */
  readonly finds: readonly (readonly [query: string, first: number | null])[];
  /** Queries of stop words alone. */
  readonly empty: readonly string[];
}

const CORPORA: Readonly<Partial<Record<Language, Corpus>>> = {
  german: {
    passages: [
      'Die Häuser am Hafen sind alt und werden im Sommer gestrichen.',
      'In der Bücherei liegen Bücher über die Straßen der Stadt.',
      'parseArgs liest die Argumente eines Programms.',
    ],
    finds: [
      ['Haus', 0],
      ['hauser', 0],
      ['ein Buch', 1],
      ['STRASSE', 1],
      ['args des Programmes', 2],
      ['Katze', null],
    ],
    empty: ['und nicht oder', 'für', 'fur'],
  },
  french: {
    passages: [
      "L'élève a mangé des pommes dans le jardin.",
      'Les chevaux galopaient vers les montagnes enneigées.',
      'La décision nationale était préférée par les ministres.',
    ],
    finds: [
      ['manger', 0],
      ['eleves', 0],
      ['cheval galoper', 1],
      ['preferee', 2],
      ['décisions nationaux', 2],
    ],
    empty: ['les et ou', "qu'il"],
  },
  russian: {
    passages: [
      'Кошка спит на книгах.',
      'Новые ёлки стоят в городах.',
      'Программисты пишут тесты, running in Docker.',
    ],
    finds: [
      ['книга', 0],
      ['кошками', 0],
      ['елка', 1],
      ['город', 1],
      ['runs', 2],
    ],
    empty: ['и не на', 'она была'],
  },
  chinese: {
    passages: ['图书馆里有很多书。', '中华人民共和国成立于一九四九年。', '我们用 TypeScript 写测试。'],
    finds: [
      ['图书馆', 0],
      ['共和', 1],
      ['人民', 1],
      ['typescript 测试', 2],
      ['华人', null],
    ],
    empty: ['的', '我们和他们'],
  },
  japanese: {
    passages: ['猫は魚を食べました。', '東京都に住んでいる学生です。', 'データベースのテストを書く。'],
    finds: [
      ['食べる', 0],
      ['東京', 1],
      ['学生', 1],
      ['データベース', 2],
      ['ﾃｽﾄ', 2],
      ['京都', null],
    ],
    empty: ['これは', 'を'],
  },
  thai: {
    passages: ['ฉันกินข้าวที่ร้านอาหาร', 'แมวนอนบนหนังสือ', 'นักเรียนอ่านหนังสือในห้องสมุด'],
    finds: [
      ['ข้าว', 0],
      ['ร้าน', 0],
      ['แมว', 1],
      ['อ่าน', 2],
      ['สืบ', null],
    ],
    empty: ['และ', 'ที่'],
  },
};

const named = Object.keys(CORPORA) as readonly Language[]; // they are its keys

function facet(name: string, retrieval: string, embedding = ''): string {
  return `  ${name}:
    source: db.press.note
    entity: article
    entity_key: article_id
    document_id: id
    text: body
    metadata: [lang, id]
    scalar_indexed: [lang]
${embedding}    versions: { raw: {} }
    retrieval: ${retrieval}
`;
}

const MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, region text not null',
    'press.note': 'id text, article_id int4 not null, lang text not null, body text not null',
  },
  `entities:
  article: { source: db.press.article, primary_key: [id], columns: [id, region] }
facets:
${named.map((language) => facet(language, `{ max_top_k: 50, language: ${language} }`)).join('')}${facet(
  'plain',
  '{ max_top_k: 50 }',
)}${facet('both', '{ max_top_k: 50, hybrid: true, language: german }', '    embedding: { model: toy }\n')}`,
);

const facets = [...named, 'plain', 'both'];
const POLICY = policyText(
  'press',
  {
    'user:ann': 'all',
    'user:zero': 'few',
  },
  `roles:
  all:
    grants:
      - { on: article, columns: "*" }
${facets.map((name) => `      - { on: ${name}, columns: "*" }`).join('\n')}
  few:
    grants:
      - { on: article, columns: "*" }
${facets.map((name) => `      - { on: ${name}, columns: "*", rows: "id not like '%-0'" }`).join('\n')}
masks: {}
limits: { query: 1000000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const notes = Object.entries(CORPORA).flatMap(([lang, { passages }]) =>
  passages.map((body, i) => `('${lang}-${i}', 1, '${lang}', '${body.replaceAll("'", "''")}')`),
);
const SCRIPT = `
create schema press;
create table press.article (id int4 primary key, region text not null);
insert into press.article values (1, 'eu');
create table press.note (id text primary key, article_id int4 not null, lang text not null, body text not null);
insert into press.note values ${notes.join(', ')};`;

const server = await toyEmbeddings();
t.teardown(() => server.close());
const content = { ...settingsFrom({}, '/').content, embeddings: { url: server.url, keyEnv: null } };
const forms = await startForms({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'press',
  settings: { content },
});
t.teardown(() => forms.close());
const { engine, open } = forms.test;

const ask = (facet: string, query: string, lang: string, more = '', by = 'user:ann') =>
  forms.ask(
    by,
    `select cite, score from RETRIEVE(facet => '${facet}', query => '${query.replaceAll("'", "''")}', top_k => 9${more}) where lang = '${lang}'`,
  );
const idsOf = (rows: readonly Readonly<Record<string, unknown>>[]) =>
  rows.map((r) => at(r['cite'], 'doc_id'));

for (const [lang, { finds, empty }] of Object.entries(CORPORA)) {
  t.test(`${lang}: words are found in their other forms, and stop words lead nowhere`, async (t) => {
    for (const [query, first] of finds) {
      const { rows, message } = await ask(lang, query, lang);
      t.equal(message, '', query);
      t.equal(idsOf(rows)[0] ?? null, first === null ? null : `${lang}-${first}`, query);
    }
    for (const query of empty) {
      const { status, code, message } = await ask(lang, query, lang);
      t.match(
        { status, code, message },
        { status: 400, code: 'E0511', message: /no word to look for/ },
        query,
      );
    }
  });
}

t.test('without a language the same words are not found, and nothing else changes', async (t) => {
  t.same((await ask('plain', 'Haus', 'german')).rows, []);
  t.same((await ask('plain', 'книга', 'russian')).rows, []);
  t.same(idsOf((await ask('plain', '京都', 'japanese')).rows), ['japanese-1'], 'pairs of letters');
  t.same(idsOf((await ask('plain', 'hafen', 'german')).rows), ['german-0']);
});

t.test('passages that the caller may not see weigh nothing, in a language too', async (t) => {
  t.same(idsOf((await ask('german', 'Haus', 'german', '', 'user:zero')).rows), []);
  t.same(idsOf((await ask('german', 'Buch', 'german', '', 'user:zero')).rows), ['german-1']);
});

t.test('the lexical leg of a facet with an embedding model has its language', async (t) => {
  t.same(idsOf((await ask('both', 'Haus', 'german', ", mode => 'lexical'")).rows), ['german-0']);
  const fused = await ask('both', 'Haus', 'german');
  t.equal(fused.message, '');
  t.equal(fused.rows.length, 3, 'the dense leg brings the others');
  t.equal(
    (await ask('both', 'und nicht', 'german')).rows.length,
    3,
    'without a word the dense leg answers alone',
  );
});

t.test('what stands for a word of the query is marked as it is written', async (t) => {
  const marked = async (facet: string, query: string, lang: string): Promise<readonly unknown[]> => {
    const { rows, message } = await forms.ask(
      'user:ann',
      `select text, highlights from RETRIEVE(facet => '${facet}', query => '${query}', top_k => 1, highlight => true) where lang = '${lang}'`,
    );
    t.equal(message, '', query);
    const [{ text = '', highlights = [] } = {}] = rows;
    const letters = [...String(text)];
    const spans = highlights as readonly (readonly [number, number])[]; // as the docs have it
    return spans.map(([from, to]) => letters.slice(from, to).join(''));
  };
  t.same(await marked('german', 'Haus', 'german'), ['Häuser']);
  t.same(await marked('russian', 'книга runs', 'russian'), ['книгах']);
  t.same(await marked('japanese', '食べる', 'japanese'), ['食']);
  t.same(await marked('thai', 'ข้าว', 'thai'), ['ข้าว']);
  t.same(await marked('both', 'Haus', 'german'), ['Häuser'], 'in passages of the dense leg, too');
});

t.test('a query of a facet with a language has 4,000 characters at most', async (t) => {
  const long = 'haus '.repeat(800);
  t.same(idsOf((await ask('german', long, 'german')).rows), ['german-0']);
  t.match(await ask('german', `${long} `, 'german'), { status: 400, code: 'E0511' });
  t.match(await ask('japanese', '猫'.repeat(4001), 'japanese'), { status: 400, code: 'E0511' });
  t.equal((await ask('plain', `${long} `, 'german')).status, 200);
});

t.test('another language is another store, built beside the one that is served', async (t) => {
  const changed = MANIFEST.replace('language: german }\n', 'language: french }\n');
  const states = () =>
    engine.system.query(
      sql`select facet, version, state from osl_content.facet where facet in ('german', 'plain', 'both.lexical') order by 1, 2`,
    );
  const served = [
    { facet: 'both.lexical', version: 'raw', state: 'ready' },
    { facet: 'german', version: 'raw', state: 'ready' },
    { facet: 'plain', version: 'raw', state: 'ready' },
  ];
  t.same(await states(), served);
  await indexContent(parseManifest(changed, 'm.yaml'), open.databases, content, [], () => undefined);
  t.same(await states(), [
    ...served.slice(0, 2),
    { facet: 'german', version: 'raw~next', state: 'ready' },
    ...served.slice(2),
  ]);
  t.same(idsOf((await ask('german', 'Straße', 'german')).rows), ['german-1'], 'the old one answers');
  writeFileSync(join(dirname(forms.test.policyFile), 'manifest.yaml'), changed);
  await open.reload();
  t.same((await ask('german', 'Straße', 'german')).rows, [], 'after the reload the new one does');
  t.same(idsOf((await ask('german', 'galoper', 'french')).rows), ['french-1']);
  t.same(await states(), served);
});

t.test('a store without a language is not read in one', async (t) => {
  writeFileSync(
    join(dirname(forms.test.policyFile), 'manifest.yaml'),
    MANIFEST.replace('retrieval: { max_top_k: 50 }', 'retrieval: { max_top_k: 50, language: german }'),
  );
  await open.reload();
  t.match(await ask('plain', 'Haus', 'german'), { status: 503, code: 'E0522' });
});

t.test('every language that the manifest takes reads its stop words and its words', async (t) => {
  const { wordRules } = await import('../../../src/content/lexical/languages/word-rules.js');
  const { termTexts } = await import('../../../src/base/text/terms.js');
  const forms: Readonly<Record<Language, readonly [stop: string, one: string, other: string]>> = {
    arabic: ['على', 'المكتبات', 'مكتبة'],
    armenian: ['համար', 'քաղաքներ', 'քաղաքի'],
    danish: ['jeg', 'husene', 'hus'],
    dutch: ['niet', 'boeken', 'boek'],
    english: ['the', 'universities', 'university'],
    finnish: ['minä', 'taloissa', 'talo'],
    french: ['avec', 'chevaux', 'cheval'],
    german: ['über', 'Häuser', 'Haus'],
    greek: ['αυτές', 'βιβλία', 'βιβλιων'],
    hindi: ['लेकिन', 'लड़कों', 'लड़का'],
    hungarian: ['ahogy', 'könyvek', 'konyvet'],
    indonesian: ['adalah', 'membaca', 'bacaan'],
    irish: ['agus', 'fhear', 'fear'],
    italian: ['della', 'parlavano', 'parlare'],
    nepali: ['अनुसार', 'केटाहरु', 'केटा'],
    norwegian: ['ikke', 'huset', 'hus'],
    portuguese: ['não', 'informações', 'informação'],
    romanian: ['această', 'cărțile', 'cărţi'],
    russian: ['когда', 'ёлки', 'елка'],
    spanish: ['también', 'canciones', 'cancion'],
    swedish: ['och', 'husen', 'hus'],
    tamil: ['மற்றும்', 'புத்தகங்கள்', 'புத்தகம்'],
    turkish: ['ancak', 'kitapları', 'kitap'],
    chinese: ['的', '图书馆', '图书'],
    japanese: ['これ', '食べる', '食べました'],
    thai: ['และ', 'หนังสือ', 'อ่านหนังสือ'],
  };
  for (const language of LANGUAGES) {
    const rules = await wordRules(language);
    const terms = (text: string): readonly string[] => [...termTexts(text, rules)];
    const [stop, one, other] = forms[language];
    t.same(terms(stop), [], `${language}: ${stop}`);
    const shared = terms(one).filter((term) => terms(other).includes(term));
    t.not(shared.length, 0, `${language}: ${one}, ${other}`);
  }
});

t.test('stores know the packages that their words were read with', async (t) => {
  const { dependencies } = JSON.parse(readFileSync('release/bundled/package.json', 'utf8')) as Record<
    string,
    object
  >; // our own file
  const told =
    'raise READING of src/content/lexical/languages/word-rules.ts where stems or stop words changed';
  t.match(dependencies, { '@orama/stemmers': '3.1.18', '@orama/stopwords': '3.1.18' }, told);
});
