import { type Access, compile, type Metric, QueryError, type TypeName } from 'osl-compiler';
import type { Manifest } from '../manifest/index.js';
import { identifier } from './identifier.js';

/** The type of the metric's value; null where this access cannot compute it. The compiler itself is asked. */
export function measuredType(metric: Metric, manifest: Manifest, access: Access): TypeName | null {
  const text = `SELECT MEASURE(${identifier(metric.name)}) FROM osl.entities.${identifier(metric.entity)}`;
  try {
    return compile(text, manifest.catalog, access).outputs[0]?.type ?? null;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}
