import { test } from 'tap';
import { atOnce } from '../../src/base/in-turns.js';
import { ANY_LANGUAGE, placedTerms, stem, termTexts } from '../../src/base/text/terms.js';
import { ngramVector } from '../../src/content/embed/lexical-v1.js';
import {
  inverseFrequency,
  lexicalEmbedder,
  lexicalQuery,
  TERM_SPACE,
  termsOf,
} from '../../src/content/index.js';
import {
  lexicalWeights,
  measuredLength,
  occurrencesOf,
  writtenInSteps,
} from '../../src/content/lexical/bm25.js';
import { cosine } from './reference.js';

test('stems are those of the published algorithm', async (t) => {
  const published =
    'caresses caress ponies poni ties ti cats cat feed feed agreed agre plastered plaster motoring motor sing sing ' +
    'conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss failing fail ' +
    'filing file happy happi sky sky relational relat conditional condit rational ration valenci valenc ' +
    'digitizer digit radicalli radic vietnamization vietnam predication predic operator oper feudalism feudal ' +
    'decisiveness decis hopefulness hope formaliti formal sensitiviti sensit triplicate triplic formative form ' +
    'electriciti electr electrical electr goodness good revival reviv allowance allow inference infer airliner airlin ' +
    'adjustable adjust defensible defens irritant irrit replacement replac adjustment adjust dependent depend ' +
    'adoption adopt homologou homolog communism commun activate activ effective effect probate probat rate rate ' +
    'cease ceas controll control roll roll yes ye naïve naïve sha256 sha256';
  const words = published.split(' ');
  for (let i = 0; i < words.length; i += 2) t.equal(stem(words[i] ?? ''), words[i + 1]);
});

test('terms know names of things, scripts without spaces, and no stop words', async (t) => {
  const terms = (text: string): string[] => [...termTexts(text)];
  t.strictSame(terms('The parseArgs of HTTPServer2'), [
    'parsearg',
    'pars',
    'arg',
    'httpserver2',
    'http',
    'server',
  ]);
  t.strictSame(terms('snake_case @scope/pkg'), ['snake', 'case', 'scope', 'pkg']);
  t.strictSame(terms('東京都'), ['東京', '京都']);
  t.strictSame(terms('Ｆｕｌｌ'), ['full']);
  t.strictSame(terms('… !'), []);
});

test('terms say where they stand in the text as it was given', async (t) => {
  const placed = (text: string): string[] =>
    [...placedTerms(text)].map(({ term, start, end }) => `${term} ${text.slice(start, end)}`);
  t.strictSame(placed('The parseArgs of HTTPServer2'), [
    'parsearg parseArgs',
    'pars parse',
    'arg Args',
    'httpserver2 HTTPServer2',
    'http HTTP',
    'server Server',
  ]);
  t.strictSame(placed('𝔘 東京都 runs'), ['u 𝔘', '東京 東京', '京都 京都', 'run runs']);
  t.strictSame(placed('a ﬁne Ｆｕｌｌ A\u030angstro\u0308m'), [
    'fine ﬁne',
    'full Ｆｕｌｌ',
    'angstrom A\u030angstro\u0308m',
  ]);
  t.strictSame(placed('㎏ ½ ﷺ ｶﾞｸ'), [
    'kg ㎏',
    '1 ½',
    '2 ½',
    'صلى ﷺ',
    'الله ﷺ',
    'عليه ﷺ',
    'وسلم ﷺ',
    'ガク ｶﾞｸ',
  ]);
});

test('terms with their places are those without, in any script', async (t) => {
  const text = SCRIPTS.join(' · ');
  for (const form of ['NFC', 'NFD', 'NFKD'] as const) {
    const given = text.normalize(form);
    const placed = [...placedTerms(given)];
    t.strictSame(
      placed.map(({ term }) => term),
      [...termTexts(given)],
      form,
    );
    t.ok(placed.length > 40);
    for (const { term, start, end } of placed)
      t.ok([...termTexts(given.slice(start, end))].includes(term), `${term}: ${given.slice(start, end)}`);
  }
});

test('occurrences are told in code points, apart, a hundred at most', async (t) => {
  const of = (query: string, text: string): unknown => {
    const { spans, counts } = occurrencesOf(text, new Set(termsOf(query).ids));
    return { spans, counts: [...counts.values()] };
  };
  t.strictSame(of('mills', '😀 a mill, MILLING'), {
    spans: [
      [4, 8],
      [10, 17],
    ],
    counts: [2],
  });
  t.strictSame(
    of('parse args', 'parseArgs()'),
    { spans: [[0, 9]], counts: [1, 1] },
    'parts that touch are one',
  );
  t.strictSame(of('args', 'parseArgs()'), { spans: [[5, 9]], counts: [1] });
  t.strictSame(of('東京都', '𝔘東京都庁'), { spans: [[1, 4]], counts: [1, 1] }, 'pairs of letters overlap');
  t.strictSame(of('angstrom', '😀A\u030angstro\u0308m'), { spans: [[1, 11]], counts: [1] });
  t.strictSame(of('the', 'the mill'), { spans: [], counts: [] });
  const many = occurrencesOf('mill '.repeat(500), new Set(termsOf('mill').ids));
  t.equal(many.spans.length, 100);
  t.same(many.spans.at(-1), [495, 499]);
  t.same([...many.counts.values()], [500]);
  t.strictSame(
    [...atOnce(writtenInSteps('Mills of parseArgs, mill', ANY_LANGUAGE)).values()],
    [
      { term: 'Mills', times: 2 },
      { term: 'parseArgs', times: 1 },
      { term: 'parse', times: 1 },
      { term: 'Args', times: 1 },
    ],
  );
});

/** Letters that join with the one before them, and forms that become several letters. */
const SCRIPTS = [
  'Việt Nam Straße Łódź ﬁnancial ﬀords',
  '한국어 ᄒ\u1161ᆫ국 ㄱㅏㄴ ﾡￂ',
  'がくせい ガクセイ ｶﾞｸｾｲ パピプ ﾊﾟﾋﾟ',
  'हिन्दी मानक தமிழ் கொ ภาษาไทย မြန်မာ',
  'العربية ﻼ ﷺ עברית שּׁלום',
  'Ελληνικά ΐ й ё ў Ångström ㎏ ㏒ ① Ⅷ ｍｉｘｅｄ１２',
];

test('letters of the Latin script are found with and without their accents', async (t) => {
  const same = (...texts: string[]): void => {
    const [first, ...others] = texts.map((text) => [...termTexts(text)].join(' '));
    for (const other of others) t.equal(other, first, texts.join(', '));
  };
  same('Ångström', 'angstrom', 'A\u030angstro\u0308m', 'ÅNGSTRÖM');
  same('résumés', 'resumes');
  same('Straße', 'strasse', 'STRASSE');
  same('Łódź', 'lodz');
  same('Việt Nam', 'viet nam');
  same('œuvre', 'oeuvre');
  t.notSame([...termTexts('мой')], [...termTexts('мои')], 'й is no accented и');
  t.notSame([...termTexts('がく')], [...termTexts('かく')]);
});

test('term ids are distinct, ascending and positions of the sparse vector', async (t) => {
  const { ids, counts, length } = termsOf('mill mills wind');
  t.equal(length, 3);
  t.strictSame([...counts].sort(), [1, 2]);
  t.ok(ids.every((id, i) => id >= 1 && id <= TERM_SPACE && id > (ids[i - 1] ?? 0)));
  t.strictSame(termsOf('wind mill mills'), termsOf('mill mills wind'));
});

test('weights and query give BM25 as the book has it', async (t) => {
  const documents = ['mill mill wind', 'wind sea', 'sea salt fish boat'];
  const average = 3;
  const all = documents.map((text) => termsOf(text));
  const frequency = (id: number): number => all.filter((d) => d.ids.includes(id)).length;
  const query = lexicalQuery(termsOf('mill wind unheard'), { documents: 3, documentFrequency: frequency });
  t.ok(query);
  const scores = all.map((d) => dot(lexicalWeights(d, average), query?.vector ?? ''));
  const idf = (n: number): number => Math.log(1 + (3 - n + 0.5) / (n + 0.5));
  const tf = (f: number, length: number): number =>
    (f * 2.2) / (f + 1.2 * (0.25 + (0.75 * length) / average));
  const expected = [idf(1) * tf(2, 3) + idf(2) * tf(1, 3), idf(2) * tf(1, 2), 0];
  for (const [i, score] of scores.entries()) t.ok(Math.abs(score - (expected[i] ?? 0)) < 1e-5);
  t.equal(query?.termIds.length, 2, 'a term that no permitted row has is left out');
  t.equal(lexicalQuery(termsOf('unheard'), { documents: 3, documentFrequency: frequency }), null);
  t.equal(lexicalQuery(termsOf('the of'), { documents: 3, documentFrequency: () => 3 }), null);
  t.ok(inverseFrequency(3, 3) > 0);
});

test('the average length of a store is measured in steps, and guessed where there is nothing', async (t) => {
  t.equal(measuredLength([], 1200), 113);
  t.equal(measuredLength([0], 1200), 113);
  t.equal(measuredLength([30, 34], 1200), 32);
  t.equal(measuredLength([28, 34], 1200), 32, 'a document more or less hardly moves it');
  t.ok(Math.abs(measuredLength([45], 100_000) - 45.25) < 0.01);
});

function dot(a: string, b: string): number {
  const parse = (text: string): Map<string, number> =>
    new Map(
      text
        .slice(1, text.indexOf('}'))
        .split(',')
        .map((e): [string, number] => [e.split(':')[0] ?? '', Number(e.split(':')[1])]),
    );
  const other = parse(b);
  let sum = 0;
  for (const [id, weight] of parse(a)) sum += weight * (other.get(id) ?? 0);
  return sum;
}

test('n-gram vectors are of whole numbers, equal for equal words, and near for near ones', async (t) => {
  const [a, b, c] = [
    ngramVector('lost credit card'),
    ngramVector('LOST, credit-card!'),
    ngramVector('losing a card'),
  ];
  t.ok(a.every((x) => Number.isInteger(x) && Math.abs(x) <= 127 && !Object.is(x, -0)));
  t.equal(cosine(a, b), 1);
  t.ok(cosine(a, c) > 0.2 && cosine(a, ngramVector('weather tomorrow')) < 0.1);
  t.equal(cosine(a, ngramVector('')), 0);
  const [again] = await lexicalEmbedder.embed(['lost credit card'], 'query');
  t.strictSame(again, a);
});
