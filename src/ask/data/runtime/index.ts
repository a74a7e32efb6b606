import { assertNever, type CapHandling, type GovernedRuntime, QueryError, queryError } from 'osl-compiler';
import { objectsText, stopError } from '../../../engine/index.js';
import type { RuntimeInput, RuntimeRows } from '../parts.js';
import { hydrate } from './hydrate.js';
import { operate } from './operate.js';
import { retrieve } from './retrieve.js';
import { traverse } from './traverse.js';

export type { RuntimeInput, RuntimeRows } from '../parts.js';
export { slotValues } from './slot-values.js';
export { engineOf } from './step.js';

/**
 * Computes the plan's runtime relations in order. The statement gets their rows as parameters.
 *
 * @throws QueryError E0519 if a cap truncated rows that a result depends on, or if the client cannot be notified of the
 * truncation; E0517 if earlier relations used up the time
 */
export async function runtimeRows(input: RuntimeInput): Promise<readonly RuntimeRows[]> {
  const rows: RuntimeRows[] = [];
  for (const runtime of input.plan.runtime) {
    if (input.signal?.aborted === true) throw stopError(input.signal);
    const result = await rowsOf(runtime, input).catch((error: unknown) => {
      throw withoutStep(error, runtime);
    });
    if (result.clip !== null && (input.whole || clippingOf(runtime) === 'refused'))
      throw queryError('stepCap', result.clip);
    rows.push(result);
  }
  return rows;
}

/** Removes intermediate objects from an error, since the caller may not know that they exist. */
function withoutStep(error: unknown, runtime: GovernedRuntime): unknown {
  if (!(error instanceof QueryError)) return error;
  const objects = objectsText(runtime.kind === 'retrieval' ? [runtime.relation.facet.name] : []);
  switch (error.entry) {
    case 'sourceDenied':
    case 'sourceGone':
    case 'sourceChanged':
      return queryError(error.entry, { objects });
    default:
      return error;
  }
}

/** Returns the handling of truncation: refused for operators, and for RETRIEVE, which would lack some best passages. */
function clippingOf(runtime: GovernedRuntime): CapHandling {
  return runtime.kind === 'retrieval' || runtime.kind === 'operated' ? 'refused' : runtime.relation.clipping;
}

function rowsOf(runtime: GovernedRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  switch (runtime.kind) {
    case 'retrieval':
      return retrieve(runtime, input);
    case 'traversal':
      return traverse(runtime, input);
    case 'hydration':
      return hydrate(runtime, input);
    case 'operated':
      return operate(runtime, input);
    default:
      return assertNever(runtime);
  }
}
