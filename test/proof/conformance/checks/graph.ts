import { freshAddress } from '../../../surfaces/rest/fixture.js';
import type { World } from '../world.js';
import { at, type Check, listAt } from './check.js';

const ADMIN = { roles: ['TENANT_ADMIN'] };
const GOVERNED = '/osl/domain-map?governed=true';

async function mapOf(world: World, subject = 'user:ann'): Promise<unknown> {
  return (await world.get(subject, '/osl/domain-map?governed=true')).body;
}

async function wholeMap(world: World): Promise<unknown> {
  return (await world.get('user:root', '/osl/domain-map', ADMIN)).body;
}

async function node(world: World, id: string): Promise<unknown> {
  return listAt(await mapOf(world), 'nodes').find((n) => at(n, 'id') === id);
}

async function edge(world: World): Promise<unknown> {
  return listAt(await mapOf(world), 'edges').find((e) => at(e, 'kind') === 'nn');
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);
const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every node of the governed and of the whole map has this member, of this type, and these nodes these values. */
function nodesHave(
  member: string,
  isType: (value: unknown) => boolean,
  expected: Readonly<Record<string, unknown>>,
): Check {
  return async (t, world) => {
    const nodes = listAt(await mapOf(world), 'nodes');
    for (const n of [...nodes, ...listAt(await wholeMap(world), 'nodes')])
      t.ok(isType(at(n, member)), `${member} of ${at(n, 'id')}`);
    for (const [id, value] of Object.entries(expected)) {
      t.same(
        at(
          nodes.find((n) => at(n, 'id') === id),
          member,
        ),
        value,
        id,
      );
    }
  };
}

function edgeHas(member: string, expected: unknown): Check {
  return async (t, world) => t.strictSame(at(await edge(world), member), expected);
}

function forAdmins(path: string): Check {
  return async (t, world) => {
    t.match(await world.get('user:root', path), { status: 403, code: 'E2101' }, 'no role is claimed');
    t.match(await world.get('user:ann', path, ADMIN), { status: 403, code: 'E2101' }, 'claimed in vain');
    const full = await world.get('user:root', path, ADMIN);
    t.equal(full.status, 200);
    t.ok(full.text.includes('"shelf"'), 'it has what grants do not show');
  };
}

async function schemaOf(world: World, subject = 'user:ann'): Promise<unknown> {
  return (await world.get(subject, '/osl/schema?governed=true')).body;
}

export const GRAPH_CHECKS = {
  'graph.map.nodes': async (t, world) => {
    const kinds = new Set(listAt(await wholeMap(world), 'nodes').map((n) => at(n, 'kind')));
    t.same([...kinds], ['entity', 'metric', 'candidate']);
    world.withheld(t, await world.get('user:few', GOVERNED), /candidate|metric|author/);
  },
  'graph.node.kind': async (t, world) => {
    const map = await wholeMap(world);
    const kinds = new Map(listAt(map, 'nodes').map((n) => [at(n, 'name'), at(n, 'kind')]));
    t.match(
      kinds,
      new Map([
        ['book', 'entity'],
        ['page_total', 'metric'],
        ['t_loan', 'candidate'],
      ]),
    );
    t.match(
      listAt(map, 'edges').find((e) => at(e, 'source') === 'entity:t_loan'),
      {
        target: 'entity:book',
        kind: 'n1',
        declared: false,
        source_attr: 'book_id',
        target_attr: 'id',
      },
    );
    world.withheld(t, await world.get('user:ann', GOVERNED), /t_loan|candidate/);
  },
  'graph.map.edges': async (t, world) => {
    const links = listAt(await mapOf(world), 'edges').map((e) => [at(e, 'source'), at(e, 'target')]);
    t.same(links, [['entity:book', 'entity:author']]);
    world.withheld(t, await world.get('user:few', GOVERNED), /wrote|author/);
  },
  'graph.map.bridges': async (t, world) => {
    t.same(listAt(await mapOf(world), 'bridges'), ['wrote']);
    world.withheld(t, await world.get('user:few', GOVERNED), /wrote/);
  },
  'graph.2': nodesHave('kind', isText, {
    'entity:book': 'entity',
    'entity:author': 'entity',
    'metric:page_total': 'metric',
  }),
  'graph.3': async (t, world) => {
    const names = listAt(await mapOf(world), 'nodes').map((n) => at(n, 'name'));
    t.same(names, ['book', 'author', 'member', 'page_total']);
    const sample = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'wrote' });
    t.match(sample, { status: 400, code: 'E0254' }, 'nor is it a model');
    const walk = "select book from TRAVERSE(anchor => 'book', target => 'wrote', keys => ('1'))";
    t.match(await world.osql('user:ann', walk), { status: 400, code: 'E0512' }, 'nor the end of a walk');
  },
  'graph.4': async (t, world) => {
    const edges = listAt(await mapOf(world), 'edges').filter((e) => at(e, 'kind') === 'nn');
    t.match(edges, [{ source: 'entity:book', target: 'entity:author' }]);
    t.equal(edges.length, 1);
    world.withheld(t, await world.get('user:few', GOVERNED), /"nn"/);
  },
  'graph.node.id': async (t, world) => {
    for (const n of listAt(await mapOf(world), 'nodes')) {
      t.equal(at(n, 'id'), `${at(n, 'kind')}:${at(n, 'name')}`);
    }
  },
  'graph.node.name': nodesHave('name', isText, { 'entity:book': 'book', 'metric:page_total': 'page_total' }),
  'graph.node.plane': nodesHave('plane', isText, { 'entity:book': 'mixed', 'entity:author': 'structured' }),
  'graph.node.state': nodesHave('state', isText, {
    'entity:book': 'existing',
    'metric:page_total': 'existing',
  }),
  'graph.node.composition': nodesHave('composition', isTextOrNull, {
    'entity:book': 'structured+content',
    'entity:author': 'structured',
    'metric:page_total': null,
  }),
  'graph.node.description': nodesHave('description', isTextOrNull, {
    'entity:book': null,
    'entity:author': 'Who wrote a book.',
  }),
  'graph.node.attributes': async (t, world) => {
    const names = listAt(await node(world, 'entity:author'), 'attributes').map((a) => at(a, 'name'));
    t.same(names, ['id', 'name']);
  },
  'graph.node.meta': nodesHave('meta', isObject, {
    'entity:book': { pk: 'id', model: 'book', legs: ['reviews'] },
    'entity:author': { pk: 'id', model: 'author', legs: [] },
    'metric:page_total': {},
  }),
  'graph.6': async (t, world) => {
    const attributes = listAt(await node(world, 'entity:book'), 'attributes');
    for (const a of attributes) {
      t.same(Object.keys(a as object).sort(), ['description', 'name', 'role', 'type']);
    }
    t.same(at(attributes[0], 'role'), 'pk');
    t.match(attributes, [{}, {}, {}, {}, {}, {}, { role: 'derived' }, { role: 'metric' }]);
  },
  'graph.edge.id': edgeHas('id', 'wrote~book:author'),
  'graph.edge.source': edgeHas('source', 'entity:book'),
  'graph.edge.target': edgeHas('target', 'entity:author'),
  'graph.edge.kind': edgeHas('kind', 'nn'),
  'graph.edge.label': edgeHas('label', 'wrote'),
  'graph.edge.declared': edgeHas('declared', true),
  'graph.edge.source_attr': edgeHas('source_attr', 'id'),
  'graph.edge.target_attr': edgeHas('target_attr', 'id'),
  'resource.4': async (t, world) => {
    const { rows } = await world.osql('user:ann', 'select title from osl.entities.book where id = 2');
    t.same(rows, [{ title: 'Book 2' }]);
    // Every full name that an answer shows is a name that may be asked for.
    const named: readonly (readonly [path: string, body: unknown, shown: string])[] = [
      ['/osl/query', { osql: 'select id from osl.entities.book limit 1' }, 'osl.entities.book'],
      ['/osl/query', { osql: 'select measure(osl.metrics.page_total) from book' }, 'osl.metrics.page_total'],
      [
        '/osl/query',
        { osql: "select measure('osl.metrics.page_total') from book" },
        'osl.metrics.page_total',
      ],
      [
        '/osl/query',
        { metrics: ['osl.metrics.page_total'], order_by: ['-osl.metrics.page_total'] },
        'osl.metrics.page_total',
      ],
      [
        '/osl/query',
        {
          osql: "select text from RETRIEVE(facet => 'osl.facets.reviews', query => 'a review of whales', top_k => 3)",
        },
        'osl.facets.reviews',
      ],
      [
        '/osl/query',
        {
          osql: `select id from TRAVERSE(anchor => 'osl.entities.author', target => 'osl.entities.book', keys => ('1'))`,
        },
        'osl.entities.author',
      ],
      ['/osl/query', { sql: 'select id from db.lib.t_book limit 1' }, 'osl.entities.book'],
      ['/osl/sample', { kind: 'table', name: 'osl.entities.book' }, 'osl.entities.book'],
      ['/osl/sample', { kind: 'facet', name: 'osl.facets.reviews' }, 'osl.facets.reviews'],
    ];
    for (const [path, body, shown] of named) {
      const heard = await world.post('user:ann', path, body);
      const name = JSON.stringify(body);
      t.ok(heard.status === 200 && heard.rows.length > 0, `${name}: ${heard.status}`);
      const records = await world.rest.test.records(String(heard.body['request_id']));
      t.ok(records[0]?.objects.includes(shown), `${name}: ${records[0]?.objects.join()}`);
    }
    for (const name of ['osl.entities.nowhere', 'osl.book', 'entity.book', 'db.lib.t_book'])
      t.match(await world.osql('user:ann', `select id from ${name}`), { status: 400, code: 'E0512' }, name);
  },
  'resource.5': async (t, world) =>
    t.match(listAt(await schemaOf(world), 'facets')[0], {
      name: 'reviews',
      retrieval: { max_top_k: 20 },
      embedding_model: /./,
      scalar_indexed: ['book_id', 'lang'],
    }),
  'resource.6': async (t, world) =>
    t.match(listAt(await schemaOf(world), 'entities')[0], { name: 'book', entity_key_columns: ['id'] }),
  'resource.7': async (t, world) =>
    t.match(listAt(await schemaOf(world), 'entities')[0], { name: 'book', primary_key: ['id'] }),
  'resource.8': async (t, world) => {
    const { rows } = await world.osql('user:ann', 'select measure(page_total) as n from book');
    t.same(rows, [{ n: '7800' }]);
    for (const body of [{ osql: 'select measure(pages_total) from book' }, { metrics: ['pages_total'] }])
      t.match(await world.post('user:ann', '/osl/query', body), { status: 400, code: 'E0512' });
  },
  'map.2': async (t, world) =>
    t.same(Object.keys((await mapOf(world)) as object), ['nodes', 'edges', 'bridges']),
  'map.3': forAdmins('/osl/domain-map'),
  'map.4': async (t, world) => {
    const ids = (map: unknown, member: string) => listAt(map, member).map((n) => at(n, 'id'));
    const regional = await mapOf(world, 'user:eu');
    t.same(ids(regional, 'nodes'), ['entity:book', 'entity:author']);
    t.same(ids(regional, 'edges'), ['wrote~book:author']);
    const few = await mapOf(world, 'user:few');
    t.same(ids(few, 'nodes'), ['entity:book']);
    t.same(ids(few, 'edges'), []);
    t.same(
      listAt(few, 'nodes', 0, 'attributes').map((a) => at(a, 'name')),
      ['id', 'title'],
    );
    world.withheld(t, await world.get('user:few', GOVERNED), /owner|author|topic|page_total/);
  },
  'schema.1': async (t, world) => {
    const first = await world.get('user:ann', '/osl/schema?governed=true');
    t.match(first.body, { entities: [{ name: 'book' }, { name: 'author' }, { name: 'member' }] });
    const authorization = `Bearer ${await world.rest.test.token('user:ann')}`;
    const headers = { authorization, 'if-none-match': String(first.headers['etag']) };
    t.match(await world.send('/osl/schema?governed=true', { headers }), { status: 304, text: '' });
    const other = await world.get('user:few', '/osl/schema?governed=true', {}, headers['if-none-match']);
    t.equal(other.status, 200, "what one caller keeps is not another's");
    const stranger = { ...headers, authorization: 'Bearer broken' };
    const from = freshAddress();
    t.match(await world.send('/osl/schema?governed=true', { headers: stranger, from }), { status: 401 });
  },
  'schema.2': forAdmins('/osl/schema'),
  'schema.3': async (t, world) => {
    t.match((await world.get('user:ann', '/osl/schema?governed=true')).text, /"owner"/);
    const few = await world.get('user:few', '/osl/schema?governed=true');
    t.ok(few.text.includes('"title"'));
    world.withheld(t, few, /"owner"|"author"|"reviews"|page_total/);
  },
  'endpoint.schema-resolve': async (t, world) => {
    const { body } = await world.get('user:ann', '/osl/schema/resolve?term=volume');
    t.match(body, { matches: [{ fqn: 'osl.entities.book', via: 'lexicon' }] });
    t.match((await world.get('user:ann', '/osl/schema/resolve?term=author')).text, 'osl.entities.author');
    world.withheld(t, await world.get('user:few', '/osl/schema/resolve?term=author'), /osl\./);
    t.match(await world.get('user:ann', '/osl/schema/resolve'), { status: 400, code: 'E0511' });
  },
} satisfies Readonly<Record<string, Check>>;
