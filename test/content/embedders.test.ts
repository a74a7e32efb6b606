import t, { test } from 'tap';
import { sql } from '../../src/base/sql.js';

import { meaningBy, packagePath, readWords } from '../../src/content/embed/offline/words.js';
import {
  type Embedder,
  indexFacet,
  lexicalEmbedder,
  openEmbedder,
  openEmbeddingEndpoint,
  openTransformers,
} from '../../src/content/index.js';
import { openEngine, type SystemEngine } from '../../src/engine/index.js';
import { parseManifest } from '../../src/model/manifest/index.js';
import {
  createShop,
  facet,
  facetOf,
  indexShop,
  TEXT as MANIFEST_TEXT,
  manifest,
  storeRows,
} from './fixture.js';
import { cosine } from './reference.js';
import { type Asked, json, modelServer } from './server.js';

const inputs = ({ body }: Asked): string[] => body['input'] as string[];
const embeddings = (vectors: readonly (readonly number[])[]): unknown => ({
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
});

/** Three numbers of a text: enough to tell texts apart. */
const toy = (text: string): number[] => [text.length, text.charCodeAt(0) || 1, 3];

/** Requests and answers of these servers, by their documentation. */
const RECORDED: Readonly<
  Record<
    string,
    {
      readonly path: string;
      readonly asks: (texts: string[]) => unknown;
      readonly answers: (vectors: number[][]) => unknown;
    }
  >
> = {
  openai: {
    path: '/v1/embeddings',
    asks: (input) => ({ model: 'e1', input, encoding_format: 'float', dimensions: 3 }),
    answers: (vectors) => ({
      object: 'list',
      data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
      model: 'e1',
      usage: { prompt_tokens: 8, total_tokens: 8 },
    }),
  },
  voyage: {
    path: '/v1/embeddings',
    asks: (input) => ({ model: 'e1', input, input_type: 'document', output_dimension: 3 }),
    answers: (vectors) => ({
      object: 'list',
      data: vectors.map((embedding, index) => ({ object: 'embedding', embedding, index })),
      model: 'e1',
      usage: { total_tokens: 10 },
    }),
  },
  ollama: {
    path: '/v1/api/embed',
    asks: (input) => ({ model: 'e1', input, dimensions: 3 }),
    answers: (embeddings) => ({
      model: 'e1',
      embeddings,
      total_duration: 14143917,
      load_duration: 1019500,
      prompt_eval_count: 8,
    }),
  },
  tei: {
    path: '/v1/embed',
    asks: (inputs) => ({ inputs, truncate: true, dimensions: 3 }),
    answers: (vectors) => vectors,
  },
};

for (const [protocol, { path, asks, answers }] of Object.entries(RECORDED)) {
  test(`a facet's own endpoint: ${protocol}`, async (t) => {
    const server = await modelServer();
    t.teardown(() => server.close());
    const described = parseManifest(
      `${MANIFEST_TEXT}    embedding:
      model: e1
      endpoint: { protocol: ${protocol}, url_env: OSL_TEST_MODEL }
      dimensions: 3
      query_prefix: "query: "
      passage_prefix: "passage: "
      half_precision: true
`,
      'shop.yaml',
    );
    const { embeddingModel, embedding } = facetOf(described);
    const open = () => openEmbedder(embeddingModel, { endpoint: null }, embedding);
    await t.rejects(open(), { code: 'endpoint', message: /OSL_TEST_MODEL is not set/ });
    process.env['OSL_TEST_MODEL'] = 'postgres://user:secret@db';
    const refused = await open().catch((error) => error);
    t.match(refused.message, /OSL_TEST_MODEL is not an http or https URL/);
    process.env['OSL_TEST_MODEL'] = server.url;
    process.env['OSL_TEST_MODEL_KEY'] = 'key-2';
    t.teardown(() => {
      delete process.env['OSL_TEST_MODEL'];
      delete process.env['OSL_TEST_MODEL_KEY'];
    });
    server.answer = ({ body }, r) =>
      json(r, answers(((body['input'] ?? body['inputs']) as string[]).map(toy)));
    const embedder = await open();
    t.strictSame(embedder.layout, { kind: 'dense', dimensions: 3, type: 'halfvec' });
    server.asked.length = 0;
    const vectors = await embedder.embed(['one', 'another'], 'document');
    t.strictSame(server.asked[0]?.body, asks(['passage: one', 'passage: another']));
    t.equal(server.asked[0]?.path, path);
    t.equal(server.asked[0]?.headers.authorization, 'Bearer key-2');
    t.equal(vectors.length, 2);
    t.ok(cosine(vectors[1] ?? new Float32Array(), Float32Array.from(toy('passage: another'))) > 0.999_99);
    await embedder.embed(['where'], 'query');
    t.match(JSON.stringify(server.asked[1]?.body), /"query: where"/);
    if (protocol === 'voyage') t.equal(server.asked[1]?.body['input_type'], 'query');
    server.answer = (_, r) => json(r, answers([[1, 2, 3]]));
    await t.rejects(embedder.embed(['a', 'b'], 'document'), { code: 'malformedAnswer' });
    server.answer = (_, r) => json(r, { error: 'no such model' });
    await t.rejects(embedder.embed(['a'], 'document'), { code: 'malformedAnswer' });
    server.answer = (_, r) => json(r, answers([[1, 2]]));
    await t.rejects(embedder.embed(['a'], 'document'), { code: 'malformedAnswer' }, 'another width');
  });
}

test('what a model takes none of is refused when the manifest loads', (t) => {
  const withSettings = (settings: string) =>
    parseManifest(`${MANIFEST_TEXT}    embedding: { ${settings} }\n`, 'shop.yaml');
  for (const settings of [
    'model: lexical-v1, dimensions: 3',
    'model: words-v1, query_prefix: q',
    'model: "transformers:a/b", dimensions: 3',
    'model: "transformers:a/b", endpoint: { protocol: tei, url_env: X }',
  ])
    t.throws(() => withSettings(settings), { message: /takes no/ }, settings);
  t.ok(withSettings('model: "transformers:a/b", query_prefix: q, half_precision: true'));
  t.end();
});

test('an OpenAI-compatible endpoint', async (t) => {
  const server = await modelServer();
  t.teardown(() => server.close());
  const base = {
    url: `${server.url}/`,
    model: 'e1',
    keyEnv: null,
    retries: 1,
    backoffMs: 5,
    timeoutMs: 2_000,
  };
  const good = (): void => {
    server.answer = (asked, r) => json(r, embeddings(inputs(asked).map(toy)));
  };

  await t.test('floats are asked for, no dimensions unless configured, 32 texts a request', async (t) => {
    good();
    const embedder = await openEmbeddingEndpoint({ ...base, prefixes: { document: 'd: ', query: 'q: ' } });
    t.strictSame(embedder.layout, { kind: 'dense', dimensions: 3, type: 'vector' });
    server.asked.length = 0;
    const vectors = await embedder.embed(
      Array.from({ length: 70 }, (_, i) => 'x'.repeat(i)),
      'document',
    );
    t.strictSame(
      server.asked.map((a) => inputs(a).length),
      [32, 32, 6],
    );
    for (const { body, path, headers } of server.asked) {
      t.equal(path, '/v1/embeddings');
      t.equal(headers.authorization, undefined);
      t.match(body, { model: 'e1', encoding_format: 'float' });
      t.notOk('dimensions' in body);
    }
    t.equal(vectors.length, 70);
    t.ok(
      vectors.every((v) => Math.abs(v.reduce((s, x) => s + x * x, 0) - 1) < 1e-6),
      'unit norm',
    );
    t.ok(server.asked.every((a) => inputs(a).every((text) => text.startsWith('d: '))));
    await embedder.embed(['x'], 'query');
    t.strictSame(inputs(server.asked.at(-1) ?? { path: '', headers: {}, body: {} }), ['q: x']);
  });

  await t.test(
    'long texts are cut by us, between characters; an order of its own is put right',
    async (t) => {
      good();
      const embedder = await openEmbeddingEndpoint({ ...base, maxChars: 5, dimensions: 3 });
      server.answer = (asked, r) => {
        const data = inputs(asked).map((text, index) => ({ index, embedding: toy(text) }));
        json(r, { data: data.reverse() });
      };
      server.asked.length = 0;
      const [a, b] = await embedder.embed(['abcd😀e', 'zz'], 'document');
      t.strictSame(inputs(server.asked[0] ?? { path: '', headers: {}, body: {} }), ['abcd', 'zz']);
      t.equal(server.asked[0]?.body['dimensions'], 3);
      t.equal(cosine(a ?? new Float32Array(), Float32Array.from(toy('abcd'))), 1);
      t.equal(cosine(b ?? new Float32Array(), Float32Array.from(toy('zz'))), 1);
    },
  );

  const wrong: Readonly<Record<string, unknown>> = {
    'another width': embeddings([[1, 2]]),
    'too few': { data: [] },
    'too many': embeddings([
      [1, 2, 3],
      [1, 2, 3],
    ]),
    'an index twice or out of range': { data: [{ index: 1, embedding: [1, 2, 3] }] },
    base64: { data: [{ index: 0, embedding: 'AACAPwAAgD8AAIA/' }] },
    'null in a vector': embeddings([[1, Number.NaN, 3]]),
    zeros: embeddings([[0, 0, 0]]),
    infinities: { data: [{ index: 0, embedding: [1e308, 1e308, 1e308] }] },
    'no data': { object: 'list' },
  };
  for (const [name, answer] of Object.entries(wrong)) {
    await t.test(`${name}: refused`, async (t) => {
      good();
      const embedder = await openEmbeddingEndpoint(base);
      server.answer = (_, r) => json(r, answer);
      await t.rejects(embedder.embed(['x'], 'query'), { code: 'malformedAnswer' });
    });
  }

  await t.test('a server that is down at the start is told', async (t) => {
    server.answer = (_, r) => json(r, {}, 500);
    await t.rejects(openEmbeddingEndpoint(base), { code: 'endpoint', message: 'the endpoint answered 500' });
    await t.rejects(openEmbeddingEndpoint({ ...base, url: 'http://127.0.0.1:1/v1' }), { code: 'endpoint' });
    await t.rejects(openEmbeddingEndpoint({ ...base, keyEnv: 'OSL_TEST_NO_KEY' }), {
      message: /OSL_TEST_NO_KEY/,
    });
  });

  await t.test('the fingerprint is of what makes the vectors, not of the address', async (t) => {
    good();
    const print = async (more: object): Promise<string> =>
      (await openEmbeddingEndpoint({ ...base, ...more })).fingerprint;
    const plain = await print({});
    t.equal(await print({ url: server.url }), plain);
    const others = [{ model: 'e2' }, { maxChars: 9 }, { prefixes: { document: 'a', query: 'b' } }];
    for (const more of others) t.not(await print(more), plain);
  });

  await t.test(
    'its vectors fill a store of their own kind, half precision where wanted, with their signs beside it',
    async (t) => {
      good();
      const engine = await openEngine({ kind: 'pglite', dataDir: null });
      t.teardown(() => engine.close());
      await createShop(engine.system);
      for (const store of [{}, { type: 'halfvec' }] as const) {
        const embedder: Embedder = await openEmbeddingEndpoint({ ...base, store });
        await indexShop(engine.system, 'raw', { embedder });
        const rows = await storeRows(engine.system, 'raw');
        t.ok(rows.length > 8);
        for (const row of rows) {
          t.notOk('lex' in row || 'dense' in row);
          const stored = Float32Array.from(JSON.parse(`${row['embedding']}`) as number[]);
          t.ok(cosine(stored, Float32Array.from(toy(`${row['text']}`))) > 0.999);
        }
        t.same(
          await signs(engine.system),
          rows.map((row) => ({ id: row['chunk_id'], bits: '111' })),
        );
      }
      for (const type of ['vector', 'halfvec'] as const) {
        const embedder = await openEmbeddingEndpoint({ ...base, store: { type } });
        const options = { embedder, versions: ['raw'] };
        await indexFacet(engine.system, manifest, { ...facet, approximate: true }, options);
        const [index] = await engine.system.query(
          sql`select indexdef from pg_indexes where schemaname = 'osl_content' and indexdef like '%hnsw%'`,
        );
        t.match(index?.['indexdef'], `hnsw (embedding ${type}_ip_ops)`);
      }
    },
  );
});

/** The table beside the store, in the order of chunk ids. */
async function signs(system: SystemEngine): Promise<unknown> {
  const rows = await system.query(
    sql`select chunk_id, bits::text as bits from osl_content.article__raw__bits order by chunk_id`,
  );
  return rows.map((row) => ({ id: row['chunk_id'], bits: row['bits'] }));
}

test('models by name', async (t) => {
  t.equal(await openEmbedder('lexical-v1', { endpoint: null }), lexicalEmbedder);
  await t.rejects(openEmbedder('text-embedding-3-small', { endpoint: null }), { code: 'unknownModel' });
});

test('transformers.js where it is not installed says what to install', async (t) => {
  await t.rejects(openEmbedder('transformers:Xenova/all-MiniLM-L6-v2', { endpoint: null }), {
    code: 'notInstalled',
    hint: /npm install @huggingface\/transformers/,
  });
});

test('transformers.js, with the package stood in for', async (t) => {
  const calls: unknown[] = [];
  let broken = false;
  const extract = async (texts: readonly string[], options: unknown) => {
    calls.push([texts.length, options]);
    return { data: Float32Array.from(texts.flatMap(toy)), dims: broken ? [1, 1, 3] : [texts.length, 3] };
  };
  const pipeline = async (...given: unknown[]) => {
    calls.push(given);
    return extract;
  };
  const load = async () => ({ pipeline });
  const embedder = await openTransformers({ model: 'M' }, load);
  t.match(calls[0], ['feature-extraction', 'M', { dtype: 'q8' }]);
  t.equal(embedder.layout.dimensions, 3);
  calls.length = 0;
  const vectors = await embedder.embed(
    Array.from({ length: 20 }, (_, i) => 'x'.repeat(i)),
    'document',
  );
  t.strictSame(calls, [
    [16, { pooling: 'mean', normalize: true }],
    [4, { pooling: 'mean', normalize: true }],
  ]);
  t.equal(cosine(vectors[19] ?? new Float32Array(), Float32Array.from(toy('x'.repeat(19)))), 1);
  broken = true;
  await t.rejects(embedder.embed(['x'], 'query'), { code: 'malformedAnswer' });
  await t.rejects(
    openTransformers({ model: 'M' }, async () => ({})),
    { code: 'notInstalled' },
  );
});

/** A file in the format of the package, with words of every kind of sign, and numbers that one can reckon with. */
const WORDS = ['the', ']', '"', 'a:b', 'dog', 'puppy', 'bank', 'grüße'];
const numbers = (i: number): number[] =>
  Array.from({ length: 102 }, (_, d) => (d === 4 && i === 5 ? 0.9 : d === i ? 1 : 0.1));
const FILE = JSON.stringify({
  precision: 8,
  words: WORDS,
  vectors: Object.fromEntries(WORDS.map((word, i) => [word, numbers(i)])),
});

async function* pieces(of: number): AsyncGenerator<string> {
  for (let at = 0; at < FILE.length; at += of) yield FILE.slice(at, at + of);
}

t.test('a file is read in pieces of any length', async (t) => {
  for (const length of [1, 7, 64, 1_000_000]) {
    const words = await readWords(pieces(length));
    t.same(
      [...words.keys()],
      WORDS.filter((word) => word !== 'a":[b'),
      `${length}`,
    );
    t.same(words.get('dog'), Float32Array.from(numbers(4).slice(0, 100)));
  }
});

t.test('texts of kindred words are near, and one without any has no meaning', async (t) => {
  const meaning = meaningBy(await readWords(pieces(64)));
  const near = (a: string, b: string): number => cosine(meaning(a), meaning(b));
  t.ok(near('The dog', 'a PUPPY') > near('The dog', 'the bank') + 0.2, `${near('The dog', 'a PUPPY')}`);
  t.equal(
    Math.round(near('grüße', 'GRÜSSE grüße') * 1e6) / 1e6,
    1,
    'a word that is not known counts nothing',
  );
  t.ok(meaning('unknown words').every((x) => x === 0));
});

t.test('a package that is not installed is named, with what to do', (t) => {
  t.throws(() => packagePath('no-such-package-of-vectors', 'package.json'), {
    code: 'notInstalled',
    message: 'no-such-package-of-vectors is not installed',
    hint: 'install it with `npm install no-such-package-of-vectors`, or use another embedding model',
  });
  t.end();
});
