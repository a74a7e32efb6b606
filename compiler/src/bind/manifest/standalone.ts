import type { Relation } from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import { QueryError, queryError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { mapChildren, someExpr } from '../../plan/walk.js';
import { positionOfIndex } from '../../text/text.js';
import { BindContext } from '../context.js';
import { type BindEnvironment, plainEnvironment } from '../environment.js';
import { bindPredicateNode } from '../expressions/expression.js';
import { innerScope, type ScopeColumn } from '../scope.js';
import { expressionNode, PREFIX } from './expression-node.js';
import { type LiteralForm, settingsFree } from './settings-free.js';

/**
 * Parses, binds and type-checks a policy predicate over one relation. `attribute('name')` may stand as
 * `column = attribute('name')` or `column in (attribute('name'))`.
 *
 * @returns a predicate over base columns, its literals inside it; it means the same under all settings of a session
 * @throws QueryError with a position in `text`
 */
export function bindPredicate(text: string, relation: Relation): Expr {
  try {
    return bindOver(text, relation);
  } catch (error) {
    throw error instanceof QueryError ? shiftPosition(error, text) : error;
  }
}

const NOTHING = { version: '', relations: new Map(), metrics: new Map(), facets: new Map(), edges: [] };
const NOBODY = { signature: '', policyVersion: '', chainLength: 1, relations: new Map() };

function bindOver(text: string, relation: Relation): Expr {
  const source = { original: `${PREFIX}${text}`, quoted: [] };
  const ctx = new BindContext(source, NOTHING, NOBODY, NO_FEATURES, []);
  const offered = { sealed: false, denied: false, starred: true };
  const columns = new Map<string, ScopeColumn>([
    ...relation.columns.map((c) => [c.name, { ...offered, name: c.name, type: c.type }] as const),
    ...(relation.computed ?? []).map(
      (c) => [c.name, { ...offered, name: c.name, type: c.type, computed: c }] as const,
    ),
  ]);
  const id = ctx.nextSource();
  const scope = innerScope(null, [{ source: id, alias: relation.name, columns, relation }], new Map());
  const env: BindEnvironment = { ...plainEnvironment(ctx, scope, 'a policy predicate'), policy: true };
  const bound = bindPredicateNode(expressionNode(text), env);
  const { slots } = ctx.finish();
  if (someExpr(bound, (e) => e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query')) {
    throw queryError('unsupported', { construct: 'a subquery in a policy predicate', hint: null });
  }
  const declared = new Map(relation.columns.map((c) => [c.name, c]));
  const grounded = (e: Expr): Expr => {
    if (e.kind === 'column') {
      const { physical = e.name, stored } = declared.get(e.name) ?? {};
      return Object.freeze({
        kind: 'base',
        column: physical,
        type: e.type,
        ...(stored !== undefined && { stored }),
      });
    }
    if (e.kind === 'parameter') {
      const slot = slots[e.slot];
      if (slot?.kind !== 'literal')
        throw queryError('unsupported', { construct: '$n in a policy predicate', hint: null });
      return Object.freeze({ kind: 'literal', type: slot.type, value: slot.value });
    }
    return mapChildren(e, grounded, (q) => q);
  };
  return settingsFree(grounded(bound), IN_THE_TREE);
}

const IN_THE_TREE: LiteralForm = {
  valueOf: (e) => (e.kind === 'literal' ? e.value : null),
  make: (value, type) => Object.freeze({ kind: 'literal', value, type }),
};

function shiftPosition(error: QueryError, text: string): QueryError {
  if (error.position === null) return error;
  const index = Math.max(0, error.position.offset - PREFIX.length);
  return new QueryError(error.entry, error.message, { ...error, position: positionOfIndex(text, index) });
}
