import t, { test } from 'tap';
import { exportModel, manifestText } from '../../../interchange/index.js';
import { generatedSql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { readUpstream } from '../../../src/model/discovery/index.js';
import { answerOf, comparable } from '../../language/metrics/answers.js';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE, SHOP_SQL } from './shop.js';
import { imported } from './support.js';

t.setTimeout(600_000);

const POLICY = `
version: 1
tenant: shop
subjects: { user:all: { ceiling: [all] } }
roles: { all: { grants: [{ on: sale, columns: "*" }, { on: client, columns: "*" }] } }
masks: {}
`;

/** What every format can say, each with the answer that was worked out by hand. */
const QUESTIONS: readonly (readonly [string, object, readonly string[]])[] = [
  ['everything', { metrics: ['turnover', 'sales', 'buyers', 'pieces'] }, ['[310.75,7,2,26]']],
  [
    'by a column of its own',
    { metrics: ['sales', 'turnover'], group_by: ['sale__state'] },
    ['["open",2,140]', '["paid",4,170.75]', '["void",1,null]'],
  ],
  [
    'by a column of another entity',
    { metrics: ['turnover', 'pieces'], group_by: ['client__area'] },
    ['["north",200.5,8]', '["south",100.25,18]', '[null,10,null]'],
  ],
  [
    'by month, with a median and a sum of conditions',
    { metrics: ['middle', 'big_sales'], group_by: [{ name: 'metric_time', grain: 'month' }] },
    ['["2026-01-01",80,2]', '["2026-02-01",60,2]'],
  ],
  ['shares', { metrics: ['paid_share', 'per_sale'] }, ['[0.571428571,44.3928571]']],
];

const engine = await openEngine({ kind: 'pglite', dataDir: await emptyDatabaseOfItsOwn() });
await engine.system.script(generatedSql(SHOP_SQL));
const upstream = await readUpstream(engine.system);
await engine.close();

/** The shop as another tool gets it: what an export says without the extension of this gateway. */
function coreOfExport(): string {
  const model = imported('dbt', SHOP_DBT, { schema: 'shop', kind: 'pglite', tenant: 'shop', upstream });
  const { ossie } = exportModel({ file: 'manifest.yaml', text: manifestText(model.document) }, null);
  const models = ossie.semantic_model.map(({ custom_extensions: _, ...core }) => core);
  return JSON.stringify({ ...ossie, semantic_model: models });
}

const WORLDS = [
  ['dbt', 'dbt', SHOP_DBT],
  ['cube', 'cube', SHOP_CUBE],
  ['Ossie', 'ossie', SHOP_OSSIE],
  ['the core of an export', 'ossie', coreOfExport()],
] as const;

for (const [name, format, text] of WORLDS) {
  test(`the shop as ${name} has it answers as the shop does`, async (t) => {
    const model = imported(format, text, {
      schema: 'shop',
      kind: 'pglite',
      tenant: 'shop',
      upstream,
    });
    const rest = await startRest({
      manifest: manifestText(model.document),
      policy: POLICY,
      script: SHOP_SQL,
    });
    t.teardown(() => rest.close());
    for (const [what, body, wanted] of QUESTIONS)
      t.same(comparable(await answerOf(rest, 'user:all', { ...body })), wanted, what);
    if (format === 'ossie') return;
    const running = { metrics: ['pieces_to_date'], group_by: [{ name: 'metric_time', grain: 'day' }] };
    const rows = await answerOf(rest, 'user:all', running);
    t.same(
      rows.find(([day]) => day === '2026-01-31'),
      ['2026-01-31', 6],
      'a running total',
    );
    t.same(
      rows.find(([day]) => day === '2026-02-03'),
      ['2026-02-03', 13],
      'which begins anew',
    );
  });
}
