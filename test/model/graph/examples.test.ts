import { ALL_FEATURES, compile } from 'osl-compiler';
import { test } from 'tap';
import { atOnce } from '../../../src/base/in-turns.js';
import {
  domainMapSteps,
  governedView,
  type SchemaDocument,
  schemaSteps,
} from '../../../src/model/graph/index.js';
import { type Manifest, parseManifest } from '../../../src/model/manifest/index.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY, articleScript } from '../../language/forms/articles.js';
import { startForms } from '../../language/forms/fixture.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../../support/shop.js';
import { accessOf, MANIFEST, POLICY } from './world.js';

/** Every example in a schema. */
function examplesIn({ entities, facets, metrics, relationships, forms }: SchemaDocument): readonly string[] {
  return [...entities, ...facets, ...metrics, ...relationships, ...forms].flatMap((one) => one.examples);
}

function schemaFor(manifest: Manifest, access: Parameters<typeof governedView>[1]): SchemaDocument {
  return atOnce(schemaSteps(governedView(manifest, access), false, false));
}

test('every example that a caller is shown runs, as this caller', async (t) => {
  const script = articleScript();
  const forms = await startForms({
    manifest: ARTICLES_MANIFEST,
    policy: ARTICLES_POLICY,
    script,
    schema: 'press',
  });
  t.teardown(() => forms.close());
  const { manifest } = forms.test.service.model();
  for (const subject of ['user:ann', 'user:ada', 'user:eu', 'user:non', 'user:odd', 'user:acc']) {
    const schema = schemaFor(manifest, accessOf(manifest, ARTICLES_POLICY, subject));
    for (const example of examplesIn(schema)) {
      const { status, code } = await forms.ask(subject, example);
      t.equal(status, 200, `${subject}: ${example} ${code}`);
    }
    const used = schema.forms.filter((f) => f.examples.length > 0).map((f) => f.name);
    const content = subject !== 'user:non';
    t.strictSame(
      used,
      content ? ['structured', 'retrieve', 'joint', 'cross_modal'] : ['structured'],
      subject,
    );
  }
});

/** Names that mean something to SQL, or that it would write otherwise. */
const NAMES = [
  'order',
  'select',
  'user',
  'Order2',
  'TABLE',
  'group',
  'x',
  'extract',
  'left',
  'json',
  '_a',
  'position',
];

function awkward(): unknown {
  const columns = Object.fromEntries(NAMES.map((name) => [name, { type: 'text' }]));
  const [first = ''] = NAMES;
  const entity = (key: string, table: string) => {
    return { source: `db.lib.${table}`, primary_key: [key], entity_key_columns: NAMES, columns: NAMES };
  };
  return {
    version: 1,
    tenant: 'awkward',
    connectors: { db: { kind: 'pglite', tables: { 'lib.t': { columns }, 'lib.link': { columns } } } },
    entities: Object.fromEntries(NAMES.map((name) => [name, entity(name, 't')])),
    relationships: Object.fromEntries(
      NAMES.slice(1).map((name) => [
        `to_${name}`,
        { from: `${first}.${name}`, to: `${name}.${name}`, kind: 'many_to_one' },
      ]),
    ),
    bridges: {
      array: {
        source: 'db.lib.link',
        left: { entity: first, columns: ['select'] },
        right: { entity: 'TABLE', columns: ['user'] },
        columns: ['select', 'user'],
      },
    },
    metrics: Object.fromEntries(NAMES.map((name) => [`n_${name}`, { entity: name, expression: 'count(*)' }])),
  };
}

test('every example compiles, whatever the names', async (t) => {
  const worlds: readonly (readonly [string, unknown, string])[] = [
    [SHOP_MANIFEST, SHOP_POLICY, 'user:ann'],
    [SHOP_MANIFEST, SHOP_POLICY, 'user:eu'],
    [SHOP_MANIFEST, SHOP_POLICY, 'user:den'],
    [JSON.stringify(MANIFEST), POLICY, 'user:reader'],
    [JSON.stringify(MANIFEST), POLICY, 'user:clerk'],
    [JSON.stringify(MANIFEST), POLICY, 'user:counter'],
    [JSON.stringify(MANIFEST), POLICY, 'user:meter'],
    [JSON.stringify(awkward()), everything('awkward', [...NAMES, 'array']), 'user:all'],
  ];
  for (const [text, policy, subject] of worlds) {
    const manifest = parseManifest(text, 'manifest.yaml');
    const access = accessOf(manifest, policy, subject);
    const examples = examplesIn(schemaFor(manifest, access));
    t.ok(examples.length > 1, subject);
    for (const example of examples) {
      t.ok(compile(example, manifest.catalog, access, { features: ALL_FEATURES }), `${subject}: ${example}`);
    }
  }
});

function everything(tenant: string, relations: readonly string[]): unknown {
  const grants = relations.map((on) => ({ on, columns: '*' }));
  const subjects = { 'user:all': { ceiling: ['all'] } };
  return { version: 1, tenant, subjects, roles: { all: { grants } }, masks: {} };
}

test('a grant without rows is told as such', async (t) => {
  const manifest = parseManifest(JSON.stringify(MANIFEST), 'manifest.yaml');
  const seen = (subject: string) => schemaFor(manifest, accessOf(manifest, POLICY, subject));
  const [counted, ...none] = seen('user:counter').entities;
  t.strictSame(none, []);
  t.match(counted, {
    name: 'book',
    minimum_group_size: 5,
    entity_key_columns: [],
    derived: [],
    metrics: ['books'],
  });
  t.strictSame(
    counted?.columns.map((c) => `${c.name} ${c.use}`),
    ['id aggregates', 'shelf aggregates', 'author_id aggregates'],
  );
  t.strictSame(counted?.examples, ['select count(*) from osl.entities.book']);
  const measured = seen('user:meter');
  t.match(measured.entities, [{ name: 'book', minimum_group_size: 7, columns: [], examples: [] }]);
  t.match(measured.metrics, [{ name: 'books', measurable: true }]);
  t.equal(measured.metrics.length, 1);
  const volumes = { entity: 'book', expression: 'count(*)' };
  const more = { ...MANIFEST, metrics: { ...MANIFEST.metrics, volumes } };
  const larger = parseManifest(JSON.stringify(more), 'manifest.yaml');
  const shown = (subject: string) =>
    schemaFor(larger, accessOf(larger, POLICY, subject)).metrics.map(({ name }) => name);
  t.strictSame(shown('user:meter'), ['books'], 'a grant of one metric shows no other');
  t.strictSame(shown('user:counter'), ['books', 'volumes']);
  t.strictSame(seen('user:reader').entities[0]?.minimum_group_size, null);
});

test('derived attributes are those of the text that is served', async (t) => {
  const manifest = parseManifest(JSON.stringify(MANIFEST), 'manifest.yaml');
  const derived = (subject: string) =>
    schemaFor(manifest, accessOf(manifest, POLICY, subject))
      .entities.find((e) => e.name === 'book')
      ?.derived.map((d) => `${d.name} ${d.type} ${d.facet}`);
  t.strictSame(derived('user:clerk'), ['mood text review', 'theme text memo']);
  t.strictSame(derived('user:reader'), ['mood text review']);
  const { nodes } = atOnce(domainMapSteps(governedView(manifest, accessOf(manifest, POLICY, 'user:reader'))));
  t.match(
    nodes.find((n) => n.name === 'book')?.attributes.find((a) => a.name === 'mood'),
    { role: 'derived', type: 'text', description: 'How it was liked.' },
  );
});
