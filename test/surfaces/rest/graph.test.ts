import { test } from 'tap';
import { DEFAULT_LIMITS } from '../../../policy/index.js';
import { inOneMoment } from '../../support/moment.js';
import { sealedParts } from '../../support/sealed-parts.js';
import type { TokenClaims } from '../../support/service.js';
import { freshAddress, type Reply, startRest } from './fixture.js';

const rest = await startRest();
const ADMIN: TokenClaims = { roles: ['TENANT_ADMIN'] };

async function get(
  path: string,
  subject: string,
  claims: TokenClaims & { headers?: Record<string, string> } = {},
): Promise<Reply> {
  const authorization = `Bearer ${await rest.test.token(subject, claims)}`;
  return rest.send(path, { headers: { authorization, ...claims.headers } });
}

test('what there is to ask about', async (t) => {
  t.teardown(() => rest.close());
  const documents = ['/osl/schema', '/osl/domain-map'] as const;
  const paths = [
    ...documents.map((path) => [path, `${path}?governed=true`, path.slice(5).replace('-', '_')] as const),
    ['/osl/schema/resolve', '/osl/schema/resolve?term=customer', 'resolve'] as const,
  ];

  await t.test('the schema has the members of the contract, and only what the caller sees', async (t) => {
    const reply = await get('/osl/schema?governed=true', 'user:eu');
    t.equal(reply.status, 200);
    const schema = reply.json();
    t.strictSame(Object.keys(schema), [
      ...[
        'version',
        'etag',
        'entities',
        'facets',
        'metrics',
        'relationships',
        'functions',
        'operators',
        'forms',
        'features',
      ],
    ]);
    t.match(schema, {
      version: /^[0-9a-f]{32}$/,
      entities: [
        {
          name: 'customer',
          fqn: 'osl.entities.customer',
          primary_key: ['id'],
          entity_key_columns: ['id'],
          columns: [
            { name: 'id', type: 'int4', nullable: false, masked: 'none' },
            { name: 'name', masked: 'none' },
            { name: 'email', masked: 'all', nullable: true },
            { name: 'region', masked: 'none' },
          ],
        },
        { name: 'order', metrics: ['revenue'] },
      ],
      facets: [],
      metrics: [
        {
          name: 'revenue',
          fqn: 'osl.metrics.revenue',
          entity: 'order',
          kind: 'simple',
          type: 'numeric',
          format: { kind: 'currency', currency: 'EUR' },
        },
      ],
      relationships: [
        {
          name: 'order_customer',
          kind: 'many_to_one',
          from: { entity: 'order', columns: ['customer_id'] },
          to: { entity: 'customer', columns: ['id'] },
          bridge: null,
        },
      ],
    });
    t.equal((schema['entities'] as unknown[]).length, 2);
    t.notOk(
      /tax_no|secret|birth|product|sample|shop\.|regional/.test(reply.text),
      'no hidden name, no label, no table',
    );
    const columns =
      (JSON.parse(reply.text) as { entities: { columns: object[] }[] }).entities[0]?.columns ?? [];
    t.ok(columns.every((c) => !('sensitivity' in c)));
  });

  await t.test('some rows masked is told as such', async (t) => {
    const { text } = await get('/osl/schema?governed=true', 'agent:bot', {
      chain: ['user:ann', 'agent:bot'],
      aclRoles: ['analyst'],
    });
    t.match(text, '"name":"email","type":"text","description":null,"nullable":true,"masked":"all"');
    const mixed = await get('/osl/schema?governed=true', 'user:ada');
    t.match(mixed.text, '"name":"email","type":"text","description":null,"nullable":true,"masked":"none"');
  });

  await t.test('what is denied is left out', async (t) => {
    const { text } = await get('/osl/schema?governed=true', 'user:den');
    t.notOk(text.includes('email'));
    t.ok((await get('/osl/schema?governed=true', 'user:ann')).text.includes('email'));
  });

  await t.test('the domain map has exactly the fields of the contract', async (t) => {
    const reply = await get('/osl/domain-map?governed=true', 'user:ann');
    const map = reply.json() as Record<string, Record<string, unknown>[]>;
    t.strictSame(Object.keys(map), ['nodes', 'edges', 'bridges']);
    const attribute = (name: string, type: string, role = 'column') => ({
      name,
      role,
      type,
      description: null,
    });
    t.strictSame(map['nodes']?.[2], {
      id: 'entity:product',
      kind: 'entity',
      name: 'product',
      plane: 'structured',
      state: 'existing',
      composition: 'structured',
      description: null,
      attributes: [attribute('id', 'int4', 'pk'), attribute('label', 'text')],
      meta: { pk: 'id', model: 'product', legs: [] },
    });
    t.strictSame(map['nodes']?.at(-1), {
      id: 'metric:revenue',
      kind: 'metric',
      name: 'revenue',
      plane: 'structured',
      state: 'existing',
      composition: null,
      description: null,
      attributes: [attribute('revenue', 'numeric', 'metric')],
      meta: {},
    });
    const edge = { declared: true };
    t.strictSame(map['edges'], [
      {
        id: 'order_customer~order:customer',
        source: 'entity:order',
        target: 'entity:customer',
        kind: 'n1',
        label: 'order_customer',
        ...edge,
        source_attr: 'customer_id',
        target_attr: 'id',
      },
      {
        id: 'line~order:product',
        source: 'entity:order',
        target: 'entity:product',
        kind: 'nn',
        label: 'line',
        ...edge,
        source_attr: 'id',
        target_attr: 'id',
      },
    ]);
    t.strictSame(map['bridges'], ['line']);
    t.ok(!map['nodes']?.some((n) => n['name'] === 'line'), 'a bridge is no node');
    const regional = (await get('/osl/domain-map?governed=true', 'user:eu')).json();
    t.match(regional, { edges: [{ id: 'order_customer~order:customer' }], bridges: [] });
    t.equal((regional['edges'] as unknown[]).length, 1, 'an edge needs both ends');
  });

  await t.test(
    'all of it is for admins: a role below the admin ceiling of everybody in the chain',
    async (t) => {
      const refused: readonly (readonly [string, string, TokenClaims])[] = [
        ['no admin role', 'user:ann', {}],
        ['claimed, but above the ceiling', 'user:ann', ADMIN],
        ['below the ceiling, but not claimed', 'user:root', {}],
        ['not below that of all', 'user:root', { ...ADMIN, chain: ['user:ann', 'user:root'] }],
        ['as a data role', 'user:root', { aclRoles: ['TENANT_ADMIN'] }],
      ];
      for (const path of documents) {
        for (const [name, subject, claims] of refused) {
          const reply = await get(path, subject, claims);
          t.match(reply.json(), { status: 403, code: 'E2101' }, `${path}: ${name}`);
          t.match(await rest.trail(reply.requestId), [{ subject, decision: 'deny', code: 'E2101' }], name);
        }
        const reply = await get(path, 'user:root', ADMIN);
        t.equal(reply.status, 200);
        t.ok(reply.text.includes('tax_no'));
        t.equal((await get(`${path}?governed=false`, 'user:root', ADMIN)).text, reply.text);
      }
      const full = (await get('/osl/schema', 'user:root', ADMIN)).json();
      t.equal(full['version'], rest.test.service.model().manifest.version);
      t.match(full, { metrics: [{ expression: 'sum(amount)', filter: null }] });
      t.match(JSON.stringify(full), '"masked":"none","use":"rows","synonyms":[],"sensitivity":"secret"');
      const governed = await get('/osl/schema?governed=true', 'user:root', ADMIN);
      t.notOk(/"sensitivity"|"expression"/.test(governed.text));
      t.equal(governed.text, (await get('/osl/schema?governed=true', 'user:ann')).text, 'by grants alone');
    },
  );

  await t.test('nobody and nothing: the usual refusals, in the usual order', async (t) => {
    for (const [, path, action] of paths) {
      const from = freshAddress();
      const none = await rest.send(path, { from });
      t.match(none.json(), { status: 403, code: 'E2102' }, path);
      t.equal(none.headers['www-authenticate'], 'Bearer');
      t.match(await rest.trail(none.requestId), [{ action, subject: null, decision: 'deny' }]);
      const broken = await rest.send(path, { from, headers: { authorization: 'Bearer x' } });
      t.match(broken.json(), { status: 401, code: 'E3001' });
      const empty = await get(path, 'user:nil');
      t.match(empty.json(), { status: 403, code: 'E2102' }, 'a caller without any right');
      const more = `${path}${path.includes('?') ? '&' : '?'}`;
      for (const query of ['colour=red', path.includes('governed') ? 'governed=true' : 'term=x']) {
        t.match((await get(more + query, 'user:ann')).json(), { status: 400, code: 'E0511' }, more + query);
      }
      t.equal(
        (await rest.send(`${more}colour=red`, { from })).status,
        403,
        'faults are told to those with a token',
      );
    }
    for (const flag of ['', 'TRUE', '1', 'yes']) {
      const reply = await get(`/osl/schema?governed=${flag}`, 'user:root', ADMIN);
      t.match(reply.json(), { status: 400, code: 'E0511' }, `governed=${flag} is neither`);
    }
  });

  await t.test('a known entity is not sent again', async (t) => {
    for (const path of documents) {
      const first = await get(`${path}?governed=true`, 'user:ann');
      const tag = String(first.headers['etag']);
      t.match(tag, /^"[\w-]{43}"$/);
      t.match(first.headers, {
        'cache-control': /^private/,
        vary: 'Authorization',
        'content-type': 'application/json',
      });
      for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const again = await get(`${path}?governed=true`, 'user:ann', { headers: { 'if-none-match': known } });
        t.strictSame([again.status, again.text, again.headers['etag']], [304, '', tag], known);
        t.match(await rest.trail(again.requestId), [{ decision: 'allow' }, { outcome: 'ok' }]);
      }
      const other = await get(`${path}?governed=true`, 'user:eu', { headers: { 'if-none-match': tag } });
      t.equal(other.status, 200, "another's tag says nothing");
      const denied = await get(path, 'user:ann', { headers: { 'if-none-match': '*' } });
      t.equal(denied.status, 403, 'nor does any tag give access');
      const head = await rest.send(`${path}?governed=true`, {
        method: 'HEAD',
        headers: { authorization: `Bearer ${await rest.test.token('user:ann')}` },
      });
      t.strictSame([head.status, head.text, head.headers['etag']], [200, '', tag]);
    }
    const schema = await get('/osl/schema?governed=true', 'user:ann');
    t.equal(`"${schema.json()['etag']}"`, schema.headers['etag']);
  });

  await t.test('each reading is on record, with what was read', async (t) => {
    const objects = ['osl.entities.customer', 'osl.entities.order', 'osl.metrics.revenue'];
    for (const [, path, action] of paths.slice(0, 2)) {
      const { requestId } = await get(path, 'user:eu');
      const [decision, outcome] = await rest.test.records(requestId);
      t.match(decision, {
        action,
        objects,
        surface: 'rest',
        decision: 'allow',
        form: null,
        statement_hmac: null,
      });
      t.match(outcome, { action, outcome: 'ok', rows: 0 });
    }
    const { requestId } = await get('/osl/schema/resolve?term=customer', 'user:eu');
    const [decision] = await rest.test.records(requestId);
    t.match(decision, {
      action: 'resolve',
      objects: ['osl.entities.customer', 'osl.entities.order.customer_id'],
    });
    t.match(decision?.statement_hmac, /./, 'the term as a fingerprint');
  });

  await t.test('the schema has a limit of its own', async (t) => {
    // Whoever asked before in this second has used some of it.
    sealedParts(rest.test.service).limiter.configure({ ...DEFAULT_LIMITS, query: 1_000 });
    t.teardown(() =>
      sealedParts(rest.test.service).limiter.configure({ ...DEFAULT_LIMITS, query: 1_000, schema: 1_000 }),
    );
    const replies = await inOneMoment(() =>
      Promise.all(Array.from({ length: 12 }, () => get('/osl/schema?governed=true', 'user:us'))),
    );
    const refused = replies.filter((r) => r.status === 429);
    t.equal(refused.length, 7);
    t.match(refused[0]?.headers['retry-after'], /^[1-9]\d*$/);
    t.match(refused[0]?.json(), { code: 'E4290' });
    t.equal((await get('/osl/domain-map?governed=true', 'user:us')).status, 200);
    t.equal((await get('/osl/schema?governed=true', 'user:den')).status, 200);
  });
});
