import { InternalError } from '../../errors/errors.js';
import { ascending, columnRef, selectOf } from '../../plan/nodes.js';
import type { Expr, Output, Select, SortKey } from '../../plan/plan.js';
import { stored } from './columns.js';
import { SOURCES_BESIDE, type StoreView } from './scan.js';

/** Passages of which each document keeps the first, with the same outputs, in `order`. */
export function bestOfDocuments(
  { request }: StoreView,
  found: Pick<Select, 'from' | 'where' | 'outputs'>,
  order: readonly string[],
): Pick<Select, 'from' | 'where' | 'outputs' | 'orderBy'> {
  const within = (name: string): Expr => outputNamed(found.outputs, name).expr;
  const document = within(stored('doc_id'));
  const query = selectOf({
    ...found,
    distinctOn: [document],
    orderBy: [document, ...order.map(within)].map(ascending),
  });
  const id = request.source + SOURCES_BESIDE.documents;
  const outputs = found.outputs.map(({ name, expr }, i): Output => {
    return { name, expr: columnRef(id, `c${i + 1}`, expr.type) };
  });
  const orderBy = order.map((name): SortKey => ascending(outputNamed(outputs, name).expr));
  return { from: { kind: 'derived', id, query }, where: [], outputs, orderBy };
}

function outputNamed(outputs: readonly Output[], name: string): Output {
  const output = outputs.find((o) => o.name === name);
  if (output === undefined) throw new InternalError(`the passages have no column ${name}`);
  return output;
}
