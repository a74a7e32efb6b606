import { type GovernedRuntime, InternalError } from 'osl-compiler';
import { hydrate } from './hydrate.js';
import { retrieve } from './retrieve.js';
import { traverse } from './traverse.js';
import type { RuntimeInput, RuntimeRows } from './types.js';

export { slotValues } from './slot-values.js';
export { engineOf } from './step.js';
export type { RuntimeInput, RuntimeRows } from './types.js';

/** Works out the runtime relations of `plan`, in order. */
export async function runtimeRows(input: RuntimeInput): Promise<readonly RuntimeRows[]> {
  const rows: RuntimeRows[] = [];
  for (const runtime of input.plan.runtime) rows.push(await rowsOf(runtime, input));
  return rows;
}

function rowsOf(runtime: GovernedRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  switch (runtime.kind) {
    case 'retrieval':
      return retrieve(runtime.relation, runtime.store, input);
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
