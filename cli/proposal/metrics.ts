import { type Column, identifier, isNumber, type Relation } from 'osl-compiler';
import { isModelName, type Manifest, type ManifestDocument } from '../../src/model/manifest/index.js';
import { moneyOf } from './measures.js';

type Metrics = NonNullable<ManifestDocument['metrics']>;

/** Of one entity, beside its count. */
const MOST_COLUMNS = 4;

/** How many there are of each entity, and sums and averages of its columns that look like money and are not masked. */
export function metricsFor({ entities, catalog, relationships }: Manifest): Metrics {
  const links = new Set(
    [...relationships.values()].flatMap(({ from }) => from.columns.map((c) => `${from.entity}.${c}`)),
  );
  const taken = new Set([...catalog.relations.keys()].map((name) => name.toLowerCase()));
  const metrics: Record<string, Metrics[string]> = Object.create(null);
  const add = (name: string, entity: string, expression: string, description: string): void => {
    const free = freeName(name, taken);
    if (free !== null) metrics[free] = { description, entity, expression };
  };
  for (const entity of entities.keys()) {
    const relation = catalog.relations.get(entity);
    if (relation === undefined) continue;
    add(`${entity}_count`, entity, 'count(*)', `How many ${entity} there are.`);
    for (const { name } of amountsOf(relation, links)) {
      const column = identifier(name);
      if (moneyOf(name) === 'sum and average')
        add(`${entity}_${name}_sum`, entity, `sum(${column})`, `${name}, added up.`);
      add(`${entity}_${name}_average`, entity, `avg(${column})`, `${name}, on average.`);
    }
  }
  return metrics;
}

function amountsOf(
  { name: entity, columns, primaryKey }: Relation,
  links: ReadonlySet<string>,
): readonly Column[] {
  return columns
    .filter((c) => isNumber(c.type) && c.sensitivity === null && moneyOf(c.name) !== null)
    .filter((c) => !primaryKey.includes(c.name) && !links.has(`${entity}.${c.name}`))
    .slice(0, MOST_COLUMNS);
}

/** Null where it would be too long, or is taken. */
function freeName(name: string, taken: Set<string>): string | null {
  const key = name.toLowerCase();
  if (!isModelName(name) || taken.has(key)) return null;
  taken.add(key);
  return name;
}
