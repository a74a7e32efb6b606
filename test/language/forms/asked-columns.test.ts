import t from 'tap';
import { termTexts } from '../../../src/base/text/terms.js';
import { memberAt } from '../../support/frontends.js';
import { call, connected } from '../../surfaces/mcp/support.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY, articleScript } from './articles.js';
import { type Answer, at, startForms } from './fixture.js';

t.setTimeout(180_000);

/** The notes have a field of their own that is called as what RETRIEVE may be asked for. */
const forms = await startForms({
  manifest: ARTICLES_MANIFEST.replace('tags: { type', 'highlights: { type').replace(
    'rating, tags',
    'rating, highlights',
  ),
  policy: ARTICLES_POLICY,
  script: articleScript().replace('tags text[]', 'highlights text[]'),
  schema: 'press',
});
t.teardown(() => forms.close());
const { ask } = forms;

const WHO = ['user:ann', 'user:ada', 'user:eu', 'user:de'] as const;
const QUERIES = [
  'report on the windmill',
  'Reports of windmills, and windmills',
  'orchards turning slowly',
  'Ångström',
  'Written by Balthasar in days',
  'telescope ledger lantern harbour',
] as const;

/** `RETRIEVE` over the notes. */
function notes(query: string, more: string, topK = 50): string {
  return `RETRIEVE(facet => 'notes', query => '${query}', top_k => ${topK}${more})`;
}

interface Marked {
  readonly text: string;
  readonly score: number;
  readonly spans: readonly (readonly [number, number])[];
  readonly terms: readonly Term[];
  readonly parts: unknown;
}

interface Term {
  readonly term: string;
  readonly times: number;
  readonly idf: number;
  readonly tf: number;
  readonly part: number;
}

function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

async function marked(who: string, query: string, more = ''): Promise<readonly Marked[]> {
  const asked = notes(query, `${more}, highlight => true, explain_score => true`);
  const { rows, status, message } = await ask(
    who,
    `select text, score, highlights, score_parts from ${asked}`,
  );
  t.equal(status, 200, message);
  return rows.map((row) => ({
    text: String(row['text']),
    score: Number(row['score']),
    spans: items(row['highlights']).map((span) => {
      const [from, to] = items(span).map(Number);
      return [from ?? Number.NaN, to ?? Number.NaN] as const;
    }),
    terms: items(at(row, 'score_parts', 'terms')).map((term) => ({
      term: String(memberAt(term, 'term')),
      times: Number(memberAt(term, 'query_tf')),
      idf: Number(memberAt(term, 'idf')),
      tf: Number(memberAt(term, 'tf')),
      part: Number(memberAt(term, 'part')),
    })),
    parts: row['score_parts'],
  }));
}

/** A whole number, so that sums are compared as they are shown. */
function millionths(score: number): number {
  return Math.round(score * 1e6);
}

t.test('highlights are the words of the query in the text that is shown, and all of them', async (t) => {
  for (const who of WHO) {
    for (const query of QUERIES) {
      const wanted = new Set(termTexts(query));
      const isWanted = (text: string): boolean => [...termTexts(text)].some((term) => wanted.has(term));
      for (const { text, spans } of await marked(who, query)) {
        const points = [...text];
        const where = `${who} ${query}: ${JSON.stringify(spans)} of ${text}`;
        t.ok(spans.length > 0, where);
        t.ok(
          spans.every(([from, to]) => from < to && to <= points.length),
          where,
        );
        t.ok(
          spans.every(([from], i) => i === 0 || from > (spans[i - 1]?.[1] ?? 0)),
          where,
        );
        t.ok(
          spans.every(([from, to]) => isWanted(points.slice(from, to).join(''))),
          where,
        );
        const others = points.map((point, i) =>
          spans.some(([from, to]) => from <= i && i < to) ? ' ' : point,
        );
        t.notOk(isWanted(others.join('')), where);
      }
    }
  }
});

t.test('what is redacted for a caller is not highlighted', async (t) => {
  const slices = async (who: string): Promise<readonly string[]> => {
    const found = await marked(who, 'Ångström report');
    return found.flatMap(({ text, spans }) => spans.map(([from, to]) => [...text].slice(from, to).join('')));
  };
  t.ok((await slices('user:ada')).includes('Ångström'), 'to who reads the names');
  t.same([...new Set(await slices('user:ann'))].sort(), ['Report', 'report'], 'to who does not');
});

t.test('the parts of a score add up to it, and say what the caller could count', async (t) => {
  for (const who of WHO) {
    const seen = await all(who);
    for (const query of QUERIES) {
      for (const { text, score, terms } of await marked(who, query)) {
        const where = `${who} ${query}: ${JSON.stringify(terms)} of ${text}`;
        const sum = terms.reduce((before, { part }) => before + millionths(part), 0);
        t.equal(sum, millionths(score), where);
        t.same(
          terms.map(({ part }) => part),
          terms.map(({ part }) => part).sort((a, b) => b - a),
          where,
        );
        for (const { term, times, idf, tf } of terms) {
          const [stem = ''] = termTexts(term);
          const has = (text: string): number => [...termTexts(text)].filter((t) => t === stem).length;
          const holding = seen.filter((text) => has(text) > 0).length;
          const rarity = Math.log(1 + (seen.length - holding + 0.5) / (holding + 0.5));
          t.equal(millionths(idf), millionths(rarity), `${term} is as rare as ${who} can count it`);
          t.equal(tf, has(text), where);
          t.equal(times, has(query), where);
        }
        // BM25 divides by the same length whatever the term: each part says which, and all say the same.
        const lengths = terms.map(({ times, idf, tf, part }) => (times * idf * tf * 2.2) / part - tf);
        t.ok(
          lengths.every((length) => Math.abs(length - (lengths[0] ?? 0)) < 1e-2),
          `${where} ${lengths.join(' ')}`,
        );
      }
    }
  }
});

/** The texts of all passages that a caller may see: each has one of these words. */
async function all(who: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for (let skip = 0; ; skip += 50) {
    const query = 'report written slowly days token windmill harbour ledger telescope orchard lantern';
    const { rows } = await ask(who, `select text from ${notes(query, `, skip => ${skip}`)}`);
    texts.push(...rows.map((r) => String(r['text'])));
    if (rows.length < 50) break;
  }
  const sample = await ask(who, `select text from ${notes('the', '')}`);
  t.equal(sample.code, 'E0511', 'stop words find nothing');
  return texts;
}

t.test('columns are there where they are asked for', async (t) => {
  const columns = ({ rows }: Answer): readonly string[] => Object.keys(rows[0] ?? {});
  const plain = columns(await ask('user:ann', `select * from ${notes('windmill', '', 1)}`));
  t.notOk(plain.includes('score_parts'));
  for (const [more, names] of [
    [', highlight => true', []],
    [', explain_score => true', ['score_parts']],
    [', highlight => true, explain_score => true', ['score_parts']],
    [', highlight => false, explain_score => false', []],
  ] as const) {
    const { rows, status, message } = await ask('user:ann', `select * from ${notes('windmill', more, 1)}`);
    t.equal(status, 200, message);
    t.same(
      Object.keys(rows[0] ?? {}).filter((name) => !plain.includes(name)),
      names,
      more,
    );
  }
  t.match(await ask('user:ann', `select score_parts from ${notes('windmill', '')}`), { code: 'E0512' });
  const own = await ask('user:ann', `select highlights from ${notes('windmill', ', highlight => false', 1)}`);
  t.same(
    own.rows,
    [{ highlights: ['a b', null, 'c"d'] }],
    'the field of the facet, where nothing is asked for',
  );
  const asked = await ask(
    'user:ann',
    `select highlights from ${notes('windmill', ', highlight => true', 1)}`,
  );
  t.same(
    asked.rows,
    [{ highlights: (await marked('user:ann', 'windmill'))[0]?.spans }],
    'and what is asked for',
  );
  for (const [more, parameters] of [
    [", highlight => 'true'", []],
    [', explain_score => 1', []],
    [', highlight => null', []],
    [', highlight => $1', ['true']],
  ] as const) {
    const refused = await ask('user:ann', `select text from ${notes('windmill', more)}`, { parameters });
    t.match(refused, { status: 400, code: 'E0511' }, more);
    t.match(refused.message, /is true or false/);
  }
});

t.test(
  'they stand beside pages, diversity, LIMIT and other RETRIEVEs, and conditions on them hold after',
  async (t) => {
    const both = ', highlight => true, explain_score => true';
    const [first, second] = await marked('user:ann', 'report on the windmill');
    const from = notes('report on the windmill', both);
    const of = (r: Readonly<Record<string, unknown>> | undefined) => [r?.['text'], r?.['score_parts']];
    const limited = await ask('user:ann', `select * from ${from} limit 1 offset 1`);
    t.same(of(limited.rows[0]), [second?.text, second?.parts]);
    const paged = await ask(
      'user:ann',
      `select * from ${notes('report on the windmill', `${both}, skip => 1`, 1)}`,
    );
    t.same(of(paged.rows[0]), [second?.text, second?.parts]);
    const unlike = await ask(
      'user:ann',
      `select score, score_parts -> 'score' as same from ${notes('report on the windmill', `${both}, diversity => 0.5`, 5)}`,
    );
    t.ok(unlike.rows.length === 5 && unlike.rows.every((r) => r['score'] === r['same']));
    const where = await ask(
      'user:ann',
      `select text from ${from} r where jsonb_array_length(r.score_parts -> 'terms') = 2 and r.highlights <> '[]'`,
    );
    const two = (await marked('user:ann', 'report on the windmill')).filter(
      ({ terms }) => terms.length === 2,
    );
    t.ok(two.length > 0);
    t.same(
      where.rows.map((r) => r['text']),
      two.map(({ text }) => text),
    );
    const joined = await ask(
      'user:ann',
      `select a.highlights, b.score_parts from ${notes('windmill', ', highlight => true', 1)} a
     join ${notes('report windmill', ', explain_score => true')} b on a.article_id = b.article_id`,
    );
    t.equal(joined.status, 200, joined.message);
    t.ok(joined.rows.length > 0 && first !== undefined);
    t.match(await ask('user:non', `select * from ${from}`), { status: 200, rows: [] }, 'without a grant');
  },
);

t.test('every surface tells the same', async (t) => {
  const osql = `select highlights, score_parts from ${notes('orchards', ', highlight => true, explain_score => true', 2)}`;
  const { rows } = await ask('user:ann', osql);
  t.equal(rows.length, 2);
  const mcp = await connected({ port: forms.fronts.httpPort, test: forms.test }, 'user:ann', 'auto');
  const { content } = await call(mcp, 'semantic_query', { osql });
  await mcp.close();
  t.same(at(content, 'rows'), rows, 'MCP');
  const client = await forms.wire('user:ann');
  const { outcome } = await client.simple(osql);
  t.equal(outcome.kind, 'rows');
  if (outcome.kind !== 'rows') return;
  t.same(
    outcome.rows.map((row) => row.map((value) => JSON.parse(String(value)))),
    rows.map((row) => [row['highlights'], row['score_parts']]),
    'the wire',
  );
});
