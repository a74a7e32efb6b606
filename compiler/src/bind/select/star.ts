import type { A_Indirection, ResTarget } from '@pgsql/types';
import { columnRef } from '../../plan/nodes.js';
import type { Expr, Output } from '../../plan/plan.js';
import { nearestIdentifier } from '../../text/text.js';
import { type Location, stringOf } from '../ast.js';
import type { Environment } from '../environment.js';
import {
  isMeant,
  isNameable,
  referenceOf,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
  TWICE,
} from '../scope.js';

/** What stands before `.*`: nothing for a bare `*`; null where `target` is no star. */
export function starOf(target: ResTarget): readonly string[] | null {
  const val = target.val;
  if (val !== undefined && 'A_Indirection' in val) return starOfRow(val.A_Indirection);
  if (val === undefined || !('ColumnRef' in val)) return null;
  const fields = val.ColumnRef.fields ?? [];
  const last = fields.at(-1);
  return last === undefined || !('A_Star' in last) ? null : fields.slice(0, -1).map(stringOf);
}

/** `(c).*` of a FROM item, which is `c.*`. */
function starOfRow({ arg, indirection = [] }: A_Indirection): readonly string[] | null {
  const [star, ...more] = indirection;
  if (star === undefined || more.length > 0 || !('A_Star' in star)) return null;
  const fields = arg !== undefined && 'ColumnRef' in arg ? (arg.ColumnRef.fields ?? []) : [];
  return fields.length === 1 ? fields.map(stringOf) : null;
}

/** What a column of an item stands for: itself, or what a computed one is written out to. */
export type ColumnValue = (
  found: { readonly ref: Expr; readonly item: ScopeItem; readonly column: ScopeColumn },
  ctx: Environment['ctx'],
  at: Location,
) => Expr;

/** `*` is every column that the caller may use, in declared order; what USING joined comes first, and once. */
export function expandStar(
  qualifier: readonly string[],
  target: ResTarget,
  env: Environment,
  toValue: ColumnValue,
): readonly Output[] {
  const { scope } = env;
  if (qualifier.length > 0) {
    const item = qualifiedItem(qualifier, target, env);
    return starredColumns(item).map(([shown, c]) => starOutput(item, shown, c, target, env, toValue));
  }
  if (scope.items.length === 0) {
    throw env.ctx.error('syntax', { detail: 'SELECT * with no FROM has nothing to list' }, target.location);
  }
  const ranks = usingRanks(scope);
  const all = scope.items.flatMap((item) =>
    starredColumns(item)
      .filter(([shown]) => item.joined?.has(shown) !== true)
      .map(([shown, c]) => ({ item, shown, c, rank: ranks.get(`${item.source} ${shown}`) ?? ranks.size })),
  );
  return all
    .sort((a, b) => a.rank - b.rank)
    .map(({ item, shown, c }) => starOutput(item, shown, c, target, env, toValue));
}

function starredColumns(item: ScopeItem): readonly (readonly [string, ScopeColumn])[] {
  return [...item.columns].filter(([, c]) => c.starred);
}

/** The columns that USING joined in their order, by source and name. */
function usingRanks({ using = [] }: Scope): ReadonlyMap<string, number> {
  const ranks = new Map<string, number>();
  for (const { source, name } of using) {
    const key = `${source} ${name}`;
    if (!ranks.has(key)) ranks.set(key, ranks.size);
  }
  return ranks;
}

function qualifiedItem(qualifier: readonly string[], target: ResTarget, env: Environment): ScopeItem {
  const { ctx, scope } = env;
  const reference = referenceOf([...qualifier, ''], ctx.world);
  const item = reference === null ? undefined : scope.items.find((i) => isMeant(i, reference));
  if (item !== undefined) return item;
  const near = nearestIdentifier(qualifier.at(-1) ?? '', scope.items.map((i) => i.alias).filter(isNameable));
  throw ctx.error('unknownAlias', { alias: qualifier.join('.'), near }, target.location);
}

function starOutput(
  item: ScopeItem,
  shown: string,
  column: ScopeColumn,
  target: ResTarget,
  { ctx }: Environment,
  toValue: ColumnValue,
): Output {
  const source = column.source ?? item.source;
  ctx.spend(target.location);
  const ref = ctx.at(columnRef(source, column.name, column.type), target.location);
  if (column.computed === undefined && column.merged === undefined) ctx.use(source, column.name);
  const expr: Expr = toValue({ ref, item, column }, ctx, target.location);
  return { name: shown.split(TWICE)[0] ?? shown, expr };
}
