import { test } from 'tap';
import { type Loose, MANIFEST, POLICY, readable, readableInFull } from './world.js';

/** Changes of things that `user:reader` may not see. Each is seen by the admin or by `user:clerk`. */
const HIDDEN: Readonly<Record<string, (manifest: Loose, policy: Loose) => void>> = {
  'a hidden entity goes': (m, p) => {
    withoutGrant(p, 'vendor');
    delete m['entities']?.['vendor'];
    delete m['relationships']?.['bought'];
    delete m['lexicon']?.['supplier'];
  },
  'a hidden entity comes first': (m) => {
    const { vendor } = m['entities'] ?? {};
    m['entities'] = { archive: vendor ?? {}, ...m['entities'] };
  },
  'a hidden entity is described': (m) =>
    Object.assign(m['entities']?.['vendor'] ?? {}, { description: 'Secret.' }),
  'a hidden column goes': (m) => {
    delete membersOf(m['entities']?.['book']?.['columns'])['price'];
    delete m['metrics']?.['spent'];
    delete m['lexicon']?.['cost'];
  },
  'a hidden column is described': (m) =>
    Object.assign(membersOf(m['entities']?.['book']?.['columns']), { price: { description: 'In euro.' } }),
  'a hidden key is not a key': (m) =>
    Object.assign(m['entities']?.['book'] ?? {}, { entity_key_columns: ['id', 'author_id'] }) &&
    delete m['relationships']?.['bought'],
  'a hidden leg goes': (m, p) => {
    withoutGrant(p, 'memo');
    delete m['facets']?.['memo'];
    delete membersOf(m['entities']?.['book']?.['derived'])['theme'];
    Object.assign(m['entities']?.['book'] ?? {}, { legs: ['review'] });
  },
  'what is derived from hidden text is derived otherwise': (m) =>
    Object.assign(membersOf(membersOf(m['entities']?.['book']?.['derived'])['theme']), {
      description: 'Of it.',
    }),
  'a hidden facet comes first': (m) => {
    const { memo } = m['facets'] ?? {};
    m['facets'] = { archive: memo ?? {}, ...m['facets'] };
  },
  'a hidden metric comes': (m) =>
    Object.assign(m['metrics'] ?? {}, { dearest: { entity: 'book', expression: 'max(price)' } }),
  'a hidden metric means something else': (m) =>
    Object.assign(m['metrics']?.['spent'] ?? {}, { expression: 'avg(price)' }),
  'a visible metric is computed otherwise': (m) =>
    Object.assign(m['metrics']?.['books'] ?? {}, { expression: 'count(id)' }),
  'a hidden bridge links what is visible': (m) => {
    const { loan } = m['bridges'] ?? {};
    m['bridges'] = { ban: loan ?? {}, ...m['bridges'] };
  },
  'a hidden column of a bridge goes': (m) =>
    Object.assign(m['bridges']?.['loan'] ?? {}, { columns: ['book_id', 'author_id'] }),
  'all that is hidden is deprecated': (m) => {
    const { entities, relationships, facets, metrics } = m;
    const hidden = [entities?.['vendor'], relationships?.['bought'], facets?.['memo'], metrics?.['spent']];
    for (const member of hidden) Object.assign(member ?? {}, { deprecated: 'Ask nobody.' });
  },
  'a word for what is hidden': (m) => {
    m['lexicon'] = { shop: { refers_to: 'vendor', synonyms: ['book'] }, ...m['lexicon'] };
  },
  'the label of a hidden column': (m, p) => {
    const tables = m['connectors']?.['db']?.['tables'] as Loose;
    Object.assign(tables['lib.book']?.['columns']?.['price'] ?? {}, { sensitivity: 'person' });
    p['masks'] = { ...p['masks'] };
  },
  'another role': (_m, p) => {
    p['roles'] = { other: { grants: [{ on: 'vendor', columns: '*' }] }, ...p['roles'] };
    p['subjects'] = { ...p['subjects'], 'user:clerk': { ceiling: ['other'] } };
  },
};

function withoutGrant(policy: Loose, on: string): void {
  const clerk = membersOf(policy['roles']?.['clerk']);
  clerk['grants'] = (clerk['grants'] as { on: string }[]).filter((g) => g.on !== on); // as written above
}

function membersOf(value: unknown): Record<string, unknown> {
  return value as Record<string, unknown>; // a part of the documents above
}

test('the world has something to hide and something to show', async (t) => {
  const { schema, map } = await readable(MANIFEST, POLICY, 'user:reader');
  const { schema: all } = await readableInFull(MANIFEST);
  for (const name of ['book', 'author', 'loan', 'review', 'books', 'volume', 'written', 'mood'])
    t.ok(schema.includes(name), name);
  for (const name of ['vendor', 'price', 'spent', 'memo', 'bought', 'supplier', 'expense', 'due', 'theme']) {
    t.notOk(schema.includes(name) || map.includes(name), `${name} is hidden`);
    t.ok(all.includes(name), `${name} is there`);
  }
});

for (const [name, change] of Object.entries(HIDDEN)) {
  test(`${name}: the reader cannot tell`, async (t) => {
    const manifest = structuredClone(MANIFEST);
    const policy = structuredClone(POLICY);
    change(manifest as unknown as Loose, policy as unknown as Loose); // a looser type of the same objects
    t.strictSame(
      await readable(manifest, policy, 'user:reader'),
      await readable(MANIFEST, POLICY, 'user:reader'),
    );
    const seen = [await readableInFull(manifest), await readable(manifest, policy, 'user:clerk')];
    const before = [await readableInFull(MANIFEST), await readable(MANIFEST, POLICY, 'user:clerk')];
    t.notSame(seen, before, 'somebody can');
  });
}

test('what the reader sees changes its version and its tag', async (t) => {
  const manifest = structuredClone(MANIFEST);
  manifest.entities.book.description = 'A copy.';
  const [before, after] = await Promise.all(
    [MANIFEST, manifest].map(async (m) => JSON.parse((await readable(m, POLICY, 'user:reader')).schema)),
  );
  t.not(before.version, after.version);
  t.not(before.etag, after.etag);
});

test('the same manifest gives the same bytes', async (t) => {
  for (let n = 0; n < 3; n++) {
    t.strictSame(
      await readable(MANIFEST, POLICY, 'user:clerk'),
      await readable(MANIFEST, POLICY, 'user:clerk'),
    );
    t.strictSame(await readableInFull(MANIFEST), await readableInFull(MANIFEST));
  }
});
