import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { lexicalEmbedder, openStore } from '../../../src/content/index.js';
import { indexedFacets } from '../../../src/model/manifest/index.js';
import { differ } from '../../support/differ.js';
import { at, type Forms, startForms } from './fixture.js';
import { insertNotes, NOTES, type Note, toyEmbeddings, vectorsWorld } from './vectors.js';

t.setTimeout(600_000);

const server = await toyEmbeddings();
t.teardown(() => server.close());
const SOME = NOTES.slice(0, 160).map((n, i) => ({
  ...n,
  body: [n.body, NOTES[i + 400]?.body, NOTES[i + 800]?.body].slice(0, 1 + (i % 3)).join(' '),
}));
/** So many passages of each leg are fused where a page needs no more. */
const DEPTH = 100;

/** Several passages of each note, found by words and by vectors. */
function world(notes: readonly Note[]): Promise<Forms> {
  const plain = vectorsWorld('{ max_top_k: 1000, hybrid: true }', notes, server.url);
  const chunking = 'chunking: { max_chars: 100, overlap_chars: 0 }\n    embedding:';
  return startForms({ ...plain, manifest: plain.manifest.replace('embedding:', chunking) });
}

const forms = await world(SOME);
t.teardown(() => forms.close());

const QUERIES = [NOTES[10]?.body ?? '', 'w1 w2 w3', 'w17 w203 w44', 'nowhere'];
const WHO = ['user:ann', 'user:eu', 'user:de', 'user:odd'];

interface Passage {
  readonly score: number;
  readonly chunk: string;
  readonly document: string;
}

async function found(
  of: Forms,
  who: string,
  query: string,
  more: string,
  where = '',
): Promise<readonly Passage[]> {
  const osql = `select score, cite from RETRIEVE(facet => 'notes', query => '${query}', ${more})${where}`;
  const { rows, status, message } = await of.ask(who, osql);
  if (status !== 200) throw new Error(`${osql}: ${message}`);
  return rows.map((r) => {
    const [chunk, document] = ['chunk_id', 'doc_id'].map((name) => String(at(r, 'cite', name)));
    return { score: Number(r['score']), chunk: chunk ?? '', document: document ?? '' };
  });
}

/** Computes the fusion of two lists from the answers of each leg by itself. */
function expected(
  legs: readonly (readonly Passage[])[],
  weights: readonly number[],
  byScore: boolean,
  keyOf: (p: Passage) => string,
): ReadonlyMap<string, number> {
  const scores = new Map<string, number>();
  for (const [i, passages] of legs.entries()) {
    const [best, last] = [passages[0]?.score ?? 0, passages.at(-1)?.score ?? 0];
    for (const [rank, p] of passages.entries()) {
      const share = byScore ? (best === last ? 1 : (p.score - last) / (best - last)) : 1 / (61 + rank);
      scores.set(keyOf(p), (scores.get(keyOf(p)) ?? 0) + (weights[i] ?? 0) * share);
    }
  }
  return scores;
}

t.test('both legs fuse into what fusing their own answers gives, for each caller', async (t) => {
  for (const who of WHO) {
    for (const query of QUERIES) {
      for (const per of ['passage', 'document'] as const) {
        const one = (mode: string) =>
          found(forms, who, query, `top_k => ${DEPTH}, mode => '${mode}', per => '${per}'`);
        const legs = [await one('lexical'), await one('dense')];
        const keyOf = (p: Passage): string => (per === 'document' ? p.document : p.chunk);
        for (const [more, weights, byScore] of [
          ['', [1, 1], false],
          [", fuse => 'score'", [1, 1], true],
          [', weights => array[0.2, 0.8]', [0.2, 0.8], false],
          [", weights => array[1, 0], fuse => 'score'", [1, 0], true],
        ] as const) {
          const scores = expected(legs, weights, byScore, keyOf);
          const best = [...scores.values()].sort((a, b) => b - a).slice(0, 20);
          const told = await found(forms, who, query, `top_k => 20, per => '${per}'${more}`);
          const where = `${who} ${query} ${per} ${more}`;
          t.equal(told.length, best.length, where);
          t.ok(
            told.every((p, i) => Math.abs(p.score - (best[i] ?? -1)) < 1e-4),
            where,
          );
          t.ok(
            told.every((p) => Math.abs(p.score - (scores.get(keyOf(p)) ?? -1)) < 1e-3),
            where,
          );
          t.equal(new Set(told.map(keyOf)).size, told.length);
        }
      }
    }
  }
});

/** Passages with what their scores are made of. */
async function explained(
  of: Forms,
  who: string,
  query: string,
  more: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const osql = `select score, cite, text, highlights, score_parts
    from RETRIEVE(facet => 'notes', query => '${query}', ${more}, highlight => true, explain_score => true)`;
  const { rows, status, message } = await of.ask(who, osql);
  if (status !== 200) throw new Error(`${osql}: ${message}`);
  return rows;
}

/** A whole number, so that sums are compared as they are shown. */
function millionths(score: unknown): number {
  return Math.round(Number(score) * 1e6);
}

function sumOf(parts: readonly unknown[]): number {
  return parts.reduce<number>((sum, part) => sum + millionths(at(part, 'part')), 0);
}

function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

t.test('the parts of a fused score are what each leg says by itself, and add up to it', async (t) => {
  for (const who of WHO) {
    for (const query of QUERIES) {
      for (const per of ['passage', 'document'] as const) {
        const one = (mode: string) =>
          found(forms, who, query, `top_k => ${DEPTH}, mode => '${mode}', per => '${per}'`);
        const legs = new Map([
          ['lexical', await one('lexical')],
          ['dense', await one('dense')],
        ]);
        const keyOf = (p: Passage): string => (per === 'document' ? p.document : p.chunk);
        for (const [more, weights] of [
          ['', [1, 1]],
          [", fuse => 'score'", [1, 1]],
          [', weights => array[0.2, 0.8]', [0.2, 0.8]],
        ] as const) {
          for (const row of await explained(forms, who, query, `top_k => 20, per => '${per}'${more}`)) {
            const told = items(at(row, 'score_parts', 'legs'));
            const where = `${who} ${query} ${per}${more}: ${JSON.stringify(row)}`;
            t.equal(sumOf(told), millionths(row['score']), where);
            t.equal(at(row, 'score_parts', 'score'), row['score'], where);
            t.same(
              told.map((leg) => [at(leg, 'leg'), at(leg, 'weight')]),
              [
                ['lexical', weights[0]],
                ['dense', weights[1]],
              ],
              where,
            );
            const chunk = String(at(row, 'cite', 'chunk_id'));
            const document = String(at(row, 'cite', 'doc_id'));
            for (const leg of told) {
              const passages = legs.get(String(at(leg, 'leg'))) ?? [];
              const place = passages.findIndex((p) => keyOf(p) === keyOf({ chunk, document, score: 0 }));
              const known = passages[place];
              t.equal(at(leg, 'rank'), known === undefined ? null : place + 1, where);
              t.equal(at(leg, 'score'), known?.score ?? null, where);
              if (per === 'document') t.equal(at(leg, 'chunk_id'), known?.chunk, where);
              if (at(leg, 'leg') === 'lexical' && known !== undefined)
                t.equal(sumOf(items(at(leg, 'terms'))), millionths(known.score), where);
            }
          }
        }
      }
    }
  }
});

t.test(
  'a model says how near a passage is, and the words of the query are highlighted all the same',
  async (t) => {
    const query = 'w17 w203 w44';
    const rows = await explained(forms, 'user:eu', query, "top_k => 40, mode => 'dense'");
    t.equal(rows.length, 40);
    const words = new Set(query.split(' '));
    for (const row of rows) {
      const { score } = row;
      t.same(row['score_parts'], { mode: 'dense', score, similarity: score });
      const told = items(row['highlights']).map((span) =>
        String(row['text']).slice(...items(span).map(Number)),
      );
      t.same(
        told,
        String(row['text'])
          .split(/\W+/)
          .filter((word) => words.has(word)),
      );
    }
    t.ok(rows.some((row) => items(row['highlights']).length > 0));
    t.ok(rows.some((row) => items(row['highlights']).length === 0));
  },
);

t.test('pages, floors, filters and operators hold over the fused order', async (t) => {
  const query = QUERIES[0] ?? '';
  const all = await found(forms, 'user:ann', query, 'top_k => 30');
  t.same(await found(forms, 'user:ann', query, 'top_k => 10, skip => 20'), all.slice(20));
  const floor = all[7]?.score ?? 0;
  t.same(
    await found(forms, 'user:ann', query, `top_k => 30, min_score => ${floor}`),
    all.filter((p) => p.score >= floor),
  );
  const german = await found(forms, 'user:ann', query, 'top_k => 40', " where lang = 'de'");
  t.equal(german.length, 40, 'the filter holds in both legs, before the best are taken');
  // The filter is in both, so that it is as if the others were not there.
  t.same(german, await found(forms, 'user:de', query, 'top_k => 40'));
  const osql = `select similarity(text) as s, rank(text) as r, cluster(text, k => 2) as c
    from RETRIEVE(facet => 'notes', query => 'w1 w2 w3', top_k => 9)`;
  const { rows, status, message } = await forms.ask('user:eu', osql);
  t.equal(status, 200, message);
  t.ok(rows.every((r) => typeof r['s'] === 'number' && typeof r['r'] === 'number'));
  const lexical = osql.replace('top_k => 9', "top_k => 9, mode => 'lexical'");
  t.match(await forms.ask('user:eu', lexical), { status: 200 }, 'by the n-grams of that leg');
});

t.test('what is hidden changes nothing of a fused answer', async (t) => {
  const hidden: Readonly<Record<string, (n: Note) => boolean>> = {
    'user:eu': (n) => n.article % 2 === 0,
    'user:de': (n) => n.lang !== 'de',
  };
  const seen = async (of: Forms, who: string): Promise<readonly unknown[]> => {
    const answers: unknown[] = [];
    for (const query of QUERIES)
      for (const more of [
        'top_k => 20',
        "top_k => 7, skip => 3, per => 'document'",
        "top_k => 9, fuse => 'score'",
      ])
        answers.push(await found(of, who, query, more), await explained(of, who, query, more));
    return answers;
  };
  for (const [who, isHidden] of Object.entries(hidden)) {
    // The first build measures how long passages are, once and for all (decision 75): it is of the same notes.
    const twin = await world(SOME);
    const changed = SOME.map((n) => (isHidden(n) ? { ...n, body: `w1 w2 w3 w17 ${n.id}` } : n));
    await twin.test.engine.system.script(generatedSql(`delete from press.note; ${insertNotes(changed)}`));
    await twin.reindex();
    try {
      t.same(await seen(twin, who), await seen(forms, who), who);
      differ(t, await seen(twin, 'user:ann'), await seen(forms, 'user:ann'));
    } finally {
      await twin.close();
    }
  }
});

t.test('a leg that is not indexed is named, and how to index it', async (t) => {
  const { system } = forms.test.engine;
  const twin = await startForms(vectorsWorld('{ max_top_k: 10 }', SOME.slice(0, 3), server.url));
  t.teardown(() => twin.close());
  const { manifest } = forms.test.service.model();
  const { facets } = manifest;
  t.same(
    indexedFacets(manifest).map((f) => f.name),
    ['notes', 'notes.lexical'],
  );
  const leg = facets.get('notes')?.lexicalLeg ?? null;
  if (leg === null) throw new Error('no leg');
  const opened = openStore(twin.test.engine.system, leg, 'raw', lexicalEmbedder, 1);
  const refused: unknown = await opened.catch((error: unknown) => error);
  t.match(refused, { name: 'ContentError', hint: 'run `osl index notes`' });
  t.ok(
    (await system.query(sql`select 1 from pg_tables where tablename like 'noteslexical\\_\\_\\_%'`)).length >
      0,
  );
});

t.test('what is wrong is said', async (t) => {
  const of = (more: string) =>
    forms.ask('user:ann', `select text from RETRIEVE(facet => 'notes', query => 'w1', top_k => 3${more})`);
  for (const more of [
    ", mode => 'both'",
    ", mode => 'dense', fuse => 'rank'",
    ", mode => 'lexical', weights => array[1, 2]",
    ', weights => array[1]',
    ', weights => array[0, 0]',
    ', weights => array[-1, 2]',
    ', weights => array[1, 2, 3]',
    ", fuse => 'product'",
    ', skip => 1001',
  ])
    t.match(await of(more), { status: 400, code: 'E0511' }, more);
  t.match(await of(", mode => 'dense', skip => 1001"), { status: 200 });
  const { json } = await forms.ask(
    'user:ann',
    "select text from RETRIEVE(facet => 'notes', query => 'w1', top_k => 3, fuse => 'score')",
    { explain: true },
  );
  t.match(JSON.stringify(json), '"mode":"hybrid","fuse":"score"');
  const client = await forms.wire('user:eu');
  const { outcome } = await client.simple(
    "select text from RETRIEVE(facet => 'notes', query => 'w1', top_k => 3, weights => array[1, 2])",
  );
  t.equal(outcome.kind, 'rows');
});
