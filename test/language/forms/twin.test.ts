import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import type { Service } from '../../../src/service/service.js';
import { differ } from '../../support/differ.js';
import { partOf } from '../../support/part.js';
import { articlesWorld, NOTES, type Note, noteScript } from './articles.js';
import { type Forms, startForms } from './fixture.js';

t.setTimeout(600_000);

/** Data that `user:eu` may not see: notes about articles of the US; the same for `user:de` and notes in English. */
const HIDDEN: Readonly<Record<string, (n: Note) => boolean>> = {
  'user:eu': (n) => n.article % 2 === 0,
  'user:de': (n) => n.lang !== 'de',
};

/** Each change of a corpus touches only notes that are hidden from this caller. */
const CHANGES: Readonly<Record<string, (hidden: (n: Note) => boolean) => readonly Note[]>> = {
  'hidden documents removed': (hidden) => NOTES.filter((n) => !hidden(n)),
  'hidden documents changed': (hidden) =>
    NOTES.map((n) => (hidden(n) ? { ...n, body: `Report: windmill harbour ${'ledger '.repeat(60)}` } : n)),
  'hidden documents added': (hidden) => [
    ...NOTES,
    ...NOTES.filter(hidden).flatMap((n) =>
      [1, 2, 3].map((i) => ({
        ...n,
        id: `x${i}${n.id}`,
        body: `${'windmill orchard '.repeat(10 * i)} report`,
      })),
    ),
  ],
};

const QUERIES = [
  'report on the windmill',
  'orchard',
  'windmill harbour ledger telescope',
  'nothing of the kind',
];

const OPERATORS = `similarity(text) as similar, similarity(text, 'a mill') as to_mill,
  classify(text, ARRAY['windmill', 'harbour', 'ledger']) as class, tag(text, ARRAY['windmill', 'sea'], threshold => 0.1) as tags,
  rank(text) as rank, rank(text, 'orchard', lambda => 0.5) as diverse, dedup(text, threshold => 0.9) as dedup,
  outlier(text, k => 2) as outlier, cluster(text, k => 3) as cluster`;

const statements = QUERIES.flatMap((query) => [
  ...[3, 50].map(
    (k) =>
      `select text, score, cite, article_id, lang, ${OPERATORS} from RETRIEVE(facet => 'notes', query => '${query}', top_k => ${k})`,
  ),
  `select text, score from RETRIEVE(facet => 'notes', query => '${query}', top_k => 4) where article_id in (1, 2, 3)`,
  `select count(*) as n, sum(score) as total from RETRIEVE(facet => 'notes', query => '${query}', top_k => 50)`,
  `select a.id, count(*) as n, max(r.score) as best from osl.entities.article a
   join RETRIEVE(facet => 'notes', query => '${query}', top_k => 20) r on a.id = r.article_id group by a.id order by a.id`,
  `select a.id, r.text from osl.entities.article a
   left join RETRIEVE(facet => 'notes', query => '${query}', top_k => 5) r on a.id = r.article_id order by a.id, r.text`,
  `select a.article_id, a.score, b.score, b.text from RETRIEVE(facet => 'notes', query => '${query}', top_k => 9) a
   join RETRIEVE(facet => 'notes', query => 'orchard', top_k => 9) b on a.article_id = b.article_id`,
  `select highlights, score_parts, score from RETRIEVE(facet => 'notes', query => '${query}', top_k => 4,
     diversity => 0.5, highlight => true, explain_score => true)`,
  `select text, score from RETRIEVE(facet => 'notes', query => '${query}', top_k => 3, skip => 2, min_score => 0.2, per => 'document')`,
]);
/** Models that fail on the notes of one article, or of one language: hidden ones fail nobody's question. */
const FAILING = [
  ...[1, 2, 4].map(
    (id) => `case when article_id = ${id} then 1 / (length(lang) - length(lang)) else 1 end = 1`,
  ),
  ...['d\\\\', 'e\\\\', '%n\\\\'].map((pattern) => `lang like '${pattern}'`),
].map(
  (where) => `select text from RETRIEVE(facet => 'notes', query => 'orchard', top_k => 2) where ${where}`,
);
FAILING.push(
  ...[20, 40, 70].map(
    (views) => `select text, score from RETRIEVE(facet => 'notes', query => 'orchard', top_k => 2)
      where article_id in (select id from osl.entities.article where 1 / (views - ${views}) < 1 and views > 15)`,
  ),
);
const JOINT = 'select id, title, evidence from osl.entities.article where id in (1, 2, 3, 4, 5, 6, 7, 8)';

const ASKED = [...statements, JOINT, ...FAILING];

/** Everything that a caller can learn, as text: rows, refusals and the plans that it is shown. */
async function seen(forms: Forms, who: string): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const statement of ASKED) {
    const { rows, status, code } = await forms.ask(who, statement);
    const { json } = await forms.ask(who, statement, { explain: true });
    answers.push(JSON.stringify([status, code, rows, (json as { plan: unknown }).plan])); // explain's shape
  }
  return answers;
}

/** While set, words are weighed by all passages in the store, hidden ones too: what this test must notice. */
let leaking = false;

interface Corpus extends Forms {
  /** Counts the store's words for the leak. */
  count(): Promise<void>;
}

async function corpus(notes: readonly Note[]): Promise<Corpus> {
  const frequencies = new Map<number, number>();
  let documents = 0;
  const leaky = (service: Service): Service => ({
    ...service,
    content: {
      ...service.content,
      async lexicalQuery(facet, text) {
        const { toSparseVector: weighted, ...query } = await service.content.lexicalQuery(facet, text);
        const all = query.terms.map((term) => frequencies.get(term) ?? 0);
        return {
          ...query,
          toSparseVector: (n, of) => (leaking ? weighted(documents, all) : weighted(n, of)),
        };
      },
    },
  });
  const options = articlesWorld();
  const forms = await startForms(options, leaky);
  // The first build measures how long passages are, once and for all: of hidden ones too, as the decision says.
  if (notes !== NOTES) {
    await forms.test.engine.system.script(generatedSql(`delete from press.note; ${noteScript(notes)}`));
    await forms.reindex();
  }
  return {
    ...forms,
    async count() {
      const { system } = forms.test.engine;
      const store = 'osl_content.notes__masked';
      const [total] = await system.query(generatedSql(`select count(*) as n from ${store}`));
      documents = Number(total?.['n']);
      for (const row of await system.query(
        generatedSql(`select unnest(terms) as term, count(*) as n from ${store} group by 1`),
      ))
        frequencies.set(Number(row['term']), Number(row['n']));
    },
  };
}

const original = await corpus(NOTES);
t.teardown(() => original.close());
const before = new Map<string, readonly string[]>();
for (const who of ['user:eu', 'user:de', 'user:ann']) before.set(who, await seen(original, who));

t.test('statistics over all rows are noticed, and so is each change by a caller of everything', async (t) => {
  const hidden = HIDDEN['user:eu'];
  if (hidden === undefined) throw new Error('no such caller');
  await original.count();
  leaking = true;
  const leaked = await seen(original, 'user:eu');
  leaking = false;
  for (const [name, change] of partOf('leaky twins', Object.entries(CHANGES), 3)) {
    const twin = await corpus(change(hidden));
    try {
      await twin.count();
      leaking = true;
      const differs = differences(await seen(twin, 'user:eu'), leaked);
      leaking = false;
      t.ok(differs > 0, `${name}: ${differs} answers over a leaky lane differ`);
      const plain = differences(await seen(twin, 'user:ann'), before.get('user:ann') ?? []);
      t.ok(plain >= statements.length / 2, `${name}: ${plain} answers to a caller of everything differ`);
    } finally {
      leaking = false;
      await twin.close();
    }
  }
});

function differences(some: readonly string[], others: readonly string[]): number {
  return some.filter((answer, i) => answer !== others[i]).length;
}

for (const [who, hidden] of Object.entries(HIDDEN)) {
  t.test(`${who} cannot tell what it may not see`, async (t) => {
    for (const [name, change] of partOf(`twins of ${who}`, Object.entries(CHANGES), 3)) {
      const twin = await corpus(change(hidden));
      try {
        const after = await seen(twin, who);
        t.equal(after.length, ASKED.length);
        for (const [i, answer] of after.entries()) {
          t.equal(answer, before.get(who)?.[i], `${name}: ${ASKED[i]}`);
        }
      } finally {
        await twin.close();
      }
    }
  });
}

t.test('an index that is brought up to date shows no more than a new one', async (t) => {
  const twin = await corpus(NOTES);
  try {
    const { system } = twin.test.engine;
    const ids = NOTES.filter((n) => n.article % 2 === 0).map((n) => n.id);
    await system.query(sql`update press.note set body = 'windmill windmill report' where id = any ($1)`, [
      ids,
    ]);
    await twin.reindex();
    t.same(await seen(twin, 'user:eu'), before.get('user:eu'), 'changed');
    differ(t, await seen(twin, 'user:ann'), before.get('user:ann'));
    await system.query(sql`delete from press.note where id = any ($1)`, [ids]);
    await twin.reindex();
    t.same(await seen(twin, 'user:eu'), before.get('user:eu'), 'removed');
  } finally {
    await twin.close();
  }
});
