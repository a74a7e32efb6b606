import type { Worker } from 'node:worker_threads';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { openEmbedder } from '../../../src/content/index.js';
import { startForms } from './fixture.js';
import { VECTORS_POLICY, vectorsManifest } from './vectors.js';

/** Operators with a model of meaning, through the surfaces: indexed by it, asked of it, and refused without its package. */

t.setTimeout(600_000);

const SCRIPT = `
create schema press;
create table press.article (id int4 primary key, region text not null);
create table press.note (id text primary key, article_id int4 not null, lang text not null, body text not null);
insert into press.article values (1, 'eu'), (2, 'us');
insert into press.note values
  ('dog', 1, 'en', 'our dog barked at the neighbours all night'),
  ('money', 1, 'en', 'the bank raised the interest of my loan'),
  ('rain', 2, 'en', 'heavy rain is expected in the north tomorrow'),
  ('none', 2, 'ja', '犬が一晩中吠えていた');
`;

const formsWith = (model: string): ReturnType<typeof startForms> =>
  startForms({
    manifest: vectorsManifest('{ max_top_k: 50 }').replace('{ model: toy }', `{ model: ${model} }`),
    policy: VECTORS_POLICY,
    script: SCRIPT,
    schema: 'press',
  });

/** Questions that share no word with the note that means them, and words with the others. */
const ASKED: Readonly<Record<string, string>> = {
  dog: 'the puppy made noise in the evening',
  money: 'finance: the credit has become expensive',
  rain: 'a storm, and the weather forecast of the day',
};
const EVERY = 'dog barked bank loan rain tomorrow 犬が一晩中吠えていた';

const docOf = (cite: unknown): string => (cite as { doc_id: string }).doc_id; // as RETRIEVE cites

async function nearest(forms: Awaited<ReturnType<typeof startForms>>, reference: string): Promise<string> {
  const { status, rows, message } = await forms.ask(
    'user:ann',
    `select cite, similarity(text, $2) as s from RETRIEVE(facet => 'notes', query => $1, top_k => 10)`,
    { parameters: [EVERY, reference] },
  );
  if (status !== 200) throw new Error(message);
  const best = [...rows].sort((a, b) => Number(b['s']) - Number(a['s']))[0];
  return docOf(best?.['cite']);
}

t.test('what means the same is nearest, where letters alone lead elsewhere', async (t) => {
  const [letters, meaning] = [await formsWith('lexical-v1'), await formsWith('sentences-v1')];
  t.teardown(async () => {
    await letters.close();
    await meaning.close();
  });
  let missed = 0;
  for (const [note, reference] of Object.entries(ASKED)) {
    t.equal(await nearest(meaning, reference), note, reference);
    missed += (await nearest(letters, reference)) === note ? 0 : 1;
  }
  t.ok(missed > 0, 'letters alone find fewer');
  t.equal(
    await nearest(meaning, '犬が吠えた'),
    'none',
    'what the model does not know is told by its letters',
  );

  const { rows, message } = await meaning.ask(
    'user:eu',
    `select cite, classify(text, '["pets", "finance", "weather"]'::jsonb) as c from RETRIEVE(facet => 'notes', query => $1, top_k => 10)`,
    { parameters: [EVERY] },
  );
  t.same(
    rows.map((row) => [docOf(row['cite']), row['c']]).sort(),
    [
      ['dog', 'pets'],
      ['money', 'finance'],
    ],
    `of the permitted passages ${message}`,
  );
  const stored = await meaning.test.engine.system.query(
    sql`select fingerprint, vector_dims(dense) as n from osl_content.facet, osl_content.notes__raw limit 1`,
  );
  t.match(stored[0], {
    fingerprint: /^sentences-v1;@energetic-ai\/model-embeddings-en \d+\.\d+\.\d+;/,
    n: 1_536,
  });
});

t.test('callers that ask at once have their turns, and what is stopped ends', async (t) => {
  const embedder = await openEmbedder('sentences-v1', { endpoint: null });
  t.teardown(() => embedder.close());
  const many = Array.from({ length: 400 }, (_, i) => `a sentence about thing number ${i} and what it does`);
  const stop = new AbortController();
  const long = embedder.embed(many, 'document', stop.signal).then(
    () => 'ended',
    () => 'stopped',
  );
  const first = await embedder.embed(['one fish'], 'document');
  stop.abort();
  t.equal(await long, 'stopped', 'one text did not wait for four hundred');
  t.same(await embedder.embed(['two fish', 'one fish'], 'document').then((v) => v[1]), first[0]);
});

t.test('texts of nothing have vectors of nothing', async (t) => {
  const embedder = await openEmbedder('sentences-v1', { endpoint: null });
  t.teardown(() => embedder.close());
  for (const vector of await embedder.embed(['', ' \n', '?!', '\u0000'], 'document'))
    t.ok(vector.every((x) => x === 0));
});

t.test('each indexing ends the thread of its model', async (t) => {
  const meaning = await formsWith('sentences-v1');
  t.teardown(() => meaning.close());
  const running = new Set<Worker>();
  const begun = (worker: Worker): void => {
    running.add(worker);
    worker.once('exit', () => running.delete(worker));
  };
  process.on('worker', begun);
  await meaning.reindex();
  process.off('worker', begun);
  t.equal(running.size, 0);
});
