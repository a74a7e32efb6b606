import type { Schema } from '../../../../../clients/typescript/types.js';
import { answerWith } from '../../../parts/thread/answering.js';
import { offeredFor } from '../dimensions/offered.js';
import { metricsOf, someFound } from './metrics.js';
import type { CatalogQuestions } from './protocol.js';

// The thread of the metrics screen: it reads a schema of any size and says what can be picked from it.

let schema: Schema | null = null;

function loaded(): Schema {
  if (schema === null) throw new Error('no schema was loaded');
  return schema;
}

answerWith<CatalogQuestions>({
  load: ({ body }) => {
    // The gateway's own answer, of the type that its document says.
    schema = JSON.parse(new TextDecoder().decode(body)) as Schema;
    return { metrics: schema.metrics.length, version: schema.version };
  },
  metrics: ({ term, most }) =>
    someFound(metricsOf(loaded()), term, most, (m) => [m.name, m.description ?? '']),
  known: ({ names }) => {
    const all = new Map(metricsOf(loaded()).map((m) => [m.name, m]));
    return names.flatMap((name) => all.get(name) ?? []);
  },
  offered: ({ entities, term, most }) =>
    someFound(offeredFor(entities, loaded()), term, most, (o) => [o.name, o.description ?? '']),
});
