import { identifier, quoteIdentifier, quoteLiteral } from 'osl-compiler/sql-text';
import type { CatalogContents, EnumModel, FacetModel, MetricsModel } from './contents.js';
import { MODEL_ROLE } from './roles.js';
import { inEntities, literal } from './sql.js';

/** Objects created per transaction; the engine's lock table is small. */
const AT_ONCE = 100;

/**
 * Scripts that create enums, metric views and facet functions before the tables, run as the bootstrap superuser. Each
 * script is one transaction.
 */
export function* ddlOf({ enums, metrics, facets }: CatalogContents): Generator<string> {
  const entities = `GRANT CREATE ON SCHEMA entities TO ${MODEL_ROLE}`;
  const asModel = [entities, `SET LOCAL ROLE ${MODEL_ROLE}`];
  const noMore = ['RESET ROLE', `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`];
  for (const some of slicesOf(enums)) yield script(...asModel, ...some.map(createEnum), ...noMore);
  if (metrics.length > 0) yield script(...METRICS_SCHEMA);
  for (const some of slicesOf(metrics.filter(hasRoom))) yield script(...some.flatMap(metricsView));
  for (const some of slicesOf(facets)) yield script(...some.flatMap(facetFunction));
}

function script(...commands: readonly string[]): string {
  return ['BEGIN READ WRITE', ...commands, 'COMMIT'].join(';\n');
}

function* slicesOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += AT_ONCE) yield items.slice(from, from + AT_ONCE);
}

function createEnum({ name, labels }: EnumModel): string {
  return `CREATE TYPE ${inEntities(name)} AS ENUM (${labels.map(literal).join(', ')})`;
}

const METRICS_SCHEMA = ['CREATE SCHEMA metrics', 'GRANT USAGE ON SCHEMA metrics TO PUBLIC'] as const;

/** Tools look tables up by name alone, so a view must not have its entity's name. */
const METRICS_SUFFIX = '_metrics';
/**
 * Bytes of a Postgres name. If an entity's view name would be truncated, its metrics are listed only in its comment.
 */
const MAX_BYTES = 63;

function hasRoom({ entity }: MetricsModel): boolean {
  return Buffer.byteLength(entity) + METRICS_SUFFIX.length <= MAX_BYTES;
}

/** A view for listing only: the data lane has no such table. */
function metricsView({ entity, metrics }: MetricsModel): readonly string[] {
  const view = `metrics.${quoteIdentifier(`${entity}${METRICS_SUFFIX}`)}`;
  const columns = metrics.map((m) => `NULL::${m.type} AS ${quoteIdentifier(m.name)}`);
  return [
    `CREATE VIEW ${view} AS SELECT ${columns.join(', ')} WHERE false`,
    `GRANT SELECT ON ${view} TO ${MODEL_ROLE}`,
    `COMMENT ON VIEW ${view} IS ${literal(`Metrics of ${entity}: SELECT MEASURE(name) FROM ${identifier(entity)}.`)}`,
    ...metrics.map(({ name, description }) => {
      const words = [description, `Use MEASURE(${identifier(name)}).`].filter((w) => w !== null).join(' ');
      return `COMMENT ON COLUMN ${view}.${quoteIdentifier(name)} IS ${literal(words)}`;
    }),
  ];
}

/** A function for listing only: it raises, since an empty result would be wrong. */
function facetFunction({ name, description, columns }: FacetModel): readonly string[] {
  const given = new Set(columns.map(([column]) => column));
  const takes = [
    ['query', 'text'],
    ['top_k', 'integer'],
  ].map(([argument = '', type = '']) => (given.has(argument) ? type : `${argument} ${type}`));
  const gives = columns.map(([column, type]) => `${quoteIdentifier(column)} ${type}`);
  const call = `RETRIEVE(facet => ${quoteLiteral(name)}, query => '…', top_k => 5)`;
  const body = `BEGIN RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = ${literal(`facet "${name}" is not a function to call`)}, HINT = ${literal(`SELECT … FROM ${call}`)}; END`;
  const words = [description, `Ask ${call}.`].filter((w) => w !== null).join(' ');
  return [
    `CREATE FUNCTION ${inEntities(name)}(${takes.join(', ')}) RETURNS TABLE (${gives.join(', ')}) LANGUAGE plpgsql STABLE AS ${literal(body)}`,
    `COMMENT ON FUNCTION ${inEntities(name)}(text, integer) IS ${literal(words)}`,
  ];
}
