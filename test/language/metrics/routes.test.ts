import t, { test } from 'tap';
import { grantsText, manifestText, policyText } from '../../support/model-text.js';
import { startRest } from '../../surfaces/rest/fixture.js';

t.setTimeout(120_000);

/** Relationships from each of `hub0` to `hub3` to the next, so that 11⁴ routes lead to `hub4`. */
const PARALLEL = Array.from({ length: 11 }, (_, i) => `to${i}`);
const HUBS = [0, 1, 2, 3, 4];
/** A chain of single relationships from `hub0` to `last`, declared after those of the hubs. */
const CHAIN = ['hub0', 'mid1', 'mid2', 'mid3', 'mid4', 'last'];

const tables: readonly (readonly [name: string, columns: readonly string[]])[] = [
  ...HUBS.map((n) => [`hub${n}`, ['id', 'next', ...PARALLEL]] as const),
  ...CHAIN.slice(1).map((name) => [name, ['id', 'next']] as const),
];
const links = [
  ...HUBS.slice(1).flatMap((n) =>
    PARALLEL.map((column) => `hub${n - 1}_${column}: { from: hub${n - 1}.${column}, to: hub${n}.id`),
  ),
  ...CHAIN.slice(1).map((to, i) => `${to}_of: { from: ${CHAIN[i]}.next, to: ${to}.id`),
];

test('a single route is found beside thousands of others, and several are refused', async (t) => {
  const rest = await startRest({
    manifest: manifestText(
      'demo',
      Object.fromEntries(
        tables.map(([name, columns]) => [`shop.${name}`, columns.map((c) => `${c} int4`).join(', ')]),
      ),
      `entities:
${tables.map(([name, columns]) => `  ${name}: { source: db.shop.${name}, primary_key: [id], entity_key_columns: [${columns}], columns: [${columns}] }`).join('\n')}
relationships:
${links.map((link) => `  ${link}, kind: many_to_one }`).join('\n')}
metrics:
  rows_of_hub: { entity: hub0, expression: count(*) }
`,
    ),
    policy: policyText(
      'demo',
      { 'user:ann': 'all' },
      `roles:
  all:
    grants:
${grantsText(tables.map(([name]) => name))}
masks: {}
limits: { query: 1000, catalog: 1000 }
`,
    ),
    script: `create schema shop;${tables
      .map(([name, columns]) => `create table shop.${name} (${columns.map((c) => `${c} int4`).join(', ')});`)
      .join('')}
      insert into shop.hub0 (id, next) values (1, 1);
      ${CHAIN.slice(1)
        .map((name) => `insert into shop.${name} (id, next) values (1, 1);`)
        .join('')}`,
  });
  t.teardown(() => rest.close());
  const by = async (dimension: string) =>
    (await rest.ask('user:ann', { metrics: ['rows_of_hub'], group_by: [dimension] })).json();
  t.match(await by('last__next'), { rows: [{ last__next: 1, rows_of_hub: '1' }] });
  t.match(await by('hub4__next'), {
    code: 'E1001',
    detail:
      /`hub0_to0`, `hub1_to0`, `hub2_to0`, `hub3_to0` and by `hub0_to0`, `hub1_to0`, `hub2_to0`, `hub3_to1`/,
  });
});
