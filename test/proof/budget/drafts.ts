import type { Family } from './texts.js';

/** Drafts that are pathological in one way each, of any size: fragments of the shop's manifest, as YAML or JSON. */
const times = (n: number, what: (i: number) => string): string =>
  Array.from({ length: n }, (_, i) => what(i)).join('');
const written = (name: string, at: Family['at']): Family => ({ name, at });
/** As JSON, which needs no lines. */
const json = (name: string, of: (n: number) => unknown): Family =>
  written(name, (n) => JSON.stringify(of(n)));
const members = (n: number, of: (i: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`m${i}`, of(i)]));
const metric = (expression: string, more: object = {}) => ({
  metrics: { m: { entity: 'order', expression, ...more } },
});
const ENTITY = { source: 'db.shop.samples', primary_key: ['id'], columns: ['id', 'words'] };

const chained = (n: number, first: object, of: (before: string) => object) =>
  members(n + 1, (i) => (i === 0 ? first : of(`m${i - 1}`)));
const SUM = { entity: 'order', expression: 'sum(amount)' };

/** Drafts of `n` parts, each of which refers to the part before it twice. */
export const DOUBLING_DRAFTS: readonly Family[] = [
  json('metrics of metrics', (n) => ({
    metrics: chained(n, SUM, (m) => ({ type: 'derived', expression: `${m} + ${m}` })),
  })),
  json('ratios of ratios', (n) => ({
    metrics: chained(n, SUM, (m) => ({ type: 'ratio', numerator: m, denominator: m })),
  })),
  json('computed columns of computed columns', (n) => computedChain(n, (c) => `${c} + ${c}`)),
  json('computed columns by CASE', (n) =>
    computedChain(n, (c) => `case when ${c} > 1 then ${c} else ${c} + 1 end`),
  ),
  json('a metric over computed columns', (n) => ({
    ...computedChain(n, (c) => `${c} + ${c}`),
    metrics: { sum: { entity: 'customer', expression: `sum(m${n})` } },
  })),
  written(
    'aliases of aliases',
    (n) => `l0: &l0 [x, x]\n${times(n, (i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}]\n`)}`,
  ),
];

/** The customer with computed columns `m0` to `m<n>`. */
export function computedChain(n: number, of: (before: string) => string): object {
  const computed = chained(n, { expression: 'id + 1' }, (before) => ({ expression: of(before) }));
  const columns = ['id', 'name', 'email', 'tax_no', 'born', 'region'];
  return { entities: { customer: { source: 'db.shop.customers', primary_key: ['id'], columns, computed } } };
}

export const DRAFTS: readonly Family[] = [
  written(
    'metrics',
    (n) => `metrics:\n${times(n, (i) => `  m${i}: { entity: order, expression: sum(amount) + ${i} }\n`)}`,
  ),
  written(
    'entities',
    (n) =>
      `entities:\n${times(n, (i) => `  e${i}:\n    source: db.shop.samples\n    primary_key: [id]\n    columns: [id, words, flag]\n`)}`,
  ),
  json('entities as JSON', (n) => ({ entities: members(n, () => ENTITY) })),
  json('relationships', (n) => ({
    relationships: members(n, () => ({ from: 'order.customer_id', to: 'customer.id', kind: 'many_to_one' })),
  })),
  json('terms', (n) => ({ lexicon: members(n, () => ({ refers_to: 'customer' })) })),
  json('terms that mean nothing', (n) => ({ lexicon: members(n, (i) => ({ refers_to: `custom${i}` })) })),
  json('synonyms', (n) => ({
    lexicon: { m: { refers_to: 'customer', synonyms: Object.keys(members(n, () => 0)) } },
  })),
  json('tables', (n) => ({
    connectors: {
      db: {
        tables: Object.fromEntries(
          Object.keys(members(n, () => 0)).map((t) => [`shop.${t}`, { columns: { id: { type: 'int4' } } }]),
        ),
      },
    },
  })),
  json('columns of a table', (n) => ({
    connectors: { db: { tables: { 'shop.wide': { columns: members(n, () => ({ type: 'int4' })) } } } },
  })),
  json('metrics of metrics', (n) => ({
    metrics: members(n + 1, (i) =>
      i === 0
        ? { entity: 'order', expression: 'sum(amount)' }
        : { type: 'derived', expression: `m${i - 1} + m${i - 1}` },
    ),
  })),
  json('a metric of many', (n) => ({
    metrics: {
      ...members(200, () => ({ entity: 'order', expression: 'sum(amount)' })),
      all: { type: 'derived', expression: times(n, (i) => `m${i % 200} + `).concat('m0') },
    },
  })),
  json('a sum', (n) => metric(`sum(amount${' + 1'.repeat(n)})`)),
  json('brackets', (n) => metric(`${'('.repeat(n)}sum(amount)${')'.repeat(n)}`)),
  json('a long name in an expression', (n) => metric(`sum(${'x'.repeat(n + 1)})`)),
  json('a pattern', (n) => metric('count(*)', { filter: `note ~ '${'(a*)*'.repeat(n)}'` })),
  json('a pattern of LIKE', (n) => metric('count(*)', { filter: `note like '${'%a'.repeat(n)}'` })),
  json('a filter that doubles', (n) =>
    metric('count(*)', { filter: `${'('.repeat(n)}true${' between false and true)'.repeat(n)}` }),
  ),
  json('a description', (n) => metric('count(*)', { description: 'x'.repeat(n) })),
  json('labels', (n) => ({
    entities: {
      customer: {
        ...ENTITY,
        derived: { mood: { facet: 'none', operator: 'TAG', labels: Object.keys(members(n, () => 0)) } },
      },
    },
  })),
  json('unknown keys', (n) => members(n, () => 1)),
  json('names that are none', (n) => ({
    entities: Object.fromEntries(Object.keys(members(n, () => 0)).map((name) => [`${name} `, ENTITY])),
  })),
  json('columns of an entity', (n) => ({
    entities: { customer: { ...ENTITY, columns: Object.keys(members(n, () => 0)) } },
  })),
  json('one column of an entity', (n) => ({
    entities: { customer: { ...ENTITY, columns: Array.from({ length: n + 1 }, () => 'id') } },
  })),
  written('aliases', (n) => `a: &a [x]\nb: [${times(n, () => '*a, ')}*a]\n`),
  written(
    'aliases of aliases',
    (n) => `l0: &l0 [x, x]\n${times(n, (i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}, *l${i}, *l${i}]\n`)}`,
  ),
  written('anchors', (n) => `a:\n${times(n, (i) => `  m${i}: &n${i} x\n`)}`),
  written(
    'an alias that repeats entities',
    (n) =>
      `entities:\n  e: &e { source: db.shop.samples, primary_key: [id], columns: [id, words] }\n${times(n, (i) => `  e${i}: *e\n`)}`,
  ),
  written('brackets of YAML', (n) => `metrics: ${'['.repeat(n)}${']'.repeat(n)}\n`),
  written('braces of YAML', (n) => `metrics: ${'{a: '.repeat(n)}1${'}'.repeat(n)}\n`),
  written('brackets that do not end', (n) => `metrics: ${'['.repeat(n)}\n`),
  written('indentation', (n) => times(Math.floor(Math.sqrt(n)), (i) => `${' '.repeat(i)}a:\n`)),
  written('dashes', (n) => `metrics:\n  ${'- '.repeat(n)}a\n`),
  written('keys of keys', (n) => `${'? '.repeat(n)}a\n`),
  written('a plain text', (n) => `metrics: ${'x'.repeat(n)}\n`),
  written('a quoted text', (n) => `metrics: "${'\\u0061'.repeat(n)}"\n`),
  written('a quoted text that does not end', (n) => `metrics: "${'x'.repeat(n)}\n`),
  written('a block of text', (n) => `metrics: |\n${'  x\n'.repeat(n)}`),
  written('a folded text', (n) => `metrics: >\n${'  x\n'.repeat(n)}`),
  written('a text over lines', (n) => `metrics:\n${'  x\n'.repeat(n + 1)}`),
  written('comments', (n) => `${'#\n'.repeat(n)}metrics: 1\n`),
  written('a comment', (n) => `metrics: 1 #${'x'.repeat(n)}\n`),
  written('empty lines', (n) => `${'\n'.repeat(n)}metrics: 1\n`),
  written('spaces', (n) => `metrics:${' '.repeat(n)}1\n`),
  written('tabs', (n) => `metrics:${'\t'.repeat(n)}1\n`),
  written('colons', (n) => `metrics: ${'a: '.repeat(n)}1\n`),
  written('documents', (n) => '---\na: 1\n'.repeat(n)),
  written('tags', (n) => `metrics: ${'!a '.repeat(n)}1\n`),
  written('directives', (n) => `${'%TAG ! a\n'.repeat(n)}---\na: 1\n`),
  written('keys that come again', (n) => `metrics:\n${'  a: 1\n'.repeat(n)}`),
  written('merge keys', (n) => `a: &a {x: 1}\nb:\n${'  <<: *a\n'.repeat(n)}`),
  written('digits', (n) => `metrics: ${'1'.repeat(n + 1)}\n`),
  written('a date and more', (n) => `metrics: 2020-01-01${' 00:00'.repeat(n)}\n`),
];
