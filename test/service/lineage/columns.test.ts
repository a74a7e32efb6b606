import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ColumnLineage,
  columnLineage,
  compile,
  compileMetrics,
  type GovernedPlan,
  type Influence,
  type MetricsRequest,
  ready,
} from 'osl-compiler';
import t from 'tap';
import { accessOfChain } from '../../../src/service/lineage/description.js';
import { loadModel } from '../../../src/service/model.js';
import { ROOT } from '../../tools/cli/support.js';

/** Column lineage of many questions about the demo, as one text that people can read; the graph is examples/supply-chain. */
const GOLDEN = join(ROOT, 'test', 'service', 'lineage', 'columns.txt');
const EXAMPLE = join(ROOT, 'examples', 'supply-chain');

await ready();
const { manifest, snapshot } = await loadModel(
  join(EXAMPLE, 'manifest.yaml'),
  join(EXAMPLE, 'policy.yaml'),
  null,
);

interface Case {
  readonly name: string;
  readonly caller: string;
  readonly ask: string | MetricsRequest;
}

const analyst = (name: string, ask: string): Case => ({ name, caller: 'user:analyst', ask });

function metrics(name: string, ...groupBy: readonly string[]): MetricsRequest {
  return {
    metrics: [{ name, alias: null }],
    groupBy: groupBy.map((dimension) => ({ name: dimension, grain: null })),
    where: [],
    orderBy: [{ name, grain: null, descending: true }],
    limit: null,
    timeConstraint: null,
    grain: null,
  };
}

const CASES: readonly Case[] = [
  analyst('a column as it is', 'select name from osl.entities.package'),
  analyst('an expression', "select upper(name) || '@' || version as id from osl.entities.package"),
  analyst('a masked column', 'select name, email from osl.entities.person'),
  { name: 'the same, unmasked', caller: 'user:auditor', ask: 'select name, email from osl.entities.person' },
  { name: 'behind a row filter', caller: 'user:counsel', ask: 'select name from osl.entities.package' },
  analyst('a mask within an expression', "select count(*) from osl.entities.person where email like '%@%'"),
  analyst('conditions', "select name from osl.entities.package where dev and license = 'MIT' limit 3"),
  analyst('CASE', 'select case when dev then name else version end as what from osl.entities.package'),
  analyst('coalesce', 'select coalesce(homepage, repository) from osl.entities.package'),
  analyst(
    'aggregates',
    'select license, count(*) as n, count(homepage) as homepages, sum(install_bytes) as bytes from osl.entities.package group by license having max(file_count) > 3 order by 2 desc',
  ),
  analyst(
    'an aggregate with FILTER and ORDER BY',
    "select string_agg(name, ',' order by file_count) filter (where has_types) from osl.entities.package",
  ),
  analyst(
    'an ordered-set aggregate',
    'select percentile_cont(0.5) within group (order by file_count) from osl.entities.package',
  ),
  analyst(
    'a window',
    'select name, rank() over (partition by license order by install_bytes desc) as r, sum(file_count) over (order by path) as running from osl.entities.package',
  ),
  analyst(
    'a sealed join',
    'select p.name, d.range from osl.entities.package p join osl.entities.dependency d on d.from_path = p.path',
  ),
  analyst(
    'a left join and IS NULL',
    'select p.name from osl.entities.package p left join osl.entities.dependency d on d.from_path = p.path where d.kind is null',
  ),
  analyst(
    'a derived table of which a part is used',
    'select s.n from (select name as n, version as v, dev as d from osl.entities.package where optional) s where s.d',
  ),
  analyst(
    'a common table, used twice',
    'with big as (select path, name, install_bytes from osl.entities.package where install_bytes > 1000) select a.name, b.install_bytes from big a join big b on a.path = b.path',
  ),
  analyst(
    'a common table, not used',
    'with spare as (select homepage from osl.entities.package) select version from osl.entities.package',
  ),
  analyst(
    'a scalar subquery',
    'select name, (select max(file_count) from osl.entities.package where dev) as most from osl.entities.package',
  ),
  analyst(
    'IN over a query',
    'select name from osl.entities.package where path in (select from_path from osl.entities.dependency where kind is not null)',
  ),
  analyst(
    'EXISTS',
    'select name from osl.entities.package p where exists (select 1 from osl.entities.dependency d where d.from_path = p.path and d.kind is not null)',
  ),
  analyst('DISTINCT', 'select distinct license, dev from osl.entities.package'),
  analyst(
    'DISTINCT ON',
    'select distinct on (license) license, name from osl.entities.package order by license, version',
  ),
  analyst('UNION', 'select name from osl.entities.package union select id from osl.entities.person'),
  analyst('UNION ALL', 'select name from osl.entities.package union all select id from osl.entities.person'),
  analyst('EXCEPT', 'select name from osl.entities.package except select id from osl.entities.person'),
  analyst('INTERSECT', 'select name from osl.entities.package intersect select id from osl.entities.person'),
  analyst('no data at all', 'select 1 as one'),
  analyst('rows without a column', 'select count(*) from osl.entities.package'),
  analyst('MEASURE', 'select license, MEASURE(bytes_per_file) from osl.entities.package group by license'),
  {
    name: 'a metrics question',
    caller: 'user:analyst',
    ask: metrics('typed_share', 'package__license'),
  },
  {
    name: 'a metric under a row filter',
    caller: 'user:counsel',
    ask: metrics('install_bytes'),
  },
  analyst(
    'RETRIEVE',
    "select text, score, cite, package_path from RETRIEVE(facet => 'readme', query => 'x', top_k => 3)",
  ),
  analyst(
    'RETRIEVE, filtered, with operators',
    "select CLASSIFY(text, ARRAY['a','b']) as c, redacted_fields from RETRIEVE(facet => 'readme', query => 'x', top_k => 3) where file = 'README.md'",
  ),
  {
    name: 'RETRIEVE of visible packages',
    caller: 'user:counsel',
    ask: "select text from RETRIEVE(facet => 'readme', query => 'x', top_k => 3)",
  },
  {
    name: 'RETRIEVE without a grant',
    caller: 'user:admin',
    ask: "select text from RETRIEVE(facet => 'readme', query => 'x', top_k => 3)",
  },
  analyst(
    'TRAVERSE',
    "select name, depth from TRAVERSE(anchor => 'package', target => 'person', keys => ('node_modules/pg'))",
  ),
  analyst(
    'Joint',
    "select name, evidence, readme_topic from osl.entities.package where path in ('node_modules/pg')",
  ),
  analyst(
    'a cross-modal join',
    "select p.name, r.text from osl.entities.package p join RETRIEVE(facet => 'readme', query => 'x', top_k => 3) r on p.path = r.package_path",
  ),
];

function planOf({ caller, ask }: Case): GovernedPlan {
  if (snapshot === null) throw new Error('the example has a policy');
  const access = accessOfChain([caller], snapshot, manifest);
  return typeof ask === 'string'
    ? compile(ask, manifest.catalog, access)
    : compileMetrics(ask, manifest.catalog, access);
}

function shown(plan: GovernedPlan, lineage: ColumnLineage): string {
  const blocks = lineage.outputs.map(({ name, inputs }) => block(name, inputs));
  return [...blocks, block('(rows)', lineage.rows), `objects ${plan.objects.join(', ')}`].join('\n');
}

function block(name: string, inputs: readonly Influence[]): string {
  const lines = inputs.map(({ object, column, transformations }) => {
    const ways = transformations.map((w) =>
      w.type === 'DIRECT'
        ? `${w.subtype}${w.masking ? ' masking' : ''}`
        : `${w.subtype.toLowerCase()}${w.policy ? ' by policy' : ''}`,
    );
    return `    ${object}.${column}: ${ways.join(', ')}`;
  });
  return [`  ${name}`, ...lines].join('\n');
}

t.test('the lineage of each question is the golden one', async (t) => {
  const text = CASES.map((c) => {
    const plan = planOf(c);
    const asked = typeof c.ask === 'string' ? c.ask : JSON.stringify(c.ask);
    return `==== ${c.name}\ncaller  ${c.caller}\nquery   ${asked}\n${shown(plan, columnLineage(plan))}\n`;
  }).join('\n');
  if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(GOLDEN, text);
  t.equal(
    text,
    readFileSync(GOLDEN, 'utf8'),
    'OSL_GOLDEN=rewrite writes test/service/lineage/columns.txt anew',
  );
});

t.test('no object is named that the question does not touch', async (t) => {
  for (const c of CASES) {
    const plan = planOf(c);
    const { outputs, rows } = columnLineage(plan);
    // Passages are shown with their entity only, so that its rows decide too.
    const entities = [...manifest.catalog.facets.values()]
      .filter((f) => plan.objects.includes(`osl.facets.${f.name}`))
      .map((f) => `osl.entities.${f.entity}`);
    for (const { object } of [...outputs.flatMap((o) => o.inputs), ...rows])
      t.ok([...plan.objects, ...entities].includes(object), `${c.name}: ${object}`);
  }
});
