import type { FuncCall, Node } from '@pgsql/types';
import { ZERO } from '../ast.js';
import type { BindContext } from '../context.js';

/** Functions of Postgres whose arguments have names and are 0 unless given. */
const PARTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['make_interval', ['years', 'months', 'weeks', 'days', 'hours', 'mins', 'secs']],
]);

/**
 * `make_interval(days => 3)` with its arguments in their places; the call itself where it names none, or where its
 * function has no names.
 *
 * @throws QueryError E0511 for a name that the function has not, or that is given twice
 */
export function inPlaces(name: string, call: FuncCall, ctx: BindContext): FuncCall {
  const parts = PARTS.get(name);
  const args = call.args ?? [];
  if (parts === undefined || !args.some((a) => 'NamedArgExpr' in a)) return call;
  const placed = new Map<number, Node>();
  let last = 0;
  for (const [i, arg] of args.entries()) {
    const named = 'NamedArgExpr' in arg ? arg.NamedArgExpr : null;
    const at = named === null ? i : parts.indexOf(named.name ?? '');
    if (at < 0 || placed.has(at)) {
      const detail = `\`${name}\` ${at < 0 ? 'has no argument' : 'is given twice'} \`${named?.name ?? parts[at]}\``;
      throw ctx.mismatch(detail, named?.location ?? call.location, `it takes ${parts.join(', ')}`);
    }
    const value = named === null ? arg : named.arg;
    if (value !== undefined) placed.set(at, value);
    last = Math.max(last, at);
  }
  return { ...call, args: Array.from({ length: last + 1 }, (_, i) => placed.get(i) ?? ZERO) };
}
