import type { Schema } from '../../../../../clients/typescript/types.js';
import type { Metric, Some } from './protocol.js';

/** The metrics of a schema, those that should not be used any more last. */
export function metricsOf(schema: Schema): readonly Metric[] {
  const all = schema.metrics.map(({ name, description, deprecated, entity, kind, type, format }): Metric => {
    return { name, description, deprecated, entity, kind, type, format };
  });
  return [...all.filter((m) => m.deprecated === null), ...all.filter((m) => m.deprecated !== null)];
}

/** Those of `all` in whose words `term` is, as they stand; all of them for an empty one. */
export function someFound<T>(
  all: readonly T[],
  term: string,
  most: number,
  wordsOf: (one: T) => readonly string[],
): Some<T> {
  const wanted = term.trim().toLowerCase();
  const found =
    wanted === '' ? all : all.filter((one) => wordsOf(one).some((w) => w.toLowerCase().includes(wanted)));
  return { first: found.slice(0, most), total: found.length };
}
