import * as compiler from 'osl-compiler';
import t from 'tap';
import { type Expr, type GovernedScan, type Query, walk } from './internals.js';
import { PROBES, worldOf } from './probes.js';

/**
 * The proofs go through a plan by `plan/walk.ts` alone: an expression or query that a walk passes over is not proved.
 * Here every object of a plan is visited, whatever the field that holds it.
 */
const QUERIES = new Set(['select', 'set_operation', 'values']);
const ITEMS = new Set(['governed', 'derived', 'cte', 'recursion', 'spine', 'rows', 'runtime', 'join']);
/** Fields that refer to definitions and to policy; the sample of a scan, which `verify.ts` looks at by itself. */
const NOT_OF_THE_PLAN = new Set(['definition', 'relation', 'minimum', 'sample']);

const isNode = (value: object): value is { readonly kind: string } =>
  'kind' in value && typeof value.kind === 'string';

/** Expressions and queries in a plan, by all of its fields. */
function nodesOf(root: Query): ReadonlySet<object> {
  const nodes = new Set<object>();
  const next: unknown[] = [root];
  while (next.length > 0) {
    const value = next.pop();
    if (typeof value !== 'object' || value === null) continue;
    const isExpr = isNode(value) && 'type' in value && !ITEMS.has(value.kind);
    if (isExpr || (isNode(value) && QUERIES.has(value.kind))) {
      if (nodes.has(value)) continue;
      nodes.add(value);
    }
    for (const [name, field] of Object.entries(value)) if (!NOT_OF_THE_PLAN.has(name)) next.push(field);
  }
  return nodes;
}

/** The same, by the walks. */
function walked(root: Query): ReadonlySet<object> {
  const nodes = new Set<object>();
  const expression = (e: Expr): void => {
    nodes.add(e);
    for (const child of walk.childrenOf(e)) expression(child);
    const query = walk.queryOf(e);
    if (query !== null) nodes.add(query);
  };
  for (const query of walk.allQueries(root)) {
    nodes.add(query);
    walk.exprsOf(query).forEach(expression);
    const leaves = query.kind === 'select' ? walk.leavesOf(query.from) : [];
    for (const leaf of leaves)
      if (leaf.kind === 'governed') walk.exprsOfScan(leaf as GovernedScan).forEach(expression);
  }
  return nodes;
}

/** Kinds that no probe has. */
const MORE = [
  'select sum(id) over (order by id rows between 1 preceding and 2 following) from hr.employee',
  'select max(id) filter (where id > 1), string_agg(name, region order by id) from hr.employee group by grouping sets ((region), ())',
  "select (array[id, 2])[1], (array[id, 2])[1:2], row(id, name) = row(1, 'a'), id = any(array[1, 2]) from hr.employee",
  'select coalesce(name, \'a\') collate "C", id is distinct from 2, nullif(id, 3) from hr.employee where (name is null) is not true',
  'select id from hr.employee e where exists (select 1 from hr.department d where d.id = e.dept_id) or id in (select id from hr.department) and not (id = (select max(id) from hr.department))',
  'with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select n from r union select id from hr.department order by 1 limit 3 offset 1',
  'select x from generate_series(1, 3) as g(x), (values (1), (2)) v(y) where x = y',
  'select distinct on (region) region, case when id > 1 then extra end from hr.employee order by region, id',
];

await compiler.ready();

t.test('walks reach every expression and query of a plan', (t) => {
  const seen = new Set<string>();
  let plans = 0;
  const texts = [
    ...PROBES.map(({ caller, text, entities }) => ({ caller, text: text.replaceAll('$1', '101'), entities })),
    ...MORE.map((text) => ({ caller: 'clerk' as const, text, entities: false })),
  ];
  for (const { caller, text, entities } of texts) {
    const { catalog, access } = worldOf(compiler, caller);
    let plan: compiler.GovernedPlan;
    try {
      plan = compiler.compile(
        text,
        catalog,
        access,
        entities === true ? { joins: 'any' } : { world: 'physical' },
      );
    } catch (error) {
      if (!(error instanceof compiler.QueryError) || MORE.includes(text)) throw error;
      continue;
    }
    const reached = walked(plan.query);
    const missed = [...nodesOf(plan.query)].filter((node) => !reached.has(node));
    t.strictSame(missed, [], text);
    for (const node of reached) if (isNode(node)) seen.add(node.kind);
    plans += 1;
  }
  t.ok(plans > 60, `${plans} plans`);
  t.ok(seen.size > 30, [...seen].toSorted().join(' '));
  t.end();
});
