import { compilersOf, PostgresQuery } from './cube-compilers.mjs';

/** Cube's SQL for a pre-aggregation in the database itself, and for questions over it, as JSON on standard output. */
const MODEL = `
cube('Sales', {
  sql: 'SELECT * FROM bench.sale',
  dimensions: {
    id: { sql: 'id', type: 'number', primaryKey: true },
    region: { sql: 'region', type: 'string' },
    kind: { sql: 'kind', type: 'string' },
    at: { sql: 'at', type: 'time' },
  },
  measures: {
    count: { type: 'count' },
    total: { sql: 'amount', type: 'sum' },
    pieces: { sql: 'qty', type: 'sum' },
  },
  preAggregations: {
    main: {
      type: 'rollup',
      external: false,
      measures: [CUBE.count, CUBE.total, CUBE.pieces],
      dimensions: [CUBE.region, CUBE.kind],
      timeDimension: CUBE.at,
      granularity: 'day',
    },
  },
});`;

const QUESTIONS = {
  by_kind: { measures: ['Sales.count', 'Sales.total'], dimensions: ['Sales.kind'] },
  by_month: {
    measures: ['Sales.total'],
    timeDimensions: [{ dimension: 'Sales.at', granularity: 'month', dateRange: ['2026-01-01', '2026-12-31'] }],
  },
};

const compilers = await compilersOf('sales.js', MODEL);

const told = {};
for (const [name, question] of Object.entries(QUESTIONS)) {
  const filters = [{ member: 'Sales.region', operator: 'equals', values: ['eu'] }];
  const shared = { timezone: 'UTC', useNativeSqlPlanner: false, preAggregationsSchema: 'cube_pre' };
  const query = new PostgresQuery(compilers, { ...question, ...shared, filters });
  const [sql, params] = query.buildSqlAndParams();
  const tables = query.preAggregations.preAggregationsDescription();
  told[name] = { sql, params, tables: tables.map((t) => ({ table: t.tableName, load: t.loadSql })) };
}
process.stdout.write(JSON.stringify(told));
