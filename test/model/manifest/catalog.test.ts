import { test } from 'tap';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { processorMs } from '../../support/processor.js';
import { edited, MANIFEST } from './base.js';

const manifest = parseManifest(MANIFEST, 'm.yaml');

test('a relation has the declared columns in their order, with what the connector says of them', async (t) => {
  t.strictSame(manifest.catalog.relations.get('customer'), {
    kind: 'entity',
    name: 'customer',
    description: null,
    connector: 'db',
    schema: 'sales',
    table: 'customers',
    columns: [
      {
        name: 'id',
        physical: 'id',
        type: 'int4',
        description: null,
        nullable: false,
        sensitivity: null,
        keyDomain: 'customer.id',
      },
      {
        name: 'tax',
        physical: 'tax_no',
        type: 'text',
        form: { sql: 'varchar', oid: 1043, length: -1, modifier: -1 },
        description: 'Tax number',
        nullable: true,
        sensitivity: 'secret',
        keyDomain: null,
      },
    ],
    primaryKey: ['id'],
    sealedKeys: ['id'],
  });
});

test('linked columns share the key domain of what they lead to; others that join have their own', async (t) => {
  const domains = [...manifest.catalog.relations.values()].flatMap((r) =>
    r.columns.filter((c) => c.keyDomain !== null).map((c) => `${r.name}.${c.name} -> ${c.keyDomain}`),
  );
  t.strictSame(domains, [
    'order.id -> order.id',
    'order.customer_id -> customer.id',
    'customer.id -> customer.id',
    'tag.order_id -> order.id',
    'tag.customer_id -> customer.id',
    'notes.id -> order.id',
  ]);
  t.equal(manifest.facets.get('notes')?.entityKey.keyDomain, 'order.id');
});

test('a bridge has its sides, their key, and both as sealed keys', async (t) => {
  t.match(manifest.catalog.relations.get('tag'), {
    kind: 'bridge',
    primaryKey: ['order_id', 'customer_id'],
    sealedKeys: ['order_id', 'customer_id'],
  });
  t.strictSame(manifest.bridges.get('tag'), {
    name: 'tag',
    left: { entity: 'order', columns: ['order_id'], keys: ['id'] },
    right: { entity: 'customer', columns: ['customer_id'], keys: ['id'] },
  });
});

test('relationships, metrics, facets and words are compiled', async (t) => {
  t.match(manifest.relationships.get('order_customer'), {
    from: { entity: 'order', columns: ['customer_id'] },
    to: { entity: 'customer', columns: ['id'] },
  });
  t.strictSame(manifest.catalog.metrics.get('revenue'), {
    name: 'revenue',
    description: null,
    entity: 'order',
    type: 'simple',
    expression: 'sum(amount)',
    filter: 'amount > 0',
  });
  t.match(manifest.facets.get('notes'), {
    table: 'orders',
    maxTopK: 50,
    embeddingModel: 'lexical-v1',
    chunking: { maxChars: 1200, overlapChars: 150, by: 'structure' },
    approximate: false,
  });
  t.strictSame(
    [...(manifest.facets.get('notes')?.versions.values() ?? [])],
    [
      { name: 'raw', redact: [], detectors: [], phoneCountries: [] },
      { name: 'masked', redact: ['pii'], detectors: ['email'], phoneCountries: [] },
    ],
  );
  t.strictSame(manifest.lexicon.get('turnover'), {
    term: 'turnover',
    refersTo: 'revenue',
    kind: 'metric',
    synonyms: ['sales'],
  });
  t.equal(manifest.connectors.get('db')?.tables.get('sales.orders')?.columns.get('note')?.sensitivity, 'pii');
});

test('the version is that of the content', async (t) => {
  const version = (text: string) => parseManifest(text, 'm.yaml').version;
  t.match(manifest.version, /^[0-9a-f]{32}$/);
  t.equal(manifest.catalog.version, manifest.version);
  t.equal(version(`# a comment\n${MANIFEST}`), manifest.version);
  t.not(
    version(edited(MANIFEST, 'columns: [id, customer_id, amount]', 'columns: [amount, id, customer_id]')),
    manifest.version,
    'the order of * counts',
  );
});

test('nothing of it can be changed', async (t) => {
  const { relations } = manifest.catalog;
  t.throws(() => relations instanceof Map && relations.set('x', null), TypeError);
  t.throws(() => relations instanceof Map && relations.clear(), TypeError);
  t.throws(() => relations instanceof Map && relations.delete('order'), TypeError);
  for (const r of relations.values()) {
    t.ok(
      Object.isFrozen(r) && Object.isFrozen(r.columns) && r.columns.every((c) => Object.isFrozen(c)),
      r.name,
    );
  }
});

test('ten thousand entities load in seconds', async (t) => {
  const tables = Array.from(
    { length: 10_000 },
    (_, i) => `      s.t${i}: { columns: { id: { type: int8 }, name: { type: text } } }`,
  );
  const entities = Array.from(
    { length: 10_000 },
    (_, i) => `  e${i}: { source: db.s.t${i}, primary_key: [id], columns: [id, name] }`,
  );
  const text = `version: 1\nconnectors:\n  db:\n    kind: pglite\n    tables:\n${tables.join('\n')}\nentities:\n${entities.join('\n')}\n`;
  const start = processorMs();
  t.equal(parseManifest(text, 'm').catalog.relations.size, 10_000);
  t.ok(processorMs() - start < 20_000);
});

test('what per_hop of a walk may be at most', async (t) => {
  t.equal(manifest.catalog.maxPerHop, undefined);
  const raised = parseManifest(`${MANIFEST}\ntraverse: { max_per_hop: 250000 }\n`, 'm.yaml');
  t.equal(raised.catalog.maxPerHop, 250_000);
  t.throws(() => parseManifest(`${MANIFEST}\ntraverse: { max_per_hop: 2000000 }\n`, 'm.yaml'));
});
