import t, { test } from 'tap';
import { parse } from 'yaml';
import type { ModelFormat } from '../../../interchange/index.js';
import { manifestText } from '../../../interchange/index.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { RICH_CUBE, RICH_DBT, RICH_OSSIE } from './rich.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE } from './shop.js';
import { meaning, silentValues } from './silence.js';
import { imported } from './support.js';

t.setTimeout(600_000);

const SOURCES: Readonly<Record<ModelFormat, readonly string[]>> = {
  dbt: [RICH_DBT, SHOP_DBT],
  cube: [RICH_CUBE, SHOP_CUBE],
  ossie: [RICH_OSSIE, SHOP_OSSIE],
};

for (const format of ['dbt', 'cube', 'ossie'] as const) {
  test(`${format}: every value of a source counts for something, or is reported`, async (t) => {
    for (const text of SOURCES[format]) {
      const { silent, values } = silentValues(format, parse(text), { schema: 'shop' });
      t.same(silent, [], `${values} values`);
    }
  });

  test(`${format}: what is imported loads, and is the same each time`, async (t) => {
    for (const text of SOURCES[format]) {
      const first = imported(format, text);
      t.equal(meaning(imported(format, text)), meaning(first));
      const again = parseManifest(manifestText(first.document), 'manifest.yaml');
      t.equal(again.version, first.manifest.version);
      t.same(first.policy.subjects, {}, 'and nobody is granted anything');
    }
  });
}

test('dbt: what a metric is made of comes as names or as mappings, in each place that dbt has for it', (t) => {
  const { document, losses } = imported('dbt', RICH_DBT);
  t.match(document.metrics, {
    both: { type: 'derived', expression: 'riders + fares' },
    mean: { type: 'derived', expression: 'riders * 2' },
    twice: { type: 'derived', expression: 'riders' },
    ever: { type: 'cumulative', metric: 'ever_base' },
    ever_base: { filter: /'first'/ },
    flagged: { entity: 'trip', filter: /^\(?trip_ship\.flag = 'NO'/ },
    boarding: {
      type: 'conversion',
      base: 'boarding_base',
      conversion: 'riders',
      constant_properties: [
        { base: 'ship_id', conversion: 'ship_id' },
        { base: 'class', conversion: 'route_code' },
      ],
      window: '7 days',
      calculation: 'conversions',
    },
    boarding_base: { entity: 'trip', filter: /flag = 'NO'.*'crew'/ },
    boarding_rate: {
      type: 'conversion',
      base: 'riders',
      conversion: 'flagged',
      constant_properties: [{ base: 'trip_id', conversion: 'trip_id' }],
    },
    growth: { type: 'derived', expression: 'fares - growth_before' },
    growth_before: { type: 'offset', metric: 'fares', offset_window: '1 month' },
  });
  const told = new Map(losses.map((l) => [l.path, l.reason]));
  const place = (name: string, key: string): string => {
    const at = (parse(RICH_DBT).metrics as { name: string }[]).findIndex((m) => m.name === name);
    return `/metrics/${at}${key}`;
  };
  t.match(told.get(place('mean', '/numerator')), /has no counterpart/, 'what a derived metric has not');
  t.match(told.get(place('twice', '/input_metrics')), /has no counterpart/, 'a second list');
  t.match(
    told.get(place('growth', '/type_params/metrics/1/offset_window')),
    /a metric of its own, `growth_before`/,
  );
  t.end();
});

test('a dimension that is computed is a computed column, or is named in the report with the reason', (t) => {
  const of = (format: ModelFormat, text: string) => {
    const { document, losses } = imported(format, text);
    const columns = Object.values(document.entities).flatMap((e) =>
      Object.entries(e.computed ?? {}).map(([name, { expression }]) => `${name}: ${expression}`),
    );
    const lost = losses
      .filter((l) => l.kind === 'lost' && l.reason.includes('computed, and'))
      .map((l) => l.reason);
    return { columns, lost };
  };
  t.same(of('dbt', RICH_DBT), { columns: ['is_far: miles > 100'], lost: [] });
  t.same(of('cube', RICH_CUBE), {
    columns: ['far: miles > 100', "band: case when fare > 9 then 'high' else 'low' end"],
    lost: ['dimension `place` (`latitude`) is computed, and not by an expression'],
  });
  t.same(of('ossie', RICH_OSSIE), { columns: ['double_fare: fare * 2'], lost: [] });
  t.end();
});

test('cube: percent and currency are formats, and any other is reported', (t) => {
  const { document } = imported('cube', RICH_CUBE);
  t.match(document.metrics, {
    fares: { format: { kind: 'currency', currency: 'USD' } },
    spread: { format: { kind: 'percent' } },
  });
  t.end();
});

const COMPOSITE_CUBE = `
cubes:
  - name: line
    sql_table: shop.line
    joins:
      - { name: order, relationship: many_to_one, sql: "{CUBE}.no = {order}.no and {order}.country = {CUBE}.country" }
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true }
  - name: order
    sql_table: shop.orders
    joins:
      - { name: line, relationship: one_to_many, sql: "{CUBE}.country = {line}.country AND {line}.no = {CUBE}.no" }
    dimensions:
      - { name: country, sql: country, type: string, primary_key: true }
      - { name: no, sql: no, type: number, primary_key: true }
`;

const COMPOSITE_OSSIE = `
version: "0.2"
semantic_model:
  - name: shop
    datasets:
      - name: line
        source: db.shop.line
        primary_key: [id]
        fields: &fields
          - { name: id, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: id }] } }
          - { name: country, datatype: String, expression: { dialects: [{ dialect: ANSI_SQL, expression: country }] } }
          - { name: no, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: no }] } }
      - { name: order, source: db.shop.orders, primary_key: [country, no], fields: *fields }
    relationships:
      - { name: of_order, from: line, to: order, from_columns: [no, country], to_columns: [no, country] }
      - { name: short, from: line, to: order, from_columns: [no], to_columns: [no] }
`;

/** What `key` is to a column of its own in MetricFlow: an expression, which a manifest has no key of. */
const COMPOSITE_DBT = `
models:
  - name: sale
    columns:
      - { name: country, data_type: text }
      - { name: no, data_type: int }
    constraints: [{ type: primary_key, columns: [country, no] }]
  - name: line
    columns:
      - { name: country, data_type: text }
      - { name: no, data_type: int }
      - { name: article, data_type: int, constraints: [{ type: foreign_key, to: ref('article'), to_columns: [id] }] }
      - { name: maker, data_type: int, constraints: [{ type: foreign_key, expression: 'shop.article (id)' }] }
    constraints:
      - { type: foreign_key, name: of_sale, columns: [no, country], to: ref('sale'), to_columns: [no, country] }
      - { type: foreign_key, columns: [no], to: ref('sale'), to_columns: [no] }
      - { type: foreign_key, columns: [country], to: ref('country') }
      - { type: foreign_key, columns: [no] }
  - name: article
    columns: [{ name: id, data_type: int }]
semantic_models:
  - { name: sale, model: ref('sale'), entities: [{ name: sale, type: primary, expr: country || no }] }
  - name: line
    model: ref('line')
    primary_entity: line
    entities: [{ name: article, type: foreign, expr: article }]
  - { name: article, model: ref('article'), entities: [{ name: article, type: primary, expr: id }] }
`;

test('constraints of dbt are relationships, over several columns too', (t) => {
  const { document, losses } = imported('dbt', COMPOSITE_DBT, {
    schema: 'shop',
    keys: new Map([['line', ['no']]]),
  });
  t.same(document.entities?.['sale']?.primary_key, ['country', 'no']);
  t.same(document.relationships, {
    line_article: { from: 'line.article', to: 'article.id', kind: 'many_to_one' },
    line_article_2: { from: 'line.maker', to: 'article.id', kind: 'many_to_one' },
    line_sale: { from: ['line.no', 'line.country'], to: ['sale.no', 'sale.country'], kind: 'many_to_one' },
  });
  const reasons = losses.map((l) => l.reason).filter((r) => r.includes('foreign key'));
  t.same(reasons.filter((r) => r.includes('does not')).sort(), [
    'a foreign key that does not say where it leads has no counterpart',
    'the foreign key does not map: it leads to other columns than the key of `sale`',
    'the foreign key does not map: no semantic model stands on `country`',
  ]);
  t.end();
});

test('a link over a key of several columns is one relationship', (t) => {
  const cube = imported('cube', COMPOSITE_CUBE);
  t.same(cube.document.relationships, {
    line_order: { from: ['line.country', 'line.no'], to: ['order.country', 'order.no'], kind: 'many_to_one' },
  });
  const once = 'the other cube declares the same link, which is one relationship';
  t.ok(cube.losses.some((l) => l.reason === once));
  const ossie = imported('ossie', COMPOSITE_OSSIE);
  t.same(ossie.document.relationships, {
    of_order: { from: ['line.no', 'line.country'], to: ['order.no', 'order.country'], kind: 'many_to_one' },
  });
  const lost =
    'relationship `short` does not map: `order.no` is not the primary key, so it may not be unique';
  t.ok(ossie.losses.some((l) => l.reason === lost));
  t.end();
});

const OVER_OTHERS = `
cubes:
  - name: line
    sql_table: shop.line
    joins:
      - { name: sale, relationship: many_to_one, sql: "{CUBE}.sale_id = {sale}.id" }
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true }
      - { name: buyer, sql: "{sale.customer}", type: string, description: Who bought it. }
      - { name: place, sql: "upper({sale}.\\"City\\") || {note}", type: string }
      - { name: note, sql: note, type: string }
      - { name: far, sql: "{sale.is_far}", type: boolean }
      - { name: hidden_of_sale, sql: "{sale.internal}", type: string }
      - { name: nowhere, sql: "{shop.name}", type: string }
  - name: sale
    sql_table: shop.sale
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true }
      - { name: customer, sql: customer_name, type: string }
      - { name: is_far, sql: "{CUBE}.reach = 'far'", type: boolean }
      - { name: internal, sql: secret_note, type: string, public: false }
      - { name: some_note, sql: "{line.note}", type: string }
      - { name: lines, sql: "{line.count}", type: number, sub_query: true }
`;

test('cube: a dimension over another cube is a computed column where a join leads to one row of it', (t) => {
  const { document, manifest, losses } = imported('cube', OVER_OTHERS);
  t.same(document.entities['line']?.computed, {
    buyer: { expression: 'sale.customer', description: 'Who bought it.' },
    place: { expression: 'upper(sale."City") || note' },
    far: { expression: 'sale.is_far' },
  });
  t.same(document.entities['sale']?.computed, { is_far: { expression: "reach = 'far'" } });
  t.match(manifest.catalog.relations.get('line')?.computed, [
    { reads: [{ relation: 'line', column: 'sale_id' }, { relation: 'sale' }, { relation: 'sale' }] },
  ]);
  const lost = losses.filter((l) => l.kind === 'lost' && !l.reason.endsWith('has no `type`'));
  t.same(
    lost.map((l) => l.reason),
    [
      '`hidden_of_sale` is computed, and does not map: dimension `internal` of `sale` is not exposed',
      '`nowhere` is computed, and does not map: there is no cube `shop`',
      'dimension `internal` is hidden, so it is not exposed',
      'a computed column, `some_note`, does not fit: object `line` is not declared',
      'dimension `lines` (`sub_query`) is a measure of another cube for each row',
    ],
  );
  t.end();
});

/** An Ossie dataset with these fields, of which the first is the key, and metrics `m1`, `m2`, … */
function dataset(fields: Readonly<Record<string, string>>, metrics: readonly string[]): string {
  const said = (expression: string) => ({ dialects: [{ dialect: 'ANSI_SQL', expression }] });
  const own = Object.entries(fields).map(([name, text]) => ({
    name,
    datatype: 'String',
    expression: said(text),
  }));
  return JSON.stringify({
    version: '0.2',
    semantic_model: [
      {
        name: 'shop',
        datasets: [{ name: 'sale', source: 'db.shop.sale', primary_key: [own[0]?.name], fields: own }],
        metrics: metrics.map((text, i) => ({ name: `m${i + 1}`, expression: said(text) })),
      },
    ],
  });
}

/** Two dbt models: a sale is of a buyer. `region` and `id` are also names of other columns of their tables. */
function dbtSales(buyer: object): string {
  return JSON.stringify({
    models: [
      {
        name: 'buyers',
        columns: [{ name: 'no', data_type: 'int' }],
        constraints: [{ type: 'primary_key', columns: ['id'] }],
      },
    ],
    semantic_models: [
      { name: 'buyers', model: "ref('buyers')", ...buyer },
      {
        name: 'sales',
        model: "ref('sales')",
        entities: [
          { name: 'sale', type: 'primary', expr: 'id' },
          { name: 'buyer', type: 'foreign', expr: 'buyer_no' },
        ],
        dimensions: [
          { name: 'region', type: 'categorical', expr: 'upper(region)' },
          { name: 'id', type: 'categorical', expr: 'old_id' },
        ],
        measures: [{ name: 'regions', agg: 'count_distinct', expr: 'region' }],
      },
    ],
    metrics: ['region', 'id'].map((name) => ({
      name: `by_${name}`,
      type: 'simple',
      type_params: { measure: 'regions' },
      filter: `{{ Dimension('sale__${name}') }} = 'a'`,
    })),
  });
}

test('a name that two things have stands for what it stands for there, or is lost and reported', (t) => {
  const expressions = (fields: Readonly<Record<string, string>>, metrics: readonly string[]) => {
    const { document } = imported('ossie', dataset(fields, metrics));
    return Object.values(document.metrics ?? {}).map(({ expression }) => expression);
  };
  t.same(
    expressions({ id: 'id', region: 'upper(region)' }, ['min(sale.region)', 'max(sale.region)']),
    ['min((upper(region)))', 'max((upper(region)))'],
    'a computed field and the column that it is computed from',
  );
  t.same(
    expressions({ k: 'k', ID: 'a', id: 'b' }, ['max(sale.id)', 'max(sale."ID")']),
    ['max(id_2)', 'max("ID")'],
    'two fields that differ by case alone',
  );
  t.same(expressions({ id: 'id' }, ['median(distinct sale.id)']), [], 'a median of distinct values');

  const keyed = imported('dbt', dbtSales({ entities: [{ name: 'buyer', type: 'primary', expr: 'no' }] }));
  t.match(keyed.document.metrics, { by_id: { filter: "id_2 = 'a'" } }, 'a dimension and a key');
  t.same(Object.keys(keyed.document.metrics ?? {}), ['by_id'], 'a computed dimension and a column');
  t.match(keyed.document.relationships, { sale_buyer: { from: 'sale.buyer_no', to: 'buyer.no' } });
  const others: readonly (readonly [object, Parameters<typeof imported>[2]])[] = [
    [{ entities: [{ name: 'buyer', type: 'primary', expr: 'no' }] }, { keys: new Map([['buyers', ['id']]]) }],
    [{ primary_entity: 'buyer' }, {}],
  ];
  for (const [buyer, options] of others) {
    const { document, losses } = imported('dbt', dbtSales(buyer), options);
    t.same(document.entities['buyer']?.primary_key, ['id']);
    t.equal(document.relationships, undefined, 'no link to a key that is not what the sales name');
    t.ok(losses.some(({ reason }) => reason.endsWith('its entity `buyer` is not the key of `buyer`')));
  }
  t.end();
});
