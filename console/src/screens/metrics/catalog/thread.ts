import type { Schema } from '../../../../../clients/typescript/types.js';
import { answerWith } from '../../../parts/thread.js';
import { dimensionsFor } from './dimensions.js';
import { drillQueries } from './drill.js';
import type { CatalogMetric, CatalogQuestions, PartialList } from './protocol.js';

// Worker thread of the metrics screen: parses the schema, finds metrics and dimensions, writes queries for rows.

let schema: Schema | null = null;

function loaded(): Schema {
  if (schema === null) throw new Error('no schema was loaded');
  return schema;
}

answerWith<CatalogQuestions>({
  load: ({ body }) => {
    // The gateway's OpenAPI document declares this type for the response.
    schema = JSON.parse(new TextDecoder().decode(body)) as Schema;
    return { metrics: schema.metrics.length, version: schema.version };
  },
  metrics: ({ term, most }) =>
    someFound(metricsOf(loaded()), term, most, (m) => [m.name, m.description ?? '']),
  known: ({ names }) => {
    const all = new Map(metricsOf(loaded()).map((m) => [m.name, m]));
    return names.flatMap((name) => all.get(name) ?? []);
  },
  drill: (question) => drillQueries(question, loaded()),
  offered: ({ entities, term, most }) =>
    someFound(dimensionsFor(entities, loaded()), term, most, (o) => [o.name, o.description ?? '']),
});

/** Returns the metrics in a schema, deprecated ones last. */
function metricsOf(schema: Schema): readonly CatalogMetric[] {
  const timed = new Map(schema.entities.map((e) => [e.name, e.time_dimension !== null]));
  const all = schema.metrics.map(
    ({ name, description, deprecated, entity, kind, type, format }): CatalogMetric => {
      const time = entity === null ? 'unknown' : timed.get(entity) === true ? 'yes' : 'no';
      return { name, description, deprecated, entity, time, kind, type, format };
    },
  );
  return [...all.filter((m) => m.deprecated === null), ...all.filter((m) => m.deprecated !== null)];
}

/**
 * Returns the first `most` elements of `all` for which one of the texts from `wordsOf` contains `term`, ignoring case,
 * and the total number of matches. An empty term matches every element.
 */
function someFound<T>(
  all: readonly T[],
  term: string,
  most: number,
  wordsOf: (one: T) => readonly string[],
): PartialList<T> {
  const wanted = term.trim().toLowerCase();
  const found =
    wanted === '' ? all : all.filter((one) => wordsOf(one).some((w) => w.toLowerCase().includes(wanted)));
  return { first: found.slice(0, most), total: found.length };
}
