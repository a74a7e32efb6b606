import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { parse } from 'yaml';
import {
  DEFAULT_OPTIONS,
  exportModel,
  type ImportResult,
  importModel,
  manifestText,
  ossieText,
} from '../../../interchange/index.js';
import { parseManifest, parsePolicyDocument } from '../../../src/model/manifest/index.js';
import { METRICS_MANIFEST } from '../../language/metrics/shop.js';
import { fc } from '../../support/fast-check.js';
import { bridgeText, facetText } from '../../support/model-text.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { EXAMPLE } from '../cli/support.js';
import { RICH_OSSIE } from './rich.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE } from './shop.js';
import { imported, reportOf } from './support.js';
import { manifests } from './worlds.js';

t.setTimeout(600_000);

function exported(manifest: string): string {
  return ossieText(exportModel({ file: 'manifest.yaml', text: manifest }, null).ossie);
}

function reimported(ossie: string): ImportResult {
  return importModel('ossie', [{ file: 'model.yaml', text: ossie }], DEFAULT_OPTIONS);
}

const MANIFESTS: readonly (readonly [string, string])[] = [
  ['the example and demo', readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8')],
  ['the shop of the metrics', METRICS_MANIFEST],
  ['the shop of the service', SHOP_MANIFEST],
];

for (const [name, text] of MANIFESTS) {
  test(`export and import give back the manifest: ${name}`, async (t) => {
    const before = parseManifest(text, 'manifest.yaml');
    const after = reimported(exported(text));
    t.equal(
      after.manifest.version,
      before.version,
      'whose version is a hash of all it says, also of the order',
    );
    t.same(reportOf(after), []);
    t.same(after.policy.subjects, {});
  });
}

test('export and import give back any manifest', async () => {
  fc.assert(
    fc.property(manifests, (document) => {
      const text = JSON.stringify(document);
      const before = parseManifest(text, 'manifest.yaml');
      const after = reimported(exported(text));
      return after.manifest.version === before.version && after.losses.length === 0;
    }),
    { numRuns: 60, seed: 20261121 },
  );
});

test('the core alone keeps entities, columns, keys, links and what simple metrics add up', async (t) => {
  fc.assert(
    fc.property(manifests, (document) => {
      const text = JSON.stringify(document);
      const before = parseManifest(text, 'manifest.yaml');
      const bare = parse(exported(text)) as { semantic_model: Record<string, unknown>[] };
      for (const model of bare.semantic_model) delete model['custom_extensions'];
      const after = reimported(JSON.stringify(bare)).manifest;
      for (const relation of before.catalog.relations.values()) {
        if (relation.kind === 'facet') continue;
        const now = after.catalog.relations.get(relation.name);
        const shape = (r: typeof relation | undefined): unknown =>
          r?.columns.map((c) => [c.name, c.physical, c.type, c.sensitivity, c.nullable, c.description]);
        t.same(shape(now), shape(relation));
        t.same(now?.primaryKey, relation.primaryKey);
        t.same(
          [now?.connector, now?.schema, now?.table, now?.timeDimension],
          [relation.connector, relation.schema, relation.table, relation.timeDimension],
        );
      }
      for (const link of before.relationships.values()) {
        const now = after.relationships.get(link.name);
        t.same([now?.from, now?.to], [link.from, link.to]);
      }
      for (const metric of before.catalog.metrics.values())
        if (metric.type === 'simple') t.equal(after.catalog.metrics.get(metric.name)?.entity, metric.entity);
      return true;
    }),
    { numRuns: 20, seed: 7 },
  );
});

test('what was imported stays the same over export and import', async (t) => {
  const sources = [
    ['dbt', SHOP_DBT],
    ['cube', SHOP_CUBE],
    ['ossie', SHOP_OSSIE],
    ['ossie', RICH_OSSIE],
  ] as const;
  for (const [format, text] of sources) {
    const first = imported(format, text);
    const once = exported(manifestText(first.document));
    const second = reimported(once);
    t.equal(second.manifest.version, first.manifest.version);
    t.equal(exported(manifestText(second.document)), once, 'byte for byte');
  }
});

const BASE = `
version: 1
connectors:
  db:
    kind: pglite
    tables:
      s.orders: { columns: { id: { type: int4 }, buyer: { type: int4 }, amount: { type: numeric }, mail: { type: text, pii: true }, at: { type: date }, note: { type: text } } }
      s.buyers: { columns: { id: { type: int4 }, name: { type: text } } }
      s.seen: { columns: { order_id: { type: int4 }, buyer_id: { type: int4 } } }
entities:
  orders:
    source: db.s.orders
    primary_key: [id]
    entity_key_columns: [id, buyer]
    columns: { id: , buyer: , amount: , mail: , when: { column: at } }
    time_dimension: when
  buyers: { source: db.s.buyers, primary_key: [id], columns: [id, name] }
relationships: { buyer_of: { from: orders.buyer, to: buyers.id, kind: many_to_one } }
bridges:
${bridgeText('seen', 's.seen', ['orders', 'order_id'], ['buyers', 'buyer_id'])}
metrics:
  revenue: { entity: orders, expression: sum(amount) }
  orders_count: { entity: orders, expression: count(*), filter: amount > 0 }
  so_far: { type: cumulative, metric: revenue }
  share: { type: ratio, numerator: orders_count, denominator: { metric: orders_count, filter: buyer is not null } }
lexicon: { takings: { refers_to: revenue }, clients: { refers_to: buyers } }
raw_sql: { allow: [db.s.orders, db.s.buyers] }
`;

/** The base with what the core of the format cannot express. */
const RICHER = [
  [
    's.seen: {',
    's.notes: { columns: { id: { type: int4 }, order_id: { type: int4 }, body: { type: text } } }\n      s.seen: {',
  ],
  [
    '    time_dimension: when\n',
    `    time_dimension: when
    deprecated: Use sales.
    computed: { twice: { expression: amount * 2, sensitivity: money }, loud: { expression: upper(mail) } }
    legs: [notes]
    derived: { tone: { facet: notes, operator: CLASSIFY, labels: [good, bad] } }
    cache: { max_age: 60 }
`,
  ],
  [', kind: many_to_one }', ', kind: many_to_one, description: Who paid. }'],
  ['expression: sum(amount) }', 'expression: sum(amount), format: { kind: currency, currency: EUR } }'],
  [
    'bridges:\n',
    `facets:\n${facetText('notes', 's.notes', 'orders', 'order_id')}
    versions: { plain: {} }
    retrieval: { max_top_k: 5 }
bridges:\n`,
  ],
  ['raw_sql:', 'rollups: { paid: { entity: orders, measures: [amount], max_age: 60 } }\nraw_sql:'],
].reduce((text, [from = '', to = '']) => {
  if (!text.includes(from)) throw new Error(`the base has no ${from}`);
  return text.replace(from, to);
}, BASE);

/** The exported base after somebody else's tool has worked on it. */
function edited(edit: (model: Edited) => void, base = BASE): ImportResult {
  const file = parse(exported(base)) as { semantic_model: [Edited] };
  edit(file.semantic_model[0]);
  return reimported(JSON.stringify(file));
}

interface Edited {
  name: string;
  datasets: {
    name: string;
    description?: string;
    fields: { name: string; expression: unknown }[];
    custom_extensions?: unknown[];
  }[];
  relationships: { name: string }[];
  metrics: { name: string; expression: unknown }[];
}

const ansi = (expression: string): unknown => ({ dialects: [{ dialect: 'ANSI_SQL', expression }] });

test('what was changed in an exported file counts, and the rest stays whole', async (t) => {
  const described = edited((m) => {
    m.datasets[0] = { ...m.datasets[0], description: 'Sold.' } as Edited['datasets'][number];
  });
  const { entities, connectors, metrics, bridges } = described.document;
  t.equal(entities['orders']?.description, 'Sold.');
  t.same(connectors['db']?.tables['s.orders']?.columns['mail'], { type: 'text', pii: true }, 'labels stay');
  t.equal(entities['orders']?.time_dimension, 'when');
  t.ok(bridges?.['seen'], 'so does the bridge');
  t.match(metrics, { so_far: { type: 'cumulative' }, share: { type: 'ratio' } });

  const grown = edited((m) => {
    m.metrics.push({ name: 'biggest', expression: ansi('MAX(orders.amount)') });
    m.datasets[0]?.fields.push({ name: 'remark', expression: ansi('note') });
  });
  t.match(grown.document.metrics?.['biggest'], { entity: 'orders', expression: 'max(amount)' });
  t.ok(Object.keys(grown.document.entities['orders']?.columns ?? {}).includes('remark'));

  const other = edited((m) => {
    const metric = m.metrics.find((x) => x.name === 'revenue');
    if (metric !== undefined) metric.expression = ansi('SUM(orders.amount * 2)');
  });
  t.equal(other.document.metrics?.['revenue']?.expression, 'sum(amount * 2)', 'never the older meaning');
  t.notOk(other.document.lexicon?.['takings']?.synonyms);

  const less = edited((m) => {
    m.datasets = m.datasets.filter((d) => d.name !== 'buyers');
  });
  t.same(Object.keys(less.document.entities), ['orders']);
  t.match(reportOf(less).join('\n'), /buyers/);
  t.same(less.document.raw_sql, { allow: ['db.s.orders'] });

  const foreign = edited((m) => {
    const [first] = m.datasets;
    if (first !== undefined)
      first.custom_extensions = [...(first.custom_extensions ?? []), { vendor_name: 'DBT', data: '{}' }];
  });
  t.equal(foreign.manifest.version, parseManifest(BASE, 'base').version, 'other vendors change nothing');
  t.match(reportOf(foreign).join('\n'), /extension of `DBT`/);
});

test('a change of an object leaves what the core cannot express of it', async (t) => {
  const before = parseManifest(RICHER, 'richer').document;
  const { document, ...changed } = edited((m) => {
    for (const dataset of m.datasets) if (dataset.name !== 'seen') dataset.description = 'Changed.';
    for (const metric of m.metrics)
      if (metric.name === 'revenue') metric.expression = ansi('SUM(orders.twice * 3)');
  }, RICHER);
  t.equal(document.entities['orders']?.description, 'Changed.');
  for (const key of ['computed', 'derived', 'legs', 'entity_key_columns', 'cache', 'deprecated'] as const)
    t.same(document.entities['orders']?.[key], before.entities['orders']?.[key], key);
  t.same(document.relationships, before.relationships);
  t.match(document.metrics?.['revenue'], { expression: 'sum(twice * 3)', format: { currency: 'EUR' } });
  t.same(
    [document.bridges, document.facets, document.rollups],
    [before.bridges, before.facets, before.rollups],
  );
  t.same(Object.keys(document.entities['orders']?.columns ?? {}), ['id', 'buyer', 'amount', 'mail', 'when']);
  t.notMatch(reportOf({ document, ...changed }).join('\n'), /lost|exposes/);
});

test('what an edit makes impossible is lost with a report, and nothing else', async (t) => {
  const without = (field: string) => (m: Edited) => {
    const orders = m.datasets.find((d) => d.name === 'orders');
    if (orders !== undefined) orders.fields = orders.fields.filter((f) => f.name !== field);
  };
  const less = edited(without('mail'), RICHER);
  t.match(reportOf(less).join('\n'), /lost: a computed column, `loud`, does not fit/);
  t.same(less.document.entities['orders']?.legs, ['notes']);
  t.same(Object.keys(less.document.entities['orders']?.computed ?? {}), ['twice']);
  const needed = edited(without('amount'), RICHER);
  t.match(reportOf(needed).join('\n'), /approximated!: metric `revenue` needs column `amount`/);
  const gone = edited((m) => {
    m.datasets = m.datasets.filter((d) => d.name !== 'orders');
  }, RICHER);
  t.same(Object.keys(gone.document.entities), ['buyers']);
  t.match(reportOf(gone).join('\n'), /rollup `paid`/);
  const none = edited((m) => {
    m.datasets = [];
  });
  t.same([none.document.entities, none.document.raw_sql], [{}, { allow: [] }]);
  const bridge = edited((m) => {
    for (const dataset of m.datasets) if (dataset.name === 'seen') dataset.description = 'Changed.';
  });
  t.match(
    reportOf(bridge).join('\n'),
    /approximated: bridge `seen` was changed, so it was read as an entity/,
  );
});

test('a computed field that was added to an exported file is a computed column, or is reported', async (t) => {
  const add = (name: string, expression: string) => (m: Edited) =>
    m.datasets[0]?.fields.push({ name, expression: ansi(expression) });
  const grown = edited(add('half', 'amount / 2'), RICHER);
  t.same(Object.keys(grown.document.entities['orders']?.computed ?? {}), ['twice', 'loud', 'half']);
  const odd = edited(add('odd', '(select 1)'), RICHER);
  t.match(
    reportOf(odd).join('\n'),
    /lost: `odd` is computed, and does not map|lost: field `odd` does not map/,
  );
  const same = edited(add('Twice', 'amount * 3'), RICHER);
  t.match(same.document.entities['orders']?.computed, { Twice: { expression: 'amount * 3' } });
  t.match(reportOf(same).join('\n'), /lost: computed column `orders\.twice`: a field has its name/);
});

test('a word means one thing: that a synonym is taken is reported, as it is for a term', async (t) => {
  const word = (m: Edited, name: string, ...synonyms: readonly string[]) => {
    for (const dataset of m.datasets)
      if (dataset.name === name) Object.assign(dataset, { ai_context: { synonyms } });
  };
  const both = edited((m) => {
    word(m, 'orders', 'sales', 'deals');
    word(m, 'buyers', 'payers', 'Deals', 'SALES');
  });
  t.match(both.document.lexicon, {
    sales: { refers_to: 'orders', synonyms: ['deals'] },
    payers: { refers_to: 'buyers' },
  });
  t.notOk(both.document.lexicon?.['payers']?.synonyms);
  for (const lost of ['Deals', 'SALES'])
    t.match(reportOf(both).join('\n'), `the word \`${lost}\` means something else already`);
});

test('a metric over a column that a link reaches is in the extension only', async (t) => {
  const metric = "named: { entity: orders, expression: count(*), filter: buyer_of.name = 'x' }";
  const text = BASE.replace('metrics:\n', `metrics:\n  ${metric}\n`);
  const { ossie, losses } = exportModel({ file: 'base', text }, null);
  t.notOk(ossie.semantic_model[0]?.metrics?.some(({ name }) => name === 'named'));
  t.match(
    losses.map(({ reason }) => reason).join('\n'),
    /metric `named` .*`buyer_of\.name` is reached by a link/,
  );
  t.same(reimported(ossieText(ossie)).losses, []);
});

test('a label of a column travels with its field, also without the extension of the model', async (t) => {
  const file = parse(exported(BASE)) as { semantic_model: Record<string, unknown>[] };
  for (const model of file.semantic_model) delete model['custom_extensions'];
  const { document } = reimported(JSON.stringify(file));
  t.match(document.connectors['db']?.tables['s.orders']?.columns['mail'], {
    type: 'text',
    sensitivity: 'pii',
  });
});

const POLICY = `
version: 1
tenant: base
subjects: { user:ann: { ceiling: [all], attributes: { team: red } } }
roles: { all: { grants: [{ on: buyers, columns: "*" }] } }
masks: { pii: redact }
certificates: { batch: { subject: "user:ann", cn: batch.example } }
service_accounts:
  tool: { subject: "user:ann", scram: "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2E=$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" }
`;

test('a policy leaves only when it is asked for, and is taken only when it is asked for', async (t) => {
  const { document } = parsePolicyDocument(POLICY, 'policy.yaml');
  t.notMatch(exported(BASE), /user:ann/);
  const { ossie } = exportModel({ file: 'base', text: BASE }, document);
  const text = ossieText(ossie);
  t.match(text, /user:ann/);
  t.notMatch(text, /SCRAM|batch/, 'rules for logins never leave');
  const without = reimported(text);
  t.same(without.policy.subjects, {});
  t.match(reportOf(without).join('\n'), /lost!: the file carries a policy, which was left out/);
  const file = [{ file: 'model.yaml', text }];
  const taken = importModel('ossie', file, { ...DEFAULT_OPTIONS, withPolicy: true });
  t.match(taken.policy.subjects, { 'user:ann': { ceiling: ['all'] } });
  const model = parse(text) as { semantic_model: { custom_extensions: { data: string }[] }[] };
  for (const extension of model.semantic_model.flatMap((m) => m.custom_extensions)) {
    const held = JSON.parse(extension.data);
    extension.data = JSON.stringify({
      ...held,
      policy: {
        ...held.policy,
        service_accounts: document.service_accounts,
        certificates: document.certificates,
      },
    });
  }
  const forged = [{ file: 'model.yaml', text: JSON.stringify(model) }];
  const { policy } = importModel('ossie', forged, { ...DEFAULT_OPTIONS, withPolicy: true });
  t.match(policy.subjects, { 'user:ann': { ceiling: ['all'] } });
  t.notOk('service_accounts' in policy, 'nor is one taken from a file that has it');
  t.notOk('certificates' in policy);
  const misfit = text
    .replaceAll('\\"on\\":\\"buyers\\"', '\\"on\\":\\"nobody\\"')
    .replaceAll('"on":"buyers"', '"on":"nobody"');
  t.not(misfit, text);
  const refused = importModel('ossie', [{ file: 'model.yaml', text: misfit }], {
    ...DEFAULT_OPTIONS,
    withPolicy: true,
  });
  t.same(refused.policy.subjects, {}, 'one that does not fit grants nothing');
  t.match(reportOf(refused).join('\n'), /lost!: the policy that the file carries does not fit/);
});

test('an extension that is not a manifest is reported, and the core is read', async (t) => {
  for (const data of [
    '{',
    '[]',
    '{"format":2}',
    '{"format":1,"manifest":{"version":1,"__proto__":{}}}',
    `{"format":1,"manifest":${'['.repeat(5000)}${']'.repeat(5000)}}`,
  ]) {
    const file = parse(exported(BASE)) as { semantic_model: Record<string, unknown>[] };
    for (const model of file.semantic_model) model['custom_extensions'] = [{ vendor_name: 'OSL', data }];
    const model = reimported(JSON.stringify(file));
    t.same(Object.keys(model.document.entities), ['orders', 'buyers', 'seen']);
    t.match(reportOf(model).join('\n'), /holds no manifest that loads/);
  }
});
