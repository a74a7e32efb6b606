import type { CollateClause } from '@pgsql/types';
import { COLLATIONS, explicitCollation } from '../../plan/collations.js';
import type { Expr, Query } from '../../plan/plan.js';
import { allQueries, exprsOf, visitExpr } from '../../plan/walk.js';
import { elementOf, isArray } from '../../types/types.js';
import { nameParts, required } from '../ast.js';
import type { BindContext } from '../context.js';
import type { BindEnvironment } from '../environment.js';
import { bindValue } from './expression.js';

/** Binds `arg COLLATE "C"`. Only the collations of a closed list are supported. */
export function bindCollate(node: CollateClause, env: BindEnvironment): Expr {
  const { ctx } = env;
  const name = nameParts(node.collname).join('.');
  if (!COLLATIONS.has(name)) {
    const hint = `there is ${[...COLLATIONS].map((c) => `"${c}"`).join(', ')}`;
    throw ctx.unsupported(`collation \`${name}\``, node.location, hint);
  }
  const arg = bindValue(required(node.arg), env);
  const { type } = arg;
  const element = isArray(type) ? elementOf(type) : type;
  if (element !== 'text' && element !== 'bpchar') {
    throw ctx.mismatch(`a value of type ${type} has no collation`, node.location, 'collate its text');
  }
  ctx.collates = true;
  return ctx.at(Object.freeze({ kind: 'collate', arg, collation: name, type }), node.location);
}

/** Refuses values with conflicting explicit collations, as Postgres does. @throws QueryError E0511 */
export function refuseCollationsThatMeet(root: Query, ctx: BindContext): void {
  if (!ctx.collates) return;
  for (const query of allQueries(root)) {
    for (const expr of exprsOf(query)) {
      visitExpr(expr, (e) => {
        if (explicitCollation(e) !== 'several') return;
        const detail = 'two collations meet in one value';
        throw ctx.mismatch(detail, ctx.locationOf(e), 'name one collation');
      });
    }
  }
}
