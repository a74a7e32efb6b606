import { type Clipping, type GovernedRuntime, InternalError, queryError } from 'osl-compiler';
import { hydrate } from './hydrate.js';
import { retrieve } from './retrieve.js';
import { traverse } from './traverse.js';
import type { RuntimeInput, RuntimeRows } from './types.js';

export { slotValues } from './slot-values.js';
export { engineOf } from './step.js';
export type { RuntimeInput, RuntimeRows } from './types.js';

/**
 * Works out the runtime relations of `plan`, in order.
 *
 * @throws QueryError E0519 where a cap held rows back, and something is computed of them or nobody could be told
 */
export async function runtimeRows(input: RuntimeInput): Promise<readonly RuntimeRows[]> {
  const rows: RuntimeRows[] = [];
  for (const runtime of input.plan.runtime) {
    const found = await rowsOf(runtime, input);
    if (found.clip !== null && (input.whole || clippingOf(runtime) === 'refused'))
      throw queryError('stepCap', found.clip);
    rows.push(found);
  }
  return rows;
}

/** What the question makes of missing rows. The best passages are all that RETRIEVE is asked for. */
function clippingOf(runtime: GovernedRuntime): Clipping {
  return runtime.kind === 'retrieval' ? 'refused' : runtime.relation.clipping;
}

function rowsOf(runtime: GovernedRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  switch (runtime.kind) {
    case 'retrieval':
      return retrieve(runtime, input);
    case 'traversal':
      return traverse(runtime, input);
    case 'hydration':
      return hydrate(runtime, input);
    default: {
      const unknown: never = runtime;
      throw new InternalError(`unexpected runtime relation ${String(unknown)}`);
    }
  }
}
