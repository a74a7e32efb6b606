import { readFileSync } from 'node:fs';
import { ready } from 'osl-compiler';
import t from 'tap';
import { compileSnapshot } from '../../policy/index.js';
import { accessBetween, changesBetween } from '../../src/model/authoring/changes.js';
import { type Manifest, parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';

/** Changes of the reference manifest, which has every key once: a text of it, and what takes its place. */
const CHANGES: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  nothing: [],
  'a metric of its own': [
    [
      '  orders: { entity: order',
      '  most: { entity: order, expression: max(amount) }\n  orders: { entity: order',
    ],
  ],
  'a metric that others are made of': [
    [
      'refunds: { entity: refund, expression: sum(amount)',
      'refunds: { entity: refund, expression: max(amount)',
    ],
  ],
  'a metric that goes': [['  revenue_of_europe: {', '  revenue_of_asia: {']],
  'the label of a column that a computed column of another entity reads': [
    ['region: { type: text, nullable: false }', 'region: { type: text, nullable: false, pii: true }'],
  ],
  'a column that goes': [['      weight: { column: weight, description: How sure one is of it. }\n', '']],
  'a description alone': [['description: Who buys.', 'description: Who has bought.']],
  'another table': [
    ['sales.refunds:', 'sales.refunds_now:'],
    ['source: warehouse.sales.refunds', 'source: warehouse.sales.refunds_now'],
  ],
  'a computed column': [["status = 'open'", "status = 'paid'"]],
  'the label of a computed column': [
    ['amount > 10000, sensitivity: secret', 'amount > 10000, sensitivity: pii'],
  ],
  'the label of a column of a bridge': [['weight: { type: float8 }', 'weight: { type: float8, pii: true }']],
  'the label of a text': [['body: { type: text }', 'body: { type: text, pii: true }']],
  'the label of metadata': [
    ['written_on: { type: date }', 'written_on: { type: date, sensitivity: secret }'],
  ],
  'a relationship': [
    ['    from: refund.order_id\n', '    description: For what.\n    from: refund.order_id\n'],
  ],
  'several at once': [
    ['region: { type: text, nullable: false }', 'region: { type: text, nullable: false, pii: true }'],
    ['body: { type: text }', 'body: { type: text, pii: true }'],
    ['  revenue_of_europe: {', '  revenue_of_asia: {'],
  ],
};

const text = readFileSync('examples/reference/manifest.yaml', 'utf8');
const { document } = parsePolicyDocument(
  readFileSync('examples/reference/policy.yaml', 'utf8'),
  'policy.yaml',
);
// Its rules of exchange name roles of other examples.
const policy = { ...document, exchange: [] };

const compiled = (manifest: Manifest) => ({
  manifest,
  snapshot: compileSnapshot(policy, manifest.catalog, manifest.tenant),
});

t.test('what changes for a role is found among what depends on the changed objects', async (t) => {
  await ready();
  const before = compiled(parseManifest(text, 'manifest.yaml'));
  let found = 0;
  for (const [name, edits] of Object.entries(CHANGES)) {
    let changed = text;
    for (const [from, to] of edits) {
      t.ok(changed.includes(from), `${name}: ${from}`);
      changed = changed.replace(from, to);
    }
    const after = compiled(parseManifest(changed, 'manifest.yaml'));
    for (const [one, other] of [
      [before, after],
      [after, before],
    ] as const) {
      const { touched } = changesBetween(one.manifest, other.manifest);
      const whole = accessBetween(one, other);
      t.strictSame(accessBetween(one, other, touched), whole, name);
      found += whole.length;
    }
  }
  t.ok(found > 10, `${found} roles that are affected`);
});

t.test('a change of how answers are kept, or of row security, is shown', async (t) => {
  await ready();
  const before = parseManifest(text, 'manifest.yaml');
  for (const [from, to, change] of [
    ['cache: { max_age: 300,', 'cache: { max_age: 600,', { kind: 'entity', name: 'order', what: ['cache'] }],
    [
      'row_security: false',
      'row_security: true',
      { kind: 'connector', name: 'warehouse', what: ['row_security'] },
    ],
  ] as const) {
    const after = parseManifest(
      text.replace(/^rollups:\n(?: .*\n)*/m, '').replace(from, to),
      'manifest.yaml',
    );
    t.match(changesBetween(before, after).changes, [{ change: 'changed', ...change }]);
  }
});
