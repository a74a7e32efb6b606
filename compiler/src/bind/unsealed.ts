import { type Position, queryError } from '../errors.js';
import { findUnsealedJoin, type UnsealedJoin } from '../join-rule.js';
import type { Query } from '../plan.js';
import type { BindContext } from './context.js';
import { isNameable } from './scope.js';

const DETAILS: Readonly<Record<UnsealedJoin['kind'], string>> = {
  condition: 'a join condition is no equality of sealed keys, one of each side',
  'no condition': 'a join has no equality of sealed keys, one of each side',
  in: 'IN over a subquery is a join, and one of its sides is no sealed key',
  exists: 'EXISTS over a subquery is a join, and has no equality of sealed keys',
  quantified: 'ANY or ALL over a subquery is a join on no sealed key',
  outward: 'a subquery names a column of the query around it outside an equality of sealed keys',
  rows: 'rows made of a subquery are joined on no sealed key',
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

function placeOf({ at }: UnsealedJoin, ctx: BindContext): Position | null {
  return typeof at === 'number' ? ctx.positionOfSource(at) : ctx.positionOf(at);
}

/** The sealed keys that are in reach, and the switch of the manifest where that would help. */
function hintOf({ sides, content }: UnsealedJoin, ctx: BindContext): string {
  const keys = [...new Set(sides)].flatMap((source) => {
    const item = ctx.itemOf(source);
    if (item === undefined || !isNameable(item.alias)) return [];
    return [...item.columns]
      .filter(([shown, c]) => c.sealed && !c.denied && isNameable(shown))
      .map(([shown]) => `${item.alias}.${shown}`);
  });
  const shown = keys.length > MOST_KEYS ? [...keys.slice(0, MOST_KEYS), '…'] : keys;
  const reach = keys.length === 0 ? 'nothing here has a sealed key' : `sealed keys here: ${shown.join(', ')}`;
  return content
    ? `${reach}; passages, walks and evidence are joined on nothing else`
    : `${reach}; \`features.joins: any\` in the manifest allows any other join`;
}
