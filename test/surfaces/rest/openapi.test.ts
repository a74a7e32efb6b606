import { compileErrors, validate } from '@readme/openapi-parser';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ERRORS } from 'osl-compiler';
import t, { test } from 'tap';
import { METHODS } from '../../../src/surfaces/rest/openapi/document.js';
import { sealedParts } from '../../support/sealed-parts.js';
import { freshAddress, type Sent, startRest } from './fixture.js';

t.setTimeout(600_000);
const rest = await startRest({ mcp: { version: '1.2.3' } });

type Members = Readonly<Record<string, unknown>>;

/** What `/openapi.json` is known to have, once it is valid. */
interface Document {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Members>> };
}

interface Operation {
  readonly security?: readonly unknown[];
  readonly parameters?: readonly { readonly name: string; readonly example?: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}

const document = (await rest.send('/openapi.json')).json() as unknown as Document; // validated below

/** True if a value has the shape of this component. */
function shapeOf(name: string): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema({ ...document, $id: 'openapi' });
  const check = ajv.getSchema(`openapi#/components/schemas/${name}`);
  if (check === undefined) throw new Error(`no component ${name}`);
  return (value) => check(value) === true;
}

test('the document of the REST surface', async (t) => {
  t.teardown(() => rest.close());
  const headers = async (subject = 'user:ann', roles: readonly string[] = []) => {
    return {
      authorization: `Bearer ${await rest.test.token(subject, { roles })}`,
      'content-type': 'application/json',
    };
  };

  await t.test('is valid OpenAPI 3.1, for anyone, of this version', async (t) => {
    const result = await validate(structuredClone(document) as never); // the parser's own type of it
    t.ok(result.valid, result.valid ? 'valid' : compileErrors(result));
    t.match(document, { openapi: '3.1.0', info: { version: '1.2.3' } });
  });

  await t.test('has every path, with its methods and who may ask', async (t) => {
    const documented = Object.entries(document.paths).map(
      ([path, o]) => `${Object.keys(o).sort().join()} ${path}`,
    );
    const served = [...METHODS].map(
      ([path, methods]) =>
        `${methods
          .replace('HEAD, ', '')
          .replace(/, HEAD$/, '')
          .toLowerCase()
          .replace(', ', ',')} ${path}`,
    );
    t.strictSame(documented.sort(), served.sort());
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const operation of Object.values(operations)) {
        t.equal(operation.security !== undefined, path.startsWith('/osl/') || path === '/mcp', path);
        if (path.startsWith('/osl/')) {
          for (const status of ['200', '400', '401', '403', '429', '503'])
            t.ok(operation.responses[status], status);
        }
      }
    }
  });

  await t.test('has every code and every status', async (t) => {
    const problem = document.components.schemas['Problem'] as { properties: { code: { enum: string[] } } };
    const codes = Object.values(ERRORS).map((e) => e.code);
    t.strictSame(problem.properties.code.enum, [...new Set(codes)].sort());
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
    const stated = new Set(operations.flatMap((o) => Object.keys(o.responses)));
    // 405 is what another method of a path is told, which is no operation.
    for (const status of new Set(Object.values(ERRORS).map((e) => String(e.http))))
      t.ok(stated.has(status) || status === '405', status);
    for (const path of ['/osl/query', '/osl/sample', '/osl/objects', '/osl/validate'])
      t.ok(document.paths[path]?.['post']?.responses['409'], `409 of ${path}`);
  });

  await t.test('has examples that run, and answers of the shapes that it states', async (t) => {
    const { examples } = document.components.schemas['Query'] as { examples: Members[] };
    t.equal(examples.length, 3);
    for (const body of examples) {
      t.ok(shapeOf('Query')(body));
      const reply = await rest.send('/osl/query', { method: 'POST', headers: await headers(), body });
      t.equal(reply.status, 200, JSON.stringify(body));
      t.ok(shapeOf(body['explain'] === true ? 'Plan' : 'Answer')(reply.json()), reply.text);
    }
    const asked = document.components.schemas['ObjectsRequest'] as { examples: Members[] };
    t.equal(asked.examples.length, 3);
    for (const example of asked.examples) {
      t.ok(shapeOf('ObjectsRequest')(example));
      const { version } = rest.test.service.model().manifest;
      const body = example['state'] === 'draft' ? example : { ...example, base_version: version };
      const admin = await headers('user:root', ['TENANT_ADMIN']);
      const reply = await rest.send('/osl/objects', { method: 'POST', headers: admin, body });
      t.equal(reply.status, 200, reply.text);
      t.ok(shapeOf('Publication')(reply.json()), reply.text);
    }
    const get = async (name: string, path: string, subject?: string, roles?: readonly string[]) => {
      return [name, path, await rest.send(path, { headers: await headers(subject, roles) })] as const;
    };
    const sample = await rest.send('/osl/sample', {
      method: 'POST',
      headers: await headers(),
      body: { kind: 'table', name: 'customer' },
    });
    const author = async (path: string, body: unknown) =>
      rest.send(`/osl/${path}`, {
        method: 'POST',
        headers: await headers('user:root', ['TENANT_ADMIN']),
        body,
      });
    const answers = [
      await get('Schema', '/osl/schema?governed=true'),
      await get('Schema', '/osl/schema', 'user:root', ['TENANT_ADMIN']),
      await get('DomainMap', '/osl/domain-map?governed=true'),
      await get('Resolution', '/osl/schema/resolve?term=customer'),
      await get('Problem', '/osl/schema'),
      await get('Problem', '/osl/schema/resolve'),
      await get('Problem', '/osl/nothing'),
      ['Sample', '/osl/sample', sample] as const,
      await get('Candidates', '/osl/candidates', 'user:root', ['TENANT_ADMIN']),
      ['Suggestion', '/osl/suggest', await author('suggest', { table: 'db.shop.orders' })] as const,
      [
        'Publication',
        '/osl/objects',
        await author('objects', {
          fragment: { metrics: { orders: { entity: 'order', expression: 'count(*)' } } },
          base_version: rest.test.service.model().manifest.version,
        }),
      ] as const,
      [
        'Unservable',
        '/osl/objects',
        await author('objects', {
          fragment: 'metrics: { x: 1 }',
          base_version: rest.test.service.model().manifest.version,
        }),
      ] as const,
      [
        'Unservable',
        '/osl/objects',
        await author('objects', {
          deprecate: { 'metrics.nothing': 'x' },
          base_version: rest.test.service.model().manifest.version,
        }),
      ] as const,
      await get('Publications', '/osl/objects', 'user:root', ['TENANT_ADMIN']),
      await get('Published', '/osl/objects/1', 'user:root', ['TENANT_ADMIN']),
      [
        'Judgement',
        '/osl/validate',
        await author('validate', { fragment: 'entities: { order: {} }' }),
      ] as const,
      [
        'Judgement',
        '/osl/validate',
        await author('validate', { fragment: 'raw_sql: { allow: [] }' }),
      ] as const,
    ];
    for (const [name, path, reply] of answers) {
      t.ok(shapeOf(name)(reply.json()), `${path} is a ${name}: ${reply.text.slice(0, 200)}`);
    }
    t.notOk(shapeOf('Schema')({ version: '1' }), 'not everything has these shapes');
  });

  await t.test('says what is refused', async (t) => {
    const query = shapeOf('Query');
    for (const body of [{}, { osql: 1 }, { osql: 'x', sql: 'y' }, { osql: 'x', colour: 'red' }, []]) {
      t.notOk(query(body), JSON.stringify(body));
      const reply = await rest.send('/osl/query', { method: 'POST', headers: await headers(), body });
      t.equal(reply.status, 400, JSON.stringify(body));
    }
  });
});

test('every status that is answered is in the document', async (t) => {
  const own = await startRest();
  t.teardown(() => own.close());
  const token = await own.test.token('user:root', { roles: ['TENANT_ADMIN'] });
  const bearer = { authorization: `Bearer ${token}` };
  const typed = { ...bearer, 'content-type': 'application/json' };
  const version = own.test.service.model().manifest.version;
  const bodies: readonly unknown[] = [
    '{',
    '[]',
    {},
    { osql: 'select 1 as a' },
    { osql: 'select 1 / 0 as a' },
    { osql: 'select nothing' },
    { osql: 'select email from customer', sql: 'x' },
    { sql: 'select 1 from shop.samples' },
    { metrics: ['revenue'], group_by: ['nothing'] },
    { osql: "select summarize(text) from RETRIEVE(facet => 'labels', query => 'x', top_k => 1)" },
    { osql: "select text from RETRIEVE(facet => 'labels', query => 'x', top_k => 1)" },
    { kind: 'table', name: 'nothing' },
    { kind: 'facet', name: 'labels' },
    { table: 'db.shop.nothing' },
    { term: 'zyzzyva' },
    { fragment: 'a: [' },
    { draft: 'nothing' },
    { discard: 'nothing', base_version: version },
    { withdraw: ['metrics.nothing'], base_version: version },
    { withdraw: ['metrics.revenue'], base_version: version },
    { rollback: 99, base_version: version },
    { fragment: 'connectors: { other: {} }', base_version: version },
    { fragment: 'metrics: { x: 1 }', base_version: version },
    { fragment: 'metrics: { x: 1 }', base_version: 'another' },
    { fragment: { metrics: { orders: { entity: 'order', expression: 'count(*)' } } } },
  ];
  const long = 'x'.repeat(3_000_000);
  const seen = new Map<string, Set<number>>();
  const drive = async (method: string, path: string, sent: Sent): Promise<void> => {
    const { status } = await own.send(path.replace('{id}', '1'), {
      method: method.toUpperCase(),
      from: '127.0.9.9',
      ...sent,
    });
    const key = `${method} ${path}`;
    seen.set(key, (seen.get(key) ?? new Set()).add(status));
  };
  const everywhere = async (each: (method: string, path: string) => Promise<void>): Promise<void> => {
    for (const [path, operations] of Object.entries(document.paths))
      for (const method of Object.keys(operations)) await each(method, path);
  };
  await everywhere(async (method, path) => {
    await drive(method, path, { from: freshAddress() });
    await drive(method, path, { headers: { authorization: 'Bearer x' }, from: freshAddress() });
    await drive(method, path, { headers: bearer });
    await drive(method, `${path}?governed=true`.replace(/^(?!\/osl\/(schema|domain-map)\?).*$/, path), {
      headers: bearer,
    });
    await drive(method, path, { headers: { authorization: `Bearer ${await own.test.token('user:nil')}` } });
    await drive(method, path, { headers: { authorization: `Bearer ${await own.test.token('user:ann')}` } });
    if (method !== 'post') return;
    await drive(method, path, { headers: { ...bearer, 'content-type': 'text/plain' }, body: 'x' });
    await drive(method, path, { headers: typed, body: long });
    for (const body of bodies) await drive(method, path, { headers: typed, body });
  });
  sealedParts(own.test.service).limiter.configure({
    query: 1,
    sample: 1,
    schema: 1,
    authoring: 1,
    catalog: 1,
  });
  await everywhere(async (method, path) => {
    const all = Array.from({ length: 3 }, () =>
      drive(method, path, { headers: typed, body: method === 'post' ? {} : undefined }),
    );
    await Promise.all(all);
  });
  const stated = (key: string): readonly string[] => {
    const [method = '', path = ''] = key.split(' ');
    return Object.keys(document.paths[path.split('?')[0] ?? '']?.[method]?.responses ?? {});
  };
  for (const [key, statuses] of seen)
    for (const status of statuses) t.ok(stated(key).includes(String(status)), `${key}: ${status}`);
  const all = new Set([...seen.values()].flatMap((statuses) => [...statuses]));
  for (const status of [200, 400, 401, 403, 404, 412, 413, 415, 422, 428, 429, 503])
    t.ok(all.has(status), `${status} was driven`);
});
