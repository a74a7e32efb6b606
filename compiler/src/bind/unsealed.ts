import { type Position, type QueryError, queryError } from '../errors/errors.js';
import { findUnsealedJoin, type UnsealedJoin } from '../plan/join-rule.js';
import type { Query } from '../plan/plan.js';
import { identifier } from '../text/sql-text.js';
import type { Location } from './ast.js';
import type { BindContext } from './context.js';
import { isNameable, type ScopeItem } from './scope.js';

const DETAILS: Readonly<Record<UnsealedJoin['kind'], string>> = {
  condition: 'a join condition must be an equality of sealed keys, one of each side',
  'no condition': 'a join needs an equality of sealed keys, one of each side',
  in: 'IN over a subquery is a join, and both of its sides must be sealed keys',
  exists: 'EXISTS is a join, and needs an equality of sealed keys with the outer query in its WHERE',
  quantified: 'ANY or ALL over a subquery is a join on no sealed key',
  outward:
    'a subquery may name an outer column only in its WHERE, in an equality of sealed keys, one level up',
  rows: 'rows that a function makes of a subquery are a join on no sealed key',
};

/** Names in a hint. */
const MOST_KEYS = 12;

/** @throws QueryError E0514 for a join that breaks the rule */
export function requireSealedJoins(root: Query, ctx: BindContext): void {
  const found = ctx.joins === null ? null : findUnsealedJoin(root, ctx.joins);
  if (found === null) return;
  throw queryError(
    'unsealedJoin',
    { detail: DETAILS[found.kind], hint: hintOf(found, ctx) },
    placeOf(found, ctx),
  );
}

/** E0514 for a condition that no plan can have, as its types or the kind of its join do not allow it. */
export function unsealedCondition(
  items: readonly ScopeItem[],
  content: boolean,
  because: string,
  at: Location,
  ctx: BindContext,
): QueryError {
  ctx.knowItems(items);
  const hint = hintOf({ sides: items.map((i) => i.source), content }, ctx);
  return ctx.error('unsealedJoin', { detail: `${DETAILS.condition}: ${because}`, hint }, at);
}

function placeOf({ at }: UnsealedJoin, ctx: BindContext): Position | null {
  return typeof at === 'number' ? ctx.positionOfSource(at) : ctx.positionOf(at);
}

/** The sealed keys that are in reach, and the switch of the manifest where that would help. */
function hintOf({ sides, content }: Pick<UnsealedJoin, 'sides' | 'content'>, ctx: BindContext): string {
  const keys = [...new Set(sides)].flatMap((source) => {
    const item = ctx.itemOf(source);
    if (item === undefined || !isNameable(item.alias)) return [];
    return [...item.columns]
      .filter(([shown, c]) => c.sealed && !c.denied && isNameable(shown))
      .map(([shown]) => `${identifier(item.alias)}.${identifier(shown)}`);
  });
  const shown = keys.length > MOST_KEYS ? [...keys.slice(0, MOST_KEYS), '…'] : keys;
  const reach = keys.length === 0 ? 'nothing here has a sealed key' : `sealed keys here: ${shown.join(', ')}`;
  return content
    ? `${reach}; passages, walks and evidence are joined on nothing else`
    : `${reach}; \`features.joins: any\` in the manifest allows any condition`;
}
