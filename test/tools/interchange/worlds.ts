import { fc } from '../../support/fast-check.js';

/** Manifests that load, of every part that a manifest has. Plain documents, in the order that they are written in. */
export const manifests: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc
  .record({
    tables: fc.integer({ min: 1, max: 4 }),
    seed: fc.array(fc.nat({ max: 1000 }), { minLength: 40, maxLength: 40 }),
    tenant: fc.option(fc.constantFrom('a', 'Tenant_9')),
    facet: fc.boolean(),
    bridge: fc.boolean(),
  })
  .map(({ tables, seed, tenant, facet, bridge }) => world(tables, seed, tenant, facet, bridge));

const TYPES = [
  'int4',
  'int8',
  'int2',
  'text',
  'numeric',
  'float8',
  'float4',
  'bool',
  'uuid',
  'timestamptz',
  'jsonb',
  'text[]',
];
const NAMES = ['id', 'Amount', 'total', 'user', 'select', 'when', 'Group Name', 'ünder', 'a-b', 'x'];
const DESCRIPTIONS = [
  'plain',
  'with: colon',
  "it's",
  '"quoted"',
  'two\nlines',
  '#hash',
  '  spaced  ',
  '1',
  'null',
  '{{ no }}',
];

function world(
  tables: number,
  seed: readonly number[],
  tenant: string | null,
  facet: boolean,
  bridge: boolean,
): Readonly<Record<string, unknown>> {
  let at = 0;
  const below = (n: number): number => (seed[at++ % seed.length] ?? 0) % n;
  const oneOf = (list: readonly string[]): string => list[below(list.length)] ?? '';
  const connectors: Record<string, unknown> = {};
  const entities: Record<string, unknown> = {};
  const relationships: Record<string, unknown> = {};
  const metrics: Record<string, unknown> = {};
  const lexicon: Record<string, unknown> = {};
  const upstream: Record<string, unknown> = {};
  for (let i = 0; i < tables; i++) {
    const name = `${oneOf(['order', 'Item', 'select', 'e'])}_${i}`;
    const columns: Record<string, unknown> = {
      key: { type: 'int8' },
      link: { type: 'int8', nullable: true },
      day: { type: 'date' },
      figure: { type: 'numeric', nullable: false },
    };
    const exposed: Record<string, unknown> = {
      key: null,
      link: null,
      day: null,
      figure: { description: oneOf(DESCRIPTIONS) },
    };
    for (let c = 0; c < below(4); c++) {
      const physical = `${oneOf(NAMES)} ${c}`;
      columns[physical] = {
        type: oneOf(TYPES),
        ...(below(3) === 0 && { sensitivity: oneOf(['pii', 'secret']) }),
        ...(below(4) === 0 && { pii: undefined }),
      };
      exposed[`col_${c}`] = { column: physical, ...(below(2) === 0 && { description: oneOf(DESCRIPTIONS) }) };
    }
    upstream[`${oneOf(['s', 'My Schema'])}${i}.t${i}`] = { columns };
    const table = Object.keys(upstream).at(-1) ?? '';
    const long = below(2) === 0;
    entities[name] = {
      ...(below(2) === 0 && { description: oneOf(DESCRIPTIONS) }),
      source: long ? { connector: 'db', table } : `db.${table}`,
      primary_key: ['key'],
      entity_key_columns: ['key', 'link'],
      columns: below(3) === 0 && Object.keys(exposed).length === 4 ? Object.keys(exposed) : exposed,
      ...(below(2) === 0 && { time_dimension: 'day' }),
      ...(below(4) === 0 && { composition: 'structured' }),
    };
    const timed = JSON.stringify(entities[name]).includes('time_dimension');
    const before = Object.keys(entities)[below(i + 1)] ?? name;
    if (below(2) === 0)
      relationships[`link_${i}`] = {
        from: `${name}.link`,
        to: `${before}.key`,
        kind: 'many_to_one',
        ...(below(2) === 0 && { description: 'leads' }),
      };
    metrics[`sum_${i}`] = {
      entity: name,
      expression: 'sum(figure)',
      ...(below(2) === 0 && {
        filter: oneOf(['link is not null', "day > '2026-01-01'", 'figure > 3 or figure is null']),
      }),
    };
    metrics[`Count_${i}`] = {
      type: 'simple',
      entity: name,
      expression: oneOf([
        'count(*)',
        'count(distinct link)',
        'avg(figure) + 1',
        'count(*) filter (where figure > 1)',
      ]),
      description: oneOf(DESCRIPTIONS),
    };
    metrics[`ratio_${i}`] = {
      type: 'ratio',
      numerator: below(2) === 0 ? `sum_${i}` : { metric: `sum_${i}`, filter: 'figure < 9' },
      denominator: `Count_${i}`,
    };
    metrics[`derived_${i}`] = {
      type: 'derived',
      expression: `sum_${i} * 2 - coalesce("Count_${below(i + 1)}", 0)`,
    };
    if (timed)
      metrics[`running_${i}`] = {
        type: 'cumulative',
        metric: `sum_${i}`,
        ...(below(2) === 0 && { window: '7 days' }),
      };
    if (timed && below(2) === 0)
      metrics[`followed_${i}`] = {
        type: 'conversion',
        base: `sum_${i}`,
        conversion: `Count_${i}`,
        constant_properties: [{ base: 'link', conversion: 'link' }],
        ...(below(2) === 0 && { window: '1 month', calculation: 'conversions' }),
      };
    if (below(2) === 0)
      lexicon[`word ${i}`] = {
        refers_to: oneOf([name, `${name}.day`, `sum_${i}`]),
        ...(below(2) === 0 && { synonyms: [`w${i}`, oneOf(DESCRIPTIONS)] }),
      };
  }
  const [first = ''] = Object.keys(entities);
  const [table = ''] = Object.keys(upstream);
  connectors['db'] = { kind: 'pglite', tables: upstream };
  if (bridge)
    upstream['s.bridge'] = { columns: { a: { type: 'int8' }, b: { type: 'int8' }, c: { type: 'text' } } };
  if (facet)
    upstream['s.docs'] = {
      columns: { id: { type: 'text' }, owner: { type: 'int8' }, body: { type: 'text' } },
    };
  return JSON.parse(
    JSON.stringify({
      version: 1,
      ...(tenant !== null && { tenant }),
      connectors,
      entities,
      ...(Object.keys(relationships).length > 0 && { relationships }),
      ...(bridge && {
        bridges: {
          joined: {
            source: 'db.s.bridge',
            left: { entity: first, columns: ['a'] },
            right: { entity: first, columns: ['b'] },
            columns: { a: null, b: null, see: { column: 'c' } },
            ...(below(2) === 0 && { primary_key: ['a', 'b'] }),
          },
        },
      }),
      ...(facet && {
        facets: {
          text: {
            source: 'db.s.docs',
            entity: first,
            entity_key: 'owner',
            document_id: 'id',
            text: 'body',
            versions: { raw: {} },
            retrieval: { max_top_k: 9 },
          },
        },
      }),
      metrics,
      ...(Object.keys(lexicon).length > 0 && { lexicon }),
      ...(below(2) === 0 && { raw_sql: { allow: [`db.${table}`] } }),
    }),
  ) as Readonly<Record<string, unknown>>;
}
