import { readFileSync } from 'node:fs';
import { type Access, type Relation, type RelationAccess, ready } from 'osl-compiler';
import { test } from 'tap';
import { governedView } from '../../../src/model/graph/index.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { contentsOf } from '../../../src/surfaces/catalog/contents.js';
import { modelOf } from '../../../src/surfaces/catalog/model.js';

await ready();

const MANIFEST = parseManifest(readFileSync('examples/reference/manifest.yaml', 'utf8'), 'manifest.yaml');

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

const ALL = MANIFEST.catalog.relations.get('order')?.columns.map((c) => c.name) ?? [];

/** The computed columns of orders that the schema shows, and those of the catalog, which have to be the same. */
async function shown(of: Access): Promise<readonly string[]> {
  const names = new Set(relation().computed?.map((c) => c.name));
  const view = governedView(MANIFEST, of).entities.find((e) => e.name === 'order');
  const { tables } = contentsOf((await modelOf(MANIFEST, of)).parts);
  const table = tables.find((t) => t.name === 'order');
  const seen = (view?.columns ?? []).filter((c) => names.has(c.name)).map((c) => `${c.name} ${c.type}`);
  const listed = (table?.columns ?? []).filter((c) => names.has(c.name)).map((c) => `${c.name} ${c.type}`);
  return seen.join() === listed.join() ? seen : [`the schema has ${seen}, the catalog ${listed}`];
}

function relation(): Relation {
  const found = MANIFEST.catalog.relations.get('order');
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
