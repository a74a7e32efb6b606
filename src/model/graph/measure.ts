import { type Access, compile, identifier, type Metric, QueryError, type TypeName } from 'osl-compiler';
import type { Manifest } from '../manifest/index.js';

/** The type of MEASURE of the metric over its entity; null where this access has no such value. The compiler is asked. */
export function measuredType(metric: Metric, manifest: Manifest, access: Access): TypeName | null {
  if (metric.entity === null) return null;
  const text = `SELECT MEASURE(${identifier(metric.name)}) FROM osl.entities.${identifier(metric.entity)}`;
  try {
    return compile(text, manifest.catalog, access).outputs[0]?.type ?? null;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}
