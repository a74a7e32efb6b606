import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {} from '@fastify/swagger';
import { fastify } from 'fastify';
import t, { test } from 'tap';
import type { OpenApi } from '../../../clients/generator/generate.js';
import { clientTypes, componentTypes } from '../../../clients/generator/generate.js';
import { OslClient, OslError } from '../../../clients/typescript/client.js';
import { ADMIN_DOCUMENT } from '../../../src/surfaces/admin/operations.js';
import { documentRoutes } from '../../../src/surfaces/rest/openapi/document.js';
import { startRest } from './fixture.js';
import { BREAKS, LARGE, ROWS } from './large.js';

t.setTimeout(600_000);
const TYPES = join(process.cwd(), 'clients', 'typescript', 'types.ts');
const ADMIN_TYPES = join(process.cwd(), 'console', 'src', 'api', 'admin-types.ts');
const rest = await startRest();

function clientOf(fixture: typeof rest, subject: string, more: { fetch?: typeof fetch } = {}): OslClient {
  return new OslClient({
    url: `http://127.0.0.1:${fixture.port}/`,
    token: () => fixture.test.token(subject, { roles: subject === 'user:root' ? ['TENANT_ADMIN'] : [] }),
    ...more,
  });
}

test('the client in TypeScript', async (t) => {
  t.teardown(() => rest.close());
  const osl = clientOf(rest, 'user:ann');

  await t.test('has the types of the document, and the same every time', async (t) => {
    const document = (await rest.send('/openapi.json')).json() as unknown as OpenApi; // valid: see openapi.test
    const written = clientTypes(document);
    if (process.env['OSL_WRITE_CLIENT'] === '1') writeFileSync(TYPES, written);
    t.equal(readFileSync(TYPES, 'utf8'), written, 'run `npm run client` to write it anew');
    t.equal(clientTypes(structuredClone(document)), written);
  });

  await t.test('the console has the types of the admin document', async (t) => {
    const app = fastify();
    await documentRoutes(app, '0', ADMIN_DOCUMENT);
    await app.ready();
    const document = app.swagger() as unknown as OpenApi; // valid: see operations/admin.test
    const { Problem: _, ...schemas } = document.components.schemas; // the console has it from the other document
    const written = componentTypes({ ...document, components: { schemas } });
    if (process.env['OSL_WRITE_CLIENT'] === '1') writeFileSync(ADMIN_TYPES, written);
    t.equal(readFileSync(ADMIN_TYPES, 'utf8'), written, 'run `npm run client` to write it anew');
  });

  await t.test('compiles by itself under strict rules, and refuses what the document does', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'osl-client-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    for (const file of ['client.ts', 'types.ts'])
      cpSync(join(process.cwd(), 'clients', 'typescript', file), join(dir, file));
    writeFileSync(join(dir, 'use.ts'), USE);
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT, include: ['*.ts'] }));
    // The compiler itself: the test runner loads into every Node process what the script around it cannot bear.
    const platform = `typescript-${process.platform}-${process.arch}`;
    const tsc = join(process.cwd(), 'node_modules', '@typescript', platform, 'lib', 'tsc');
    try {
      execFileSync(tsc, ['-p', dir], { encoding: 'utf8' });
      t.pass('compiled');
    } catch (error) {
      t.fail(
        error instanceof Error && 'stdout' in error ? `${error.stdout} ${error.message}` : String(error),
      );
    }
  });

  await t.test('asks, explains, reads the schema and samples', async (t) => {
    const osql = 'select id, name from osl.entities.customer where id <= $1 order by id';
    const answer = await osl.query({ osql, parameters: [2] });
    t.strictSame(answer.rows, [
      { id: 1, name: 'Ada' },
      { id: 2, name: 'Bo' },
    ]);
    t.match(answer, { row_count: 2, truncated: false, form: 'structured' });
    t.match(await osl.query({ sql: 'select id from shop.customers limit 1' }), { row_count: 1 });
    t.match(await osl.query({ metrics: ['revenue'], group_by: ['customer__region'] }), { row_count: 2 });
    const plan = await osl.explain({ osql: 'select id from osl.entities.customer' });
    t.match(plan, { objects: ['osl.entities.customer'], plan: { step: String } });
    t.notOk('rows' in plan);
    const schema = await osl.call('schema', { parameters: { governed: 'true' } });
    t.ok(schema.entities.some((e) => e.name === 'customer'));
    t.match(await osl.call('resolve', { parameters: { term: 'customer' } }), {
      matches: [{ kind: 'entity' }],
    });
    const sample = await osl.call('sample', { body: { kind: 'table', name: 'customer', limit: 2 } });
    t.equal(sample.rows.length, 2);
    t.ok(sample.redacted_columns.length > 0);
    t.strictSame(await osl.call('health'), { status: 'ok' });
    const found = await clientOf(rest, 'user:root').call('candidates');
    t.type(found.candidates, Array);
    const urls: string[] = [];
    const seeing = clientOf(rest, 'user:root', {
      fetch: (input, init) => {
        urls.push(String(input));
        return fetch(input, init);
      },
    });
    const lost = await thrown(seeing.call('publication', { parameters: { id: 'no/such one' } }));
    t.match(lost, { status: 404, problem: { code: 'E4040' } });
    t.strictSame(urls, [`http://127.0.0.1:${rest.port}/osl/objects/no%2Fsuch%20one`]);
  });

  await t.test('throws what was refused, as a problem', async (t) => {
    const refused = await osl
      .query({ osql: 'select nme from osl.entities.customer' })
      .catch((e: unknown) => e);
    t.ok(refused instanceof OslError);
    t.match(refused, {
      status: 400,
      problem: { code: 'E0512', hint: /name/, position: { line: 1, column: 8 } },
      retryAfterSeconds: null,
      message: /^E0512: /,
    });
    t.match(
      await thrown(clientOf(rest, 'user:nil').query({ osql: 'select id from osl.entities.customer' })),
      {
        status: 403,
        problem: { code: 'E2102' },
      },
    );
    const bad = new OslClient({ url: `http://127.0.0.1:${rest.port}`, token: 'x' });
    t.match(await thrown(bad.call('conformance')), { status: 401, problem: { code: 'E3001' } });
    const elsewhere = async () => new Response('<html>', { status: 502, headers: { 'retry-after': '7' } });
    t.match(await thrown(clientOf(rest, 'user:ann', { fetch: elsewhere }).query({ osql: 'select 1' })), {
      status: 502,
      problem: null,
      retryAfterSeconds: 7,
    });
  });

  await t.test('passes over members that it does not know', async (t) => {
    const later = clientOf(rest, 'user:ann', {
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        const lines = (await response.text()).trimEnd().split('\n');
        const grown = lines.map((line) => JSON.stringify(grow(JSON.parse(line)))).join('\n');
        return new Response(grown, { status: response.status, headers: response.headers });
      },
    });
    t.match(await later.query({ osql: 'select 1 as one' }), { rows: [{ one: 1 }], since_1_7: true });
    t.match(await later.call('schema', { parameters: { governed: 'true' } }), {
      entities: [{ since_1_7: true }],
    });
    const seen = [];
    for await (const row of later.rows({ osql: 'select 1 as one' })) seen.push(row);
    t.match(seen, [{ one: 1 }]);
    t.match(await thrown(later.query({ osql: 'select nme' })), { status: 400, problem: { code: 'E0512' } });
  });

  await t.test('takes a column for a column, whatever its name', async (t) => {
    const osql = `select '{"problem": {"status": 500}}'::jsonb as trailer`;
    const rows = osl.rows({ osql });
    t.strictSame((await rows.next()).value, { trailer: { problem: { status: 500 } } });
    t.match(await rows.next(), { done: true, value: { row_count: 1, truncated: false } });
  });
});

test('the client and answers that are long', async (t) => {
  const large = await startRest(LARGE);
  t.teardown(() => large.close());
  const osl = clientOf(large, 'user:ann');
  const osql = 'select id, filler from osl.entities.event order by id';

  let sum = 0;
  for await (const row of osl.rows({ osql })) sum += Number(row['id']);
  t.equal(sum, (ROWS * (ROWS + 1)) / 2, 'every row came once');

  let rows = 0;
  const failing = (async () => {
    for await (const _ of osl.rows({ osql: BREAKS })) rows += 1;
  })();
  t.match(await thrown(failing), { status: 400, problem: { code: 'E0529' } });
  t.ok(rows > 1_000 && rows < ROWS, `${rows} rows came first`);

  for await (const row of osl.rows({ osql })) {
    t.strictSame(row['id'], 1);
    break;
  }
  const cancelled = async () => (await large.test.records()).some((r) => r.outcome === 'cancelled');
  while (!(await cancelled())) await new Promise((resolve) => setTimeout(resolve, 20)); // a loop that is left ends it
});

/** What a call that is refused throws. */
const thrown = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

/** Every object below gets a member that no document of today has. */
function grow(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(grow);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, grow(member)]);
  return { since_1_7: true, ...Object.fromEntries(members) };
}

const STRICT = {
  target: 'es2022',
  lib: ['es2022', 'dom'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitReturns: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  noEmit: true,
};

const USE = `
import { OslClient } from './client.js';
const osl = new OslClient({ url: 'http://localhost', token: 'x' });
export async function use(): Promise<void> {
  const { rows, truncated } = await osl.query({ osql: 'select 1' });
  const known: boolean = truncated;
  // @ts-expect-error a body has one shape
  await osl.query({ osql: 'select 1', limit: 1 });
  // @ts-expect-error no such operation
  await osl.call('delete');
  // @ts-expect-error a sample is of a table or of a facet
  await osl.call('sample', { body: { kind: 'view', name: 'x' } });
  // @ts-expect-error rows are unknown until they are looked at
  const one: number = rows[0]?.['one'];
  const { nodes } = await osl.call('domainMap', { parameters: { governed: 'true' } });
  const kind: 'entity' | 'metric' | 'candidate' | undefined = nodes[0]?.kind;
  console.log(known, one, kind);
}
`;
