import { type Catalog, compileMetrics, type Edge, emit, type Metric, type Relation } from 'osl-compiler';
import { toQueryRequest } from '../../src/surfaces/rest/bodies/query.js';
import { syntheticModel } from './model.js';

const METRICS: readonly Metric[] = [
  {
    type: 'simple',
    name: 'revenue',
    description: null,
    entity: 'orders',
    expression: 'sum(amount)',
    filter: "status <> 'void'",
  },
  {
    type: 'simple',
    name: 'orders',
    description: null,
    entity: 'orders',
    expression: 'count(*)',
    filter: null,
  },
  {
    type: 'ratio',
    name: 'average',
    description: null,
    entity: 'orders',
    numerator: { metric: 'revenue', filter: null },
    denominator: { metric: 'orders', filter: null },
  },
];

/** Model with orders and the entities that they link to. */
function model() {
  const { catalog, access } = syntheticModel(10, 10);
  const [orders, other] = [...catalog.relations.values()];
  if (orders === undefined || other === undefined) throw new Error('the model has two relations');
  const edge: Edge = {
    name: 'buyer',
    from: orders.name,
    to: other.name,
    fromColumns: ['customer_id'],
    toColumns: ['id'],
    bridge: null,
  };
  const timed: Relation = { ...orders, timeDimension: 'created_at' };
  const relations = new Map([...catalog.relations, [timed.name, timed]]);
  const metrics = new Map(METRICS.map((m) => [m.name, m]));
  const known: Catalog = { ...catalog, relations, metrics, edges: [edge] };
  return { catalog: known, access, to: other.name };
}

/** Times in µs to compile each of `n` different metrics bodies from JSON to governed SQL, without any cache. */
export function timeMetrics(n: number): readonly number[] {
  const { catalog, access, to } = model();
  return Array.from({ length: n }, (_, i) => {
    const text = JSON.stringify({
      metrics: ['revenue', 'orders', 'average'],
      group_by: [`${to}__region`, { name: 'metric_time', grain: 'month' }],
      where: [`{{ Dimension('orders__amount') }} > ${i} and {{ Metric('orders') }} > ${i % 7}`],
      order_by: ['-revenue'],
      limit: 10,
    });
    const start = process.hrtime.bigint();
    const { body } = toQueryRequest(JSON.parse(text));
    if (body.kind === 'metrics') emit(compileMetrics(body.request, catalog, access));
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
}
