import { test } from 'tap';
import type { OpenApiSchema as Document, OpenApi } from '../../../clients/generator/generate.js';
import { startRest } from './fixture.js';

const rest = await startRest();
const document = (await rest.send('/openapi.json')).json() as unknown as OpenApi; // valid: see openapi.test

/** Bodies that are answered as they are, and parameters that must be there. */
const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/osl/query': { osql: 'select 1 as a' },
  '/osl/sample': { kind: 'table', name: 'customer' },
  '/osl/suggest': { table: 'db.shop.orders' },
  '/osl/access-requests': { object: 'customer.email', reason: 'a survey' },
  '/osl/approvals/{id}': { decision: 'decline' },
  '/osl/access/explain': { object: 'customer.email', as: 'user:ann' },
  '/osl/validate': { fragment: 'raw_sql: { allow: [] }' },
};
const NEEDED: Readonly<Record<string, string>> = {
  '/osl/schema/resolve': 'term=customer',
  '/osl/why': 'object=osl.entities.customer.email',
};

const operations = Object.entries(document.paths)
  .filter(([path]) => path.startsWith('/osl/'))
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

async function sent(path: string, method: string, query: string, body: unknown = undefined) {
  const token = await rest.test.token('user:root', { roles: ['TENANT_ADMIN'] });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const content = body === undefined ? {} : { body };
  return rest.send(`${path}${query === '' ? '' : `?${query}`}`, { method, headers, ...content });
}

test('versions of the API', async (t) => {
  t.teardown(() => rest.close());

  await t.test('an unknown parameter is refused on every path, by its name', async (t) => {
    t.ok(operations.length >= 9, `${operations.length} operations`);
    for (const { path, method } of operations) {
      const needed = NEEDED[path] ?? '';
      const body = method === 'GET' ? undefined : (BODIES[path] ?? {});
      const query = [needed, 'since_1_7=true'].filter((p) => p !== '').join('&');
      const reply = await sent(path, method, query, body);
      t.match(reply.json(), { status: 400, code: 'E0511', detail: /since_1_7/ }, `${method} ${path}`);
      const [record] = await rest.test.records(reply.requestId);
      t.match(record, { decision: 'error', code: 'E0511', subject: 'user:root' });
      const clean = await sent(path, method, needed, body);
      // What such a path leads to is not there; without a body that it takes, a request is refused for that.
      if (path.includes('{')) t.equal(clean.status, 404, path);
      else if (BODIES[path] !== undefined || method === 'GET')
        t.equal(clean.status, 200, `${path} without it`);
    }
  });

  await t.test('an unknown field of a body is refused on every path, by its name', async (t) => {
    const taking = operations.filter(({ operation }) => operation.requestBody !== undefined);
    t.ok(taking.length >= 4);
    for (const { path, method } of taking) {
      const reply = await sent(path, method, '', { ...BODIES[path], since_1_7: true });
      t.match(reply.json(), { status: 400, code: 'E0511', detail: /since_1_7/ }, path);
    }
    for (const deeper of [
      { metrics: [{ name: 'revenue', since_1_7: true }] },
      { metrics: ['revenue'], group_by: [{ name: 'metric_time', since_1_7: true }] },
      { metrics: ['revenue'], order_by: [{ name: 'revenue', since_1_7: true }] },
      { metrics: ['revenue'], where: [{ sql: 'true', since_1_7: true }] },
      { metrics: ['revenue'], time_constraint: { since_1_7: true } },
    ]) {
      const reply = await sent('/osl/query', 'POST', '', deeper);
      t.match(
        reply.json(),
        { status: 400, code: 'E0511', detail: /no field `since_1_7`/ },
        JSON.stringify(deeper),
      );
    }
    const unknown = { fragment: { since_1_7: {} } };
    t.match(
      (await sent('/osl/validate', 'POST', '', unknown)).json(),
      { ok: false },
      'told in its diagnostics',
    );
  });

  await t.test('the document says so of every request', (t) => {
    for (const { path, operation } of operations) {
      const schema = operation.requestBody?.content['application/json']?.schema;
      if (schema !== undefined) t.strictSame(open(schema), [], path);
    }
    t.end();
  });

  await t.test('answers may get members', async (t) => {
    for (const { path, operation } of operations) {
      for (const { content } of Object.values(operation.responses)) {
        for (const { schema } of Object.values(content ?? {}))
          if (schema !== undefined) t.strictSame(closed(schema), [], path);
      }
    }
  });

  await t.test('there is no v2 yet, and its place is free', async (t) => {
    for (const path of ['/osl/v2', '/osl/v2/', '/osl/v2/query']) {
      t.match(
        (await sent(path, 'POST', '', { osql: 'select 1' })).json(),
        { status: 404, code: 'E4040' },
        path,
      );
    }
    t.notOk(Object.keys(document.paths).some((path) => /^\/osl\/v\d/.test(path)));
  });
});

/** Objects below `schema` for which `wrong` holds, by their members. */
function objectsOf(schema: Document, wrong: (object: Document) => boolean): readonly string[] {
  const named =
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/')[3] ?? ''];
  if (named === undefined) throw new Error(`no component for ${schema.$ref}`);
  const below = [
    ...(named.oneOf ?? []),
    ...(named.anyOf ?? []),
    ...(named.items === undefined ? [] : [named.items]),
    ...Object.values(named.properties ?? {}),
  ].flatMap((one) => objectsOf(one, wrong));
  const own = named.properties !== undefined && wrong(named) ? [Object.keys(named.properties).join()] : [];
  return [...own, ...below];
}

const open = (schema: Document) => objectsOf(schema, (o) => o.additionalProperties !== false);
const closed = (schema: Document) => objectsOf(schema, (o) => o.additionalProperties === false);
