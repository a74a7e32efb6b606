import t, { test } from 'tap';
import type { ModelFormat } from '../../../interchange/index.js';
import { processorMs } from '../../support/processor.js';
import { imported, refusal, reportOf } from './support.js';

t.setTimeout(600_000);

const FORMATS: readonly ModelFormat[] = ['dbt', 'cube', 'ossie'];
const BOMB = `a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]`).join('\n')}\n`;

for (const format of FORMATS) {
  test(`${format}: files that are no such file are refused with their place`, async (t) => {
    const start = processorMs();
    t.match(refusal(format, BOMB), [/M0006 aliases repeat/]);
    t.match(refusal(format, `a: ${'['.repeat(200)}${']'.repeat(200)}`), [/M0005/]);
    t.match(refusal(format, 'a: 1\na: 2\n'), [/^2:1 M0004 `a` is given twice/]);
    t.match(refusal(format, 'a: *nobody\n'), [/M0006/]);
    t.match(refusal(format, '- 1\n'), [/M1001 the file must be a mapping/]);
    t.match(refusal(format, 'a: [1,\n'), [/M0003/]);
    t.match(refusal(format, `a: ${'x'.repeat(17 * 1024 * 1024)}`), [/M0002/]);
    t.match(refusal(format, `${Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n')}\n`), [
      /more than 10000/,
    ]);
    t.ok(processorMs() - start < 20_000);
  });

  test(`${format}: an empty file is an empty manifest`, async (t) => {
    t.same(Object.keys(imported(format, '{}').document.entities), []);
  });
}

/** The wrong kind of value where the format has another. */
const WRONG: readonly (readonly [ModelFormat, string, RegExp])[] = [
  ['dbt', 'semantic_models: { name: x }', /1:1 M1001 `semantic_models` must be a list/],
  ['dbt', 'semantic_models:\n  - name: 5\n    model: ref(1)\n', /2:11 M1001 `name` must be text/],
  ['dbt', 'semantic_models:\n  - { model: "ref(\'x\')" }\n', /2:\d+ M1003 .* has no `name`/],
  ['dbt', 'metrics: [{ name: a, type: simple, type_params: [] }]', /M1001 `type_params` must be a mapping/],
  ['dbt', 'metrics: [{ name: a }, { name: a }]', /M2002 metric `a` is declared twice/],
  ['cube', 'cubes: text', /1:8 M1001 `cubes` must be a list/],
  ['cube', 'cubes: [3]', /M1001/],
  [
    'cube',
    'cubes: [{ name: a, sql_table: a }, { name: A, sql_table: a }]',
    /M2002 cube `A` is declared twice/,
  ],
  [
    'cube',
    'cubes: [{ name: a, sql_table: t, access_policy: everyone }]',
    /M1001 `access_policy` must be a list/,
  ],
  [
    'cube',
    'cubes: [{ name: a, sql_table: t, dimensions: [{ name: x, sql: [1] }] }]',
    /M1001 `sql` must be text/,
  ],
  ['ossie', 'semantic_model: { name: a }', /M1001 `semantic_model` must be a list/],
  ['ossie', 'semantic_model: [{ name: a, datasets: [{ source: a.b }] }]', /M1003 .* has no `name`/],
  [
    'ossie',
    'semantic_model: [{ name: a, datasets: [{ name: d, source: a.b, unique_keys: [x] }] }]',
    /M1001 `unique_keys\[0\]`/,
  ],
  [
    'ossie',
    'semantic_model: [{ name: a, datasets: [{ name: d, source: a.b }, { name: D, source: a.b }] }]',
    /M2002/,
  ],
];

for (const [format, text, wanted] of WRONG) {
  test(`${format}: refused with its place: ${text.slice(0, 60)}`, async (t) => {
    t.match(refusal(format, text).join('\n'), wanted);
  });
}

test('names of the language of the implementation are names like any other', async (t) => {
  const { document } = imported(
    'cube',
    `cubes:
  - name: constructor
    sql_table: '"__proto__"."toString"'
    dimensions:
      - { name: id, sql: '"__proto__"', type: number, primary_key: true }
      - { name: hasOwnProperty, sql: '"constructor"', type: string }
    measures: [{ name: toString, type: count }]
`,
  );
  t.same(Object.keys(document.entities), ['constructor']);
  t.same(Object.keys(document.metrics ?? {}), ['toString']);
  t.equal(({} as Record<string, unknown>)['type'], undefined);
  t.same(document.entities['constructor']?.source, { connector: 'db', table: '__proto__.toString' });
});

/** SQL that would mean more than an expression, in every place that takes one. */
const SMUGGLED = [
  '1; drop table x',
  '1 from secrets',
  '1 as x',
  '1, 2',
  '(select max(pin) from secrets)',
  'total) from secrets --',
  'pg_catalog.pg_sleep(10)',
  "dblink('x', 'y')",
  'sum(total) over ()',
  '*',
  '"\u0001 0"',
  `${'total + '.repeat(900)}total`,
  `${'('.repeat(1500)}total${')'.repeat(1500)}`,
  '$\u007brequire("fs")}',
  "{{ env_var('SECRET') }}",
  '{% set x = 1 %}{{ x }}',
  '{FILTER_PARAMS.a.b.filter("c")}',
];

test('SQL that is more than an expression over the rows makes no metric', async (t) => {
  for (const sql of SMUGGLED) {
    const text = JSON.stringify(sql);
    const cube = imported(
      'cube',
      `cubes: [{ name: a, sql_table: s.a, dimensions: [{ name: total, sql: total, type: number, primary_key: true }], measures: [{ name: m, type: max, sql: ${text} }] }]`,
    );
    const dbt = imported(
      'dbt',
      `semantic_models: [{ name: a, model: "ref('a')", entities: [{ name: a, type: primary, expr: total }], measures: [{ name: m, agg: max, expr: ${text}, create_metric: true }] }]`,
    );
    const ossie = imported(
      'ossie',
      `semantic_model: [{ name: a, datasets: [{ name: d, source: s.d, primary_key: [total] }], metrics: [{ name: m, expression: { dialects: [{ dialect: ANSI_SQL, expression: ${JSON.stringify(`max(${sql})`)} }] } }] }]`,
    );
    for (const model of [cube, dbt, ossie]) {
      const made = Object.keys(model.document.metrics ?? {});
      // Some of it is a plain sum, or a name, in a dialect without braces.
      const text = JSON.stringify(model.document);
      t.notMatch(
        text,
        /secrets|pg_sleep|dblink|require|SECRET|drop|over \(\)/,
        `${sql.slice(0, 30)} ${made}`,
      );
      if (made.length === 0)
        t.ok(
          reportOf(model).some((l) => / lost/.test(l)),
          sql.slice(0, 40),
        );
    }
  }
});

test('what goes in circles ends, and says so', async (t) => {
  const circle = imported(
    'cube',
    `cubes:
  - name: a
    sql_table: s.a
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true }
      - { name: x, sql: "{y}", type: string }
      - { name: y, sql: "{x}", type: string }
    measures: [{ name: m, type: max, sql: "{x}" }, { name: p, type: number, sql: "{q}" }, { name: q, type: number, sql: "{p}" }]
`,
  );
  t.same(Object.keys(circle.document.metrics ?? {}), []);
  t.match(reportOf(circle).join('\n'), /made of itself/);
  const long = Array.from(
    { length: 3000 },
    (_, i) => `{ name: m${i}, type: number, sql: "{m${i + 1}} + 1" }`,
  ).join(', ');
  const chain = imported(
    'cube',
    `cubes: [{ name: a, sql_table: s.a, dimensions: [{ name: id, sql: id, type: number, primary_key: true }], measures: [${long}] }]`,
  );
  t.same(Object.keys(chain.document.metrics ?? {}), [], 'a chain that hangs in the air');
});
