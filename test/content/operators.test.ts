import { type EncoderName, OPERATORS, operatorNamed } from 'osl-compiler';
import { test } from 'tap';
import {
  checkDecoder,
  compareIds,
  lexicalEmbedder,
  type OperatorPassage,
  runEncoder,
} from '../../src/content/index.js';
import { cluster } from '../../src/content/operators/cluster.js';
import { classify, dedup, outlier, rank, similarity, tag } from '../../src/content/operators/similarity.js';
import { type ArgumentValues, checkArguments } from '../../src/model/facets/arguments.js';
import { fc } from '../support/fast-check.js';
import { cosine } from './reference.js';

const at = (chunkId: string, ...vector: number[]): OperatorPassage => ({
  chunkId,
  vector: Float32Array.from(vector),
});
const vector = (...values: number[]): Float32Array => Float32Array.from(values);

test('SIMILARITY is the cosine, in [-1, 1], to six decimals', async (t) => {
  const passages = [at('a', 1, 0), at('b', 3, 4), at('c', -2, 0), at('d', 0, 0)];
  t.strictSame(similarity(passages, vector(2, 0)), [1, 0.6, -1, 0]);
  t.strictSame(similarity([at('a', 1, 2)], vector(2, 1)), [0.8]);
  t.strictSame(similarity([at('a', 1, 2)], vector(1, 0)), [0.447214]);
});

test('CLASSIFY takes the nearest label, the first of equals, and none below the floor', async (t) => {
  const labels = [
    { label: 'x', prototypes: [vector(1, 0)] },
    { label: 'also x', prototypes: [vector(2, 0)] },
    { label: 'y', prototypes: [vector(0, 1), vector(0.2, 1)] },
  ];
  const passages = [at('a', 1, 0.1), at('b', 0, 1), at('c', -1, -1)];
  t.strictSame(classify(passages, labels, null), ['x', 'y', 'x']);
  t.strictSame(classify(passages, labels, 0.5), ['x', 'y', null]);
  t.strictSame(tag(passages, labels, 0.9), [['x', 'also x'], ['y'], []]);
  t.strictSame(tag([at('a', 1, 1)], labels, 0.5), [['y', 'x', 'also x']], 'by score, then in label order');
});

test('RANK gives places from 1, ties by chunk id, and spreads with lambda', async (t) => {
  const passages = [at('c', 1, 0), at('b', 1, 0), at('a', 0, 1), at('d', 0.9, 0.5)];
  t.strictSame(rank(passages, vector(1, 0), 1), [2, 1, 4, 3]);
  t.strictSame(rank(passages, vector(1, 0.1), 0.3), [4, 1, 2, 3], 'a copy of the first comes last');
  t.strictSame(rank([], vector(1, 0), 0.5), []);
});

test('DEDUP names the lowest chunk id of a chain', async (t) => {
  const passages = [at('c', 1, 0.1), at('a', 1, 0), at('z', 0, 1), at('b', 1, 0.2)];
  t.strictSame(dedup(passages, 0.99), [
    { group: 1, is_duplicate: true, of: 'a' },
    { group: 1, is_duplicate: false, of: null },
    { group: 2, is_duplicate: false, of: null },
    { group: 1, is_duplicate: true, of: 'a' },
  ]);
});

test('OUTLIER is the mean distance to the k nearest, null where there are too few', async (t) => {
  const passages = [at('a', 1, 0), at('b', 1, 0), at('c', 1, 0), at('d', 0, 1)];
  t.strictSame(outlier(passages, 2), [0, 0, 0, 1]);
  t.strictSame(outlier(passages, 4), [null, null, null, null]);
  t.strictSame(outlier([], 5), []);
});

test('CLUSTER numbers groups by their lowest chunk id', async (t) => {
  const passages = [at('e', 0, 1), at('a', 1, 0), at('b', 0.1, 1), at('c', 1, 0.1), at('d', -1, 0)];
  t.strictSame(cluster(passages, 3), [2, 1, 2, 1, 3]);
  t.strictSame(cluster(passages, 1), [1, 1, 1, 1, 1]);
  t.strictSame(
    cluster([at('a', 1, 0), at('b', 1, 0)], 2),
    [1, 1],
    'fewer where there are fewer different ones',
  );
  t.equal(new Set(cluster(passages, 99)).size, 5);
});

const CALLS: readonly (readonly [EncoderName, ArgumentValues])[] = [
  ['SIMILARITY', {}],
  ['SIMILARITY', { reference: 'other words' }],
  ['CLASSIFY', { labels: ['card_arrival', 'weather'] }],
  ['TAG', { labels: [{ label: 'a', description: 'cards', examples: ['lost card'] }, 'b'], threshold: 0.05 }],
  ['RANK', {}],
  ['RANK', { query: 'card', lambda: 0.5 }],
  ['DEDUP', { threshold: 0.5 }],
  ['OUTLIER', { k: 2 }],
  ['CLUSTER', { k: 3 }],
];
const context = { embedder: lexicalEmbedder, query: 'where is my card' };

test('property: results depend on the set of passages only, not on their order', async (t) => {
  const words = fc.array(fc.constantFrom('card', 'lost', 'money', 'rain', 'sun', 'cards', 'late'), {
    maxLength: 6,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(words, { maxLength: 12 }),
      fc.constantFrom(...CALLS),
      fc.infiniteStream(fc.nat()),
      async (texts, [name, args], random) => {
        const vectors = await lexicalEmbedder.embed(
          texts.map((w) => w.join(' ')),
          'document',
        );
        const passages = vectors.map((v, i): OperatorPassage => ({ chunkId: `d#${i}`, vector: v }));
        const shuffled = passages
          .map((p) => ({ p, key: random.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ p }) => p);
        const byId = async (list: readonly OperatorPassage[]) => {
          const values = await runEncoder(name, list, args, context);
          return list.map((p, i) => [p.chunkId, values[i]]).sort((a, b) => compareIds(`${a[0]}`, `${b[0]}`));
        };
        const [one, two] = [await byId(passages), await byId(shuffled)];
        return (
          JSON.stringify(one) === JSON.stringify(two) &&
          one.length === texts.length &&
          one.every(([, v]) => v !== undefined)
        );
      },
    ),
    { numRuns: 500 },
  );
  t.pass();
});

test('bad arguments are told before anything runs', async (t) => {
  const refused = (name: keyof typeof OPERATORS, values: ArgumentValues, message: RegExp): void => {
    t.throws(() => checkArguments(name, values), { name: 'InvalidArgument', message });
  };
  refused('CLASSIFY', {}, /needs `labels`/);
  refused('CLASSIFY', { labels: [] }, /list of labels/);
  refused('CLASSIFY', { labels: ['a', 'b', 'a'] }, /label `a` twice/);
  refused('CLASSIFY', { labels: ['a', ' '] }, /not empty/);
  refused('CLASSIFY', { labels: [{ label: 'a', examples: 'x' }] }, /list of texts/);
  refused('CLASSIFY', { labels: [{ label: 'a', colour: 1 }] }, /knows no `colour`/);
  refused('CLASSIFY', { labels: ['a'], min_score: 2 }, /from -1 to 1/);
  refused('CLUSTER', { k: 0 }, /from 1 to 1000/);
  refused('CLUSTER', { k: 1.5 }, /whole number/);
  refused('OUTLIER', { k: '5' }, /needs a number/);
  refused('RANK', { lambda: Number.NaN }, /needs a number/);
  refused('SIMILARITY', { reference: '' }, /needs a text/);
  refused('DEDUP', { treshold: 1 }, /no argument `treshold`/);
  refused('SCORE', { rubric: 'x', min: 1, max: 1 }, /below its `max`/);
  refused('COMPLETE', { prompt: 'no place' }, /\{text\}/);
  t.throws(() => checkDecoder('EXTRACT', { schema: { type: 'string' } }), { name: 'InvalidArgument' });
  for (const bad of [
    { pattern: '(a+)+$' },
    { $ref: 'http://x' },
    { format: 'regex' },
    { type: 'nonsense' },
  ]) {
    const schema = { type: 'object', properties: { a: bad } };
    t.throws(() => checkDecoder('EXTRACT', { schema }), { name: 'InvalidArgument' }, JSON.stringify(bad));
  }
  const extract = (length: number) => () =>
    checkDecoder('EXTRACT', {
      schema: {
        type: 'object',
        properties: { a: { anyOf: Array.from({ length }, (_, i) => ({ const: i })) } },
      },
    });
  t.doesNotThrow(extract(199));
  t.throws(extract(200), { message: /takes a schema of 200 parts at most/ }, 'its compilation is quadratic');
  t.strictSame([...checkArguments('OUTLIER', {})], [['k', 5]]);
});

test('there are twelve operators, and names compare without case', async (t) => {
  const names = Object.entries(OPERATORS);
  t.equal(names.filter(([, o]) => o.class === 'encoder').length, 7);
  t.equal(names.filter(([, o]) => o.class === 'decoder').length, 5);
  t.equal(operatorNamed('similarity'), 'SIMILARITY');
  t.equal(operatorNamed('toString'), null);
  t.equal(operatorNamed('constructor'), null);
});

test('ids compare as the "C" collation does', async (t) => {
  const ids = ['a', 'a#1', 'ab', '\ue000', '😀', 'Z', ''];
  const bytes = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  t.strictSame([...ids].sort(compareIds), bytes);
});

/** Definition of each operator, computed one cosine at a time. */
const BY_DEFINITION = {
  outlier: (list: readonly OperatorPassage[], k: number) =>
    list.map((one) => {
      const others = list.filter((p) => p !== one).map((p) => 1 - cosine(one.vector, p.vector));
      const nearest = others.sort((a, b) => a - b).slice(0, k);
      return Math.round((nearest.reduce((sum, d) => sum + d, 0) / k) * 1e6) / 1e6 + 0;
    }),
  similarity: (list: readonly OperatorPassage[], to: Float32Array) => list.map((p) => cosine(p.vector, to)),
  groups: (list: readonly OperatorPassage[], threshold: number) => {
    const groups = list.map((_, i) => i);
    for (const [i, a] of list.entries())
      for (const [j, b] of list.entries()) {
        const [into, from] = [groups[i] ?? i, groups[j] ?? j];
        if (j <= i || cosine(a.vector, b.vector) < threshold) continue;
        for (const [at, g] of [...groups.entries()]) if (g === from) groups[at] = into;
      }
    return groups.map((g) => groups.indexOf(g));
  },
};

test('vectors side by side give the bits of a cosine at a time, in every number and width', async (t) => {
  const component = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.float({ noNaN: true, min: -1, max: 1 }));
  const lists = fc
    .integer({ min: 1, max: 70 })
    .chain((width) =>
      fc.array(fc.array(component, { minLength: width, maxLength: width }), { minLength: 2, maxLength: 14 }),
    );
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 4 }), (rows, k) => {
      const list = rows.map((row, i) => at(`c${String(i).padStart(2, '0')}`, ...row));
      const [first] = list;
      if (first === undefined) return;
      t.strictSame(similarity(list, first.vector), BY_DEFINITION.similarity(list, first.vector));
      if (list.length > k) t.strictSame(outlier(list, k), BY_DEFINITION.outlier(list, k));
      const named = dedup(list, 0.7).map(({ of }, i) => (of === null ? i : Number(of.slice(1))));
      t.strictSame(named, BY_DEFINITION.groups(list, 0.7));
    }),
    { numRuns: 200 },
  );
});

test('CLUSTER has the groups that it had when each distance was worked out by itself', async (t) => {
  const list = Array.from({ length: 23 }, (_, i) =>
    at(
      `c${String(i).padStart(2, '0')}`,
      ...Array.from({ length: 70 }, (_, d) => ((i * 37 + d * 11 + ((i * d) % 7)) % 9) - 4),
    ),
  );
  t.strictSame(cluster(list, 4), [1, 2, 2, 3, 3, 3, 1, 3, 4, 2, 4, 2, 4, 3, 4, 1, 1, 1, 4, 2, 4, 2, 3]);
  t.strictSame(cluster(list, 9), [1, 2, 3, 4, 5, 5, 1, 5, 6, 2, 2, 7, 4, 6, 4, 1, 1, 2, 2, 7, 8, 2, 9]);
});
