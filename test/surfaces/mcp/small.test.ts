import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { ROOT } from '../../tools/cli/support.js';
import { type RestFixture, startRest } from '../rest/fixture.js';
import { call, connected } from './support.js';

t.setTimeout(600_000);

/** Bytes of JSON of an answer about one name, and of a page of the index; the message has each twice. */
const NAMED_BYTES = 4_096;
const PAGE_BYTES = 8_192;

const EXAMPLE = join(ROOT, 'examples', 'supply-chain');
const demo = await startRest({
  manifest: readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8'),
  policy: `${readFileSync(join(EXAMPLE, 'policy.yaml'), 'utf8').replace(/^limits:(?:\n .*)*/m, '')}\nlimits: { schema: 100000, catalog: 100000 }\n`,
  script: 'CREATE SCHEMA supply',
  schema: 'supply',
});
t.teardown(() => demo.close());

/** Arguments that a tool takes, and some that it does not, by its schema alone. */
const ARGUMENTS: Readonly<
  Record<string, { readonly taken: readonly object[]; readonly refused: readonly object[] }>
> = {
  semantic_query: {
    taken: [
      { osql: 'select 1', parameters: [1, 'x', true, null, 1.5] },
      {
        metrics: ['Umsatz größer', { name: 'n', alias: null }],
        group_by: [{ name: 'a__b', grain: 'month' }],
        limit: 5,
      },
      {
        metrics: ['n'],
        where: ["{{ Dimension('a__b') }} = 'x'"],
        order_by: ['-n'],
        time_constraint: { start: '2026-01-31' },
      },
    ],
    refused: [{ osq: 'select 1' }, { osql: 1 }, { parameters: [[1]] }, { metrics: ['n'], limit: -1 }],
  },
  semantic_schema: {
    taken: [{}, { names: ['package'], parts: ['entities'] }, { from: 12 }],
    refused: [{ name: ['package'] }, { names: 'package' }, { parts: ['rows'] }, { from: -1 }],
  },
};

/** Keywords of JSON Schema 2020-12 that every reader knows. */
const PORTABLE = new Set(
  'type properties required additionalProperties items enum anyOf description minimum maximum minItems maxItems minLength maxLength'.split(
    ' ',
  ),
);

function keywordsIn(schema: unknown): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(keywordsIn);
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    const below = name === 'properties' ? Object.values(Object(value)) : name === 'enum' ? [] : [value];
    return [name, ...below.flatMap(keywordsIn)];
  });
}

t.test('what tools take is portable JSON Schema', async (t) => {
  const client = await connected(demo, 'user:analyst', 'auto');
  t.teardown(() => client.close());
  const { tools } = await client.listTools();
  t.equal(tools.length, 3);
  const python =
    existsSync('/usr/lib/python3/dist-packages/jsonschema') || process.env['PYTHONPATH'] !== undefined;
  for (const { name, inputSchema } of tools) {
    t.same(
      keywordsIn(inputSchema).filter((keyword) => !PORTABLE.has(keyword)),
      [],
      name,
    );
    const warnings: unknown[] = [];
    const log = (...told: readonly unknown[]): unknown => warnings.push(told);
    const logger = { log, warn: log, error: log };
    const check = new Ajv2020({ strict: true, allowUnionTypes: true, logger }).compile(inputSchema);
    t.same(warnings, [], name);
    const { taken, refused } = ARGUMENTS[name] ?? ARGUMENTS['semantic_query'] ?? { taken: [], refused: [] };
    for (const one of taken) t.ok(check(one), JSON.stringify(one));
    for (const one of refused) t.notOk(check(one), JSON.stringify(one));
    if (!python) continue;
    const told = execFileSync('/usr/bin/python3', ['-c', PYTHON], {
      input: JSON.stringify({ schema: inputSchema, examples: [...taken, ...refused] }),
      encoding: 'utf8',
    });
    t.same(JSON.parse(told), [...taken.map(() => true), ...refused.map(() => false)], `${name} in Python`);
  }
  t.comment(python ? 'read by Python too' : 'python3-jsonschema is not installed');
});

const PYTHON = `
import json, sys
from jsonschema import Draft202012Validator
given = json.load(sys.stdin)
Draft202012Validator.check_schema(given['schema'])
reader = Draft202012Validator(given['schema'])
print(json.dumps([reader.is_valid(one) for one in given['examples']]))`;

/** Bytes of the JSON that the tool answers. */
async function answerOf(rest: RestFixture, subject: string, args: Readonly<Record<string, unknown>>) {
  const client = await connected(rest, subject, 'auto');
  const { content, isError } = await call(client, 'semantic_schema', args);
  await client.close();
  const schema = content['schema'] as Readonly<Record<string, readonly { readonly name: string }[]>>;
  return { bytes: Buffer.byteLength(JSON.stringify(content)), schema, isError, content };
}

/** Every object of the index, page by page, and the bytes of the largest page. */
async function wholeIndex(rest: RestFixture, subject: string) {
  const names: string[] = [];
  let largest = 0;
  for (let from: unknown = 0; typeof from === 'number'; ) {
    const { bytes, schema, content } = await answerOf(rest, subject, from === 0 ? {} : { from });
    largest = Math.max(largest, bytes);
    names.push(...(schema['objects'] ?? []).map(({ name }) => name));
    from = schema['next'];
    if (typeof from === 'number') t.match(content, { truncated: true, hint: new RegExp(`from ${from}`) });
  }
  return { names, largest };
}

t.test('one call about the demo stays small, whatever is asked for by name', async (t) => {
  const { names, largest } = await wholeIndex(demo, 'user:analyst');
  t.ok(names.length >= 10 && names.includes('package'), names.join());
  t.ok(largest <= PAGE_BYTES, `the index has ${largest} bytes`);
  const sizes: Record<string, number> = {};
  for (const name of names) {
    const { bytes, schema } = await answerOf(demo, 'user:analyst', { names: [name] });
    sizes[name] = bytes;
    t.ok(bytes <= NAMED_BYTES, `${name}: ${bytes} bytes`);
    t.ok(
      Object.values(schema).some((list) => list.some((one) => one.name === name)),
      name,
    );
    t.notOk(
      ['functions', 'operators', 'forms'].some((part) => part in schema),
      `${name} alone`,
    );
  }
  t.comment(`index ${largest} bytes; by name ${JSON.stringify(sizes)}`);
});

t.test('a model of 300 entities is told of in pages, each of which stays small', async (t) => {
  const entities = Array.from({ length: 300 }, (_, i) => `entity_${i}`);
  const columns = Array.from({ length: 27 }, (_, i) => `c_${i}`);
  const large = await startRest({
    manifest: JSON.stringify({
      version: 1,
      tenant: 'shop',
      connectors: {
        db: {
          kind: 'pglite',
          tables: Object.fromEntries(
            entities.map((name) => [
              `shop.${name}`,
              { columns: Object.fromEntries(columns.map((c) => [c, { type: 'int4' }])) },
            ]),
          ),
        },
      },
      entities: Object.fromEntries(
        entities.map((name) => [
          name,
          { source: `db.shop.${name}`, primary_key: ['c_0'], columns, description: `What ${name} holds.` },
        ]),
      ),
    }).replaceAll('"kind":"pglite"', '"kind": pglite'),
    policy: JSON.stringify({
      version: 1,
      tenant: 'shop',
      subjects: { 'user:ann': { ceiling: ['all'] } },
      roles: { all: { grants: entities.slice(1).map((on) => ({ on, columns: '*' })) } },
      masks: {},
      limits: { schema: 100_000, catalog: 100_000 },
    }),
    script: 'CREATE SCHEMA shop',
  });
  t.teardown(() => large.close());
  const { names, largest } = await wholeIndex(large, 'user:ann');
  t.same(names, entities.slice(1), 'each once, and none that is hidden');
  t.ok(largest <= PAGE_BYTES, `the largest page has ${largest} bytes`);
  const { bytes } = await answerOf(large, 'user:ann', { names: ['entity_299'] });
  t.ok(bytes <= NAMED_BYTES, `${bytes} bytes of an entity with 27 columns`);
  const lost = await answerOf(large, 'user:ann', {
    names: ['entity_1', ...Array.from({ length: 49 }, (_, i) => `entty_${i}`)],
  });
  t.equal(lost.schema['not_found']?.length, 49);
  const hidden = await answerOf(large, 'user:ann', { names: ['entity_0'] });
  t.match(hidden, {
    isError: true,
    content: { problem: { code: 'E0512', detail: 'object `entity_0` is not declared' } },
  });
});
