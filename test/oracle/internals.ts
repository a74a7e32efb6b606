import type * as Query from '../../compiler/src/emit/query.js';
import type * as Writer from '../../compiler/src/emit/writer.js';
import type * as Walk from '../../compiler/src/walk.js';

export type { Expr, FromItem, GovernedScan, Query, Select, Slot } from '../../compiler/src/plan.js';

async function compiled(file: string): Promise<unknown> {
  return import(new URL(`../../../compiler/dist/${file}`, import.meta.url).href);
}

// Parts of the compiler that its package does not export: loaded by path, as tsc built them.
export const walk = (await compiled('walk.js')) as typeof Walk;
const query = (await compiled('emit/query.js')) as typeof Query;
const writer = (await compiled('emit/writer.js')) as typeof Writer;

/** SQL of a query that `govern` did not vouch for. Only tests can do this: the service has no such door. */
export function emitUngoverned(
  root: Parameters<typeof query.emitQuery>[0],
  slots: ConstructorParameters<typeof writer.Writer>[0],
) {
  const w = new writer.Writer(slots);
  query.emitQuery(root, w);
  return { sql: w.text(), slots: w.slotsUsed() };
}
