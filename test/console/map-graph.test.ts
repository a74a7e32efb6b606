import { clustersOf } from 'osl-console/screens/map/graph/clusters';
import { differenceOf } from 'osl-console/screens/map/graph/difference';
import { graphOfSchema } from 'osl-console/screens/map/graph/graph-of-schema';
import { type Graph, KINDS, type MapObjectKind, packBoxes } from 'osl-console/screens/map/graph/model';
import { MOST_DRAWN, pictureOf } from 'osl-console/screens/map/graph/picture';
import { searchIn } from 'osl-console/screens/map/graph/search';
import { towards } from 'osl-console/screens/map/picture/canvas';
import { mapPlaceOf, parametersOf, scopeOf } from 'osl-console/screens/map/place';
import { questionFor } from 'osl-console/screens/map/words';
import { MapStore } from 'osl-console/screens/map/worker/map-store';
import { test } from 'tap';
import { column, entity, metric, relationship, schema } from './support/schema.js';

const SHOP = schema({
  entities: [
    entity('customer', [column('name'), column('email', { masked: 'all', synonyms: ['mail'] })]),
    entity('order', [column('customer_id'), column('amount', { use: 'aggregates' })], {
      description: 'One purchase.',
      synonyms: ['purchase order'],
    }),
    entity('product', [column('label', { masked: 'some' })]),
  ],
  relationships: [
    relationship('buyer', 'order', 'customer'),
    relationship('line', 'order', 'product', 'line'),
  ],
  metrics: [metric('revenue', 'order'), metric('net', null)],
});
const ALL = new Set(KINDS);
const plain = (graph: Graph) => ({ graph, clusters: [], marks: new Map() });

test('a schema becomes objects and connections, and nothing beside it', async (t) => {
  const graph = graphOfSchema(SHOP);
  t.strictSame(
    [...graph.objects.keys()],
    ['entity:customer', 'entity:order', 'entity:product', 'bridge:line', 'metric:revenue', 'metric:net'],
  );
  t.strictSame(
    graph.connections.map(({ kind, source, target, on }) => [kind, source, target, on]),
    [
      ['to_one', 'entity:order', 'entity:customer', 'customer_id = id'],
      ['across', 'entity:order', 'bridge:line', 'id'],
      ['across', 'entity:product', 'bridge:line', 'id'],
      ['figure', 'metric:revenue', 'entity:order', ''],
    ],
    'a metric of several entities is tied to none',
  );
  const sights = [...graph.objects.values()].flatMap((object) =>
    object.columns.map((c) => [`${object.name}.${c.name}`, c.sight] as const),
  );
  t.match(Object.fromEntries(sights), {
    'customer.name': 'clear',
    'customer.email': 'masked',
    'order.amount': 'aggregates',
    'product.label': 'partly_masked',
  });
});

test('two maps differ in objects, in columns, and in how columns are seen', async (t) => {
  const other = graphOfSchema(
    schema({
      entities: [
        entity('customer', [column('email'), column('born')]),
        entity('order', [column('customer_id'), column('amount', { use: 'aggregates' })]),
        entity('visit', []),
      ],
      relationships: [relationship('buyer', 'order', 'customer')],
      metrics: [metric('revenue', 'order')],
    }),
  );
  const { changes, marks, union } = differenceOf(graphOfSchema(SHOP), other);
  t.strictSame(
    changes.map(({ id, mark }) => [id, mark]),
    [
      ['entity:customer', 'differs'],
      ['entity:product', 'first'],
      ['bridge:line', 'first'],
      ['metric:net', 'first'],
      ['entity:visit', 'second'],
    ],
  );
  t.strictSame(changes[0]?.columns, [
    { name: 'name', first: 'clear', second: null },
    { name: 'email', first: 'masked', second: 'clear' },
    { name: 'born', first: null, second: 'clear' },
  ]);
  t.equal(marks.get('entity:order'), undefined, 'descriptions and synonyms are no rights');
  t.equal(marks.get('line~left'), 'first');
  t.equal(union.objects.size, 7);
  t.ok(union.objects.get('entity:customer')?.columns.some((c) => c.name === 'born'));
  t.strictSame(differenceOf(graphOfSchema(SHOP), graphOfSchema(SHOP)).changes, []);
});

test('in the union of two maps an object has the attributes that either caller sees', async (t) => {
  const seen = (...names: readonly string[]) => {
    const derived = names.map((name) => {
      return { name, type: 'text', description: null, facet: 'notes', synonyms: [] };
    });
    return graphOfSchema(schema({ entities: [entity('customer', [], { derived })] }));
  };
  const { changes, union } = differenceOf(seen('mood'), seen('mood', 'topic'));
  t.strictSame(changes[0]?.columns, [{ name: 'topic', first: null, second: 'clear' }]);
  t.strictSame(
    union.objects.get('entity:customer')?.derived.map(({ name }) => name),
    ['mood', 'topic'],
  );
});

test('a word is found in names, columns, synonyms and descriptions, the best first', async (t) => {
  const graph = graphOfSchema(SHOP);
  const names = (term: string) =>
    searchIn(graph, term, 10).found.map(({ name, column: c, via }) => [
      c === null ? name : `${name}.${c}`,
      via,
    ]);
  t.strictSame(names('EMAIL'), [['customer.email', null]]);
  t.strictSame(names('mail'), [['customer.email', null]]);
  t.strictSame(names('order')[0], ['order', null]);
  t.strictSame(names('purchase'), [['order', 'purchase order']]);
  t.strictSame(names('one'), [['order', 'description']]);
  t.strictSame(searchIn(graph, 'nothing like it', 10), { found: [], total: 0 });
  t.strictSame(searchIn(graph, '  ', 10), { found: [], total: 0 });
  t.match(searchIn(graph, 'id', 2), { total: 4, found: { length: 2 } });
});

test('arrows go along the map', async (t) => {
  const from = { id: 'a', x: 0, y: 0 };
  const others = [
    { id: 'right', x: 100, y: 10 },
    { id: 'far right', x: 300, y: 0 },
    { id: 'down', x: 20, y: 90 },
    { id: 'left', x: -80, y: -70 },
  ];
  t.equal(towards('ArrowRight', from, others), 'right');
  t.equal(towards('ArrowDown', from, others), 'down');
  t.equal(towards('ArrowLeft', from, others), 'left');
  t.equal(towards('ArrowUp', from, others), 'left', 'what is up at all is better than nothing');
  t.equal(towards('ArrowUp', from, others.slice(0, 1)), null);
  t.equal(towards('ArrowUp', from, [from]), null, 'not to where it is');
});

test('parts of a picture stand beside each other and never over each other', async (t) => {
  const boxes = [50, 400, 30, 120, 120, 90].map((n) => ({ width: n, height: n / 2 + 20 }));
  const corners = packBoxes(boxes, 1.5);
  for (const [i, [x, y]] of corners.entries())
    for (const [j, [x2, y2]] of corners.entries()) {
      const [a, b] = [boxes[i], boxes[j]];
      if (i === j || a === undefined || b === undefined) continue;
      t.ok(x + a.width < x2 || x2 + b.width < x || y + a.height < y2 || y2 + b.height < y, `${i} and ${j}`);
    }
  t.strictSame(packBoxes([], 1), []);
});

test('a small map is drawn whole; kinds that are off are not', async (t) => {
  const drawing = plain(graphOfSchema(SHOP));
  const whole = pictureOf(drawing, { kind: 'all' }, ALL);
  t.match(whole, { nodes: { length: 6 }, edges: { length: 4 }, total: 6, inScope: 6 });
  const without = pictureOf(drawing, { kind: 'all' }, new Set(['entity', 'metric'] as const));
  t.strictSame(
    without.edges.map(({ id, kind }) => [id, kind]),
    [
      ['buyer~order:customer', 'to_one'],
      ['metric:revenue', 'figure'],
      ['bridge:line', 'across'],
    ],
    'a bridge that is not drawn is a line',
  );
  const around = pictureOf(drawing, { kind: 'around', id: 'entity:customer' }, ALL);
  t.ok(around.nodes.some((n) => n.id === 'entity:order'));
  t.notOk(around.nodes.some((n) => n.id === 'metric:net'));
});

test('around an object, kinds that are off stay off, also behind a hidden bridge', async (t) => {
  const drawing = plain(graphOfSchema(SHOP));
  const drawn = (...kinds: readonly MapObjectKind[]) =>
    pictureOf(drawing, { kind: 'around', id: 'entity:order' }, new Set(kinds)).nodes.map(({ id }) => id);
  t.strictSame(drawn('metric'), ['entity:order', 'metric:revenue']);
  t.strictSame(drawn('entity'), ['entity:order', 'entity:customer', 'entity:product']);
});

/** So many entities, each of fifty leading to the first of them. */
function large(entities: number): Graph {
  const of = (n: number): string => `e${n}`;
  const numbers = Array.from({ length: entities }, (_, n) => n);
  return graphOfSchema(
    schema({
      entities: numbers.map((n) => entity(of(n), [column('name')])),
      relationships: numbers
        .filter((n) => n % 50 !== 0)
        .map((n) => ({ ...relationship(`r${n}`, of(n), of(n - (n % 50))) })),
    }),
  );
}

test('of a large map never more is drawn than can be followed, whatever its shape', async (t) => {
  const shapes: readonly (readonly [string, Graph])[] = [
    ['areas', large(5_000)],
    [
      'nothing tied',
      graphOfSchema(schema({ entities: Array.from({ length: 5_000 }, (_, n) => entity(`e${n}`, [])) })),
    ],
    [
      'one hub',
      graphOfSchema(
        schema({
          entities: Array.from({ length: 3_000 }, (_, n) => entity(`e${n}`, [])),
          relationships: Array.from({ length: 2_999 }, (_, n) => relationship(`r${n}`, `e${n + 1}`, 'e0')),
        }),
      ),
    ],
    [
      'a chain',
      graphOfSchema(
        schema({
          entities: Array.from({ length: 3_000 }, (_, n) => entity(`e${n}`, [])),
          relationships: Array.from({ length: 2_999 }, (_, n) => relationship(`r${n}`, `e${n}`, `e${n + 1}`)),
        }),
      ),
    ],
  ];
  for (const [what, graph] of shapes) {
    const clusters = clustersOf(graph);
    const members = clusters.flatMap((c) => c.members);
    t.equal(new Set(members).size, graph.objects.size, `${what}: everything is in a cluster`);
    t.equal(members.length, graph.objects.size, `${what}: and in one only`);
    const drawing = { graph, clusters, marks: new Map() };
    const scopes = [
      { kind: 'all' as const },
      ...clusters.slice(0, 3).map(({ id }) => ({ kind: 'cluster' as const, id })),
      { kind: 'around' as const, id: 'entity:e0' },
    ];
    for (const scope of scopes) {
      const picture = pictureOf(drawing, scope, ALL);
      t.ok(picture.nodes.length > 0 && picture.nodes.length <= MOST_DRAWN, `${what}: ${scope.kind}`);
    }
    const { nodes } = pictureOf(drawing, { kind: 'all' }, ALL);
    t.equal(nodes.length, clusters.length, `${what}: every cluster is drawn`);
    const largest = Math.max(...clusters.map((c) => c.members.length));
    t.ok(largest <= MOST_DRAWN, `${what}: each can be drawn whole: ${largest}`);
    t.strictSame(clustersOf(graph), clusters, `${what}: the same each time`);
  }
});

test('the keeper answers for one caller, then for two, then for one again', async (t) => {
  const keeper = new MapStore();
  t.throws(() => keeper.search('x', 1), /no map/);
  t.match(keeper.load('first', SHOP), { counts: { entity: 3, bridge: 1, facet: 0, metric: 2 } });
  t.equal(keeper.details('entity:secret'), null);
  keeper.load('second', schema({ entities: [entity('secret', [])] }));
  t.match(keeper.details('entity:secret'), { mark: 'second' });
  t.strictSame(keeper.seenBy('first', ['entity:secret', 'entity:order']), ['entity:order']);
  t.equal(keeper.changes(3).total, 7);
  keeper.forget();
  t.equal(keeper.details('entity:secret'), null, 'what the second saw is gone with it');
  t.equal(keeper.changes(3).total, 0);
});

test('the address says what is looked at', async (t) => {
  const place = { at: 'entity:a&b', column: 'c=d', within: 'cluster:3' };
  t.strictSame(mapPlaceOf(new URLSearchParams(parametersOf(place))), place);
  t.strictSame(scopeOf(place, 10), { kind: 'cluster', id: 'cluster:3' });
  t.strictSame(scopeOf({ ...place, within: null }, 10), { kind: 'all' });
  t.strictSame(scopeOf({ ...place, within: null }, 10_000), { kind: 'around', id: 'entity:a&b' });
});

test('a question that is written for somebody names what rows show, quoted where it must be', async (t) => {
  const objects = graphOfSchema(
    schema({
      entities: [
        entity('order', [column('user'), column('Strange "name"'), column('sum', { use: 'aggregates' })]),
        entity('counted', [], {
          columns: [column('n', { use: 'aggregates' })],
          examples: ['select count(*) from osl.entities.counted'],
        }),
      ],
    }),
  ).objects;
  const [order, counted] = [...objects.values()];
  t.equal(
    order === undefined ? '' : questionFor(order),
    'select id, "user", "Strange ""name"""\nfrom osl.entities."order"\nlimit 100',
  );
  t.equal(counted === undefined ? '' : questionFor(counted), 'select count(*) from osl.entities.counted');
});
