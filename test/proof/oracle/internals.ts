import type * as EmitQuery from '../../../compiler/src/emit/emit.js';
import type * as Writer from '../../../compiler/src/emit/writer.js';
import type * as Functions from '../../../compiler/src/functions/resolve.js';
import type * as Minimum from '../../../compiler/src/govern/verify/minimum.js';
import type * as Verify from '../../../compiler/src/govern/verify/verify.js';
import type { Query, Slot } from '../../../compiler/src/plan/plan.js';
import type * as QueryTree from '../../../compiler/src/plan/query-tree.js';
import type * as Walk from '../../../compiler/src/plan/walk.js';

export type { Expr, FromItem, GovernedScan, Query, Select, Slot } from '../../../compiler/src/plan/plan.js';

export async function compiled(file: string): Promise<unknown> {
  return import(new URL(`../../../../compiler/dist/${file}`, import.meta.url).href);
}

// Parts of the compiler that its package does not export: loaded by path, as tsc built them.
export const walk = {
  ...((await compiled('plan/walk.js')) as typeof Walk),
  ...((await compiled('plan/query-tree.js')) as typeof QueryTree),
};
export const { requireOperator } = (await compiled('functions/resolve.js')) as typeof Functions;
export const { verifyMinima } = (await compiled('govern/verify/minimum.js')) as typeof Minimum;
export const { verify } = (await compiled('govern/verify/verify.js')) as typeof Verify;
const query = (await compiled('emit/emit.js')) as typeof EmitQuery;
const writer = (await compiled('emit/writer.js')) as typeof Writer;

/** SQL of a query that `govern` did not vouch for. Only tests can do this: the service has no such door. */
export function emitUngoverned(root: Query, slots: readonly Slot[]) {
  const w = new writer.Writer(slots);
  query.emitQuery(root, w);
  const used = w.slotsUsed().map((i) => {
    const slot = slots[i];
    if (slot === undefined) throw new Error(`parameter ${i} has no slot`);
    return slot;
  });
  return { sql: w.text(), slots: used };
}
