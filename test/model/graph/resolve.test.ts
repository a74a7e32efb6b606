import { readFileSync } from 'node:fs';
import { type Access, type Relation, type RelationAccess, ready } from 'osl-compiler';
import { test } from 'tap';
import { fullView, governedView, resolve } from '../../../src/model/graph/index.js';
import { MAX_MATCHES } from '../../../src/model/graph/resolve.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { parseContents } from '../../../src/surfaces/catalog/engine-contract.js';
import { modelOf } from '../../../src/surfaces/catalog/model.js';
import { accessOf, MANIFEST, POLICY } from './world.js';

const manifest = parseManifest(JSON.stringify(MANIFEST), 'manifest.yaml');
const all = fullView(manifest);
const reader = governedView(manifest, accessOf(manifest, POLICY, 'user:reader'));

/** Term, then `fqn via` of the matches that must come first, in this order. */
const FOUND: readonly (readonly [string, ...string[]])[] = [
  ['book', 'osl.entities.book name', 'osl.metrics.books name'],
  ['BOOK', 'osl.entities.book name'],
  ['  Book ', 'osl.entities.book name'],
  ['books', 'osl.metrics.books name', 'osl.entities.book name'],
  ['copy', 'osl.entities.book lexicon'],
  ['volumes', 'osl.entities.book lexicon'],
  ['expense', 'osl.entities.book.price lexicon'],
  ['author id', 'osl.entities.book.author_id name', 'osl.entities.loan.author_id name'],
  ['authorId', 'osl.entities.book.author_id name'],
  ['vendr', 'osl.entities.vendor name'],
  ['what readers say', 'osl.facets.review description'],
  ['mood', 'osl.entities.book.mood name'],
  ['loan', 'osl.entities.loan name'],
];

for (const [term, ...expected] of FOUND) {
  test(`\`${term}\``, async (t) => {
    const { matches } = resolve(term, all);
    t.strictSame(
      matches.slice(0, expected.length).map((m) => `${m.fqn} ${m.via}`),
      expected,
    );
    for (const [i, { score }] of matches.entries()) {
      t.ok(score > 0 && score <= (matches[i - 1]?.score ?? 1), 'best first');
    }
  });
}

test('what means nothing here has no matches', async (t) => {
  for (const term of ['zzz', '%', "'; drop table", '😀', 'the']) t.strictSame(resolve(term, all).matches, []);
  t.strictSame(resolve('zzz', all), { term: 'zzz', matches: [] });
});

test('a caller finds what it may see, with the scores that everybody gets', async (t) => {
  for (const term of ['vendor', 'supplier', 'price', 'cost', 'expense', 'spent', 'memo']) {
    t.ok(resolve(term, all).matches.length > 0, term);
    t.strictSame(resolve(term, reader).matches, [], `${term} is hidden`);
  }
  for (const [term] of FOUND) {
    const seen = new Set(resolve(term, reader).matches.map((m) => m.fqn));
    const same = resolve(term, all).matches.filter((m) => seen.has(m.fqn));
    t.strictSame(resolve(term, reader).matches, same, term);
  }
});

test('the list is bounded', async (t) => {
  const columns = Array.from({ length: 60 }, (_, i) => `name_${i}`);
  const wide = structuredClone(MANIFEST) as unknown as Record<string, Record<string, unknown>>; // to be widened
  wide['connectors'] = {
    db: {
      kind: 'pglite',
      tables: { 'lib.wide': { columns: Object.fromEntries(columns.map((c) => [c, { type: 'text' }])) } },
    },
  };
  wide['entities'] = { wide: { source: 'db.lib.wide', primary_key: ['name_0'], columns } };
  for (const part of ['relationships', 'bridges', 'facets', 'metrics', 'lexicon']) delete wide[part];
  const view = fullView(parseManifest(JSON.stringify(wide), 'manifest.yaml'));
  t.equal(resolve('name', view).matches.length, MAX_MATCHES);
});

await ready();

const REFERENCE = parseManifest(readFileSync('examples/reference/manifest.yaml', 'utf8'), 'manifest.yaml');

/** Who sees these columns of orders and of customers, all rows of them. */
function access(order: readonly string[] | null, customer: readonly string[] | null, denied = ''): Access {
  const granted = (columns: readonly string[]): RelationAccess => ({
    grants: [{ id: 'g', columns: new Set(columns), unmask: new Set(), filter: null }],
    masks: new Map(),
    denied: new Set([denied]),
  });
  const relations = new Map<string, RelationAccess>();
  if (order !== null) relations.set('order', granted(order));
  if (customer !== null) relations.set('customer', granted(customer));
  return { signature: '', policyVersion: '', chainLength: 1, relations };
}

const ALL = REFERENCE.catalog.relations.get('order')?.columns.map((c) => c.name) ?? [];

/** The computed columns of orders that the schema shows, and those of the catalog, which have to be the same. */
async function shown(of: Access): Promise<readonly string[]> {
  const names = new Set(relation().computed?.map((c) => c.name));
  const view = governedView(REFERENCE, of).entities.find((e) => e.name === 'order');
  const { tables } = parseContents((await modelOf(REFERENCE, of)).parts);
  const table = tables.find((t) => t.name === 'order');
  const seen = (view?.columns ?? []).filter((c) => names.has(c.name)).map((c) => `${c.name} ${c.type}`);
  const listed = (table?.columns ?? []).filter((c) => names.has(c.name)).map((c) => `${c.name} ${c.type}`);
  return seen.join() === listed.join() ? seen : [`the schema has ${seen}, the catalog ${listed}`];
}

function relation(): Relation {
  const found = REFERENCE.catalog.relations.get('order');
  if (found === undefined) throw new Error('the example has orders');
  return found;
}

test('a computed column is listed for who sees all that it reads, and for nobody else', async (t) => {
  const whole = ['is_open bool', 'net numeric', 'region text'];
  t.same(await shown(access(ALL, ['id', 'region'])), whole);
  t.same(await shown(access(ALL, ['id'])), whole.slice(0, 2), 'not the column of the parent');
  t.same(await shown(access(ALL, null)), whole.slice(0, 2), 'not the parent');
  t.same(
    await shown(access(['id', 'status', 'customer_id'], ['region'])),
    whole.slice(0, 1),
    'not the key of the parent',
  );
  t.same(
    await shown(access(['id', 'status'], ['id', 'region'])),
    whole.slice(0, 1),
    'not the key that refers to it',
  );
  t.same(
    await shown(access(ALL, ['id', 'region'], 'amount')),
    ['is_open bool', 'region text'],
    'what is denied',
  );
  t.same(await shown(access(['id'], ['id', 'region'])), []);
  t.end();
});
