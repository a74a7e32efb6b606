import type { Node } from '@pgsql/types';
import type { Relation } from '../catalog.js';
import { QueryError, queryError } from '../errors.js';
import { parse } from '../parse.js';
import type { Expr } from '../plan.js';
import { positionOfIndex } from '../text.js';
import { mapChildren, someExpr } from '../walk.js';
import { BindContext } from './context.js';
import type { Environment } from './environment.js';
import { bindPredicateNode } from './expression.js';
import { innerScope, type ScopeColumn } from './scope.js';
import { type LiteralForm, settingsFree } from './settings-free.js';

/** What makes an expression a statement, so that the one parser serves both. */
const PREFIX = 'select ';

/** Syntax trees of texts that manifest and policy repeat; nothing changes a tree. */
const NODES = new Map<string, Node>();
const MOST_NODES = 1_000;
/** UTF-16 units; longer texts are parsed each time. */
const LONGEST_KEPT = 2_048;

/** Parses `text` as exactly one value expression: metrics and policy predicates are written so. */
export function expressionNode(text: string): Node {
  const known = NODES.get(text);
  if (known !== undefined) return known;
  const node = parsedExpression(text);
  if (text.length > LONGEST_KEPT) return node;
  if (NODES.size >= MOST_NODES) NODES.clear();
  NODES.set(text, node);
  return node;
}

function parsedExpression(text: string): Node {
  const { node } = parse(`${PREFIX}${text}`);
  const select = 'SelectStmt' in node ? node.SelectStmt : {};
  const target = select.targetList?.[0];
  const value = target !== undefined && 'ResTarget' in target ? target.ResTarget : {};
  const plain = Object.keys(select).every((k) => k === 'targetList' || k === 'limitOption' || k === 'op');
  if (value.val === undefined || value.name !== undefined || select.targetList?.length !== 1 || !plain) {
    throw queryError('syntax', { detail: 'one expression is needed here' });
  }
  return value.val;
}

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
  const ctx = new BindContext(source, NOTHING, NOBODY, { subqueries: false, setOperations: false }, []);
  const columns = new Map(
    relation.columns.map((c): [string, ScopeColumn] => [
      c.name,
      { name: c.name, type: c.type, sealed: false, denied: false, starred: true },
    ]),
  );
  const id = ctx.nextSource();
  const scope = innerScope(null, [{ source: id, alias: relation.name, columns, relation }], new Map());
  const env: Environment = {
    ctx,
    scope,
    clause: 'a policy predicate',
    aggregates: false,
    windows: false,
    namedWindows: new Map(),
    policy: true,
  };
  const bound = bindPredicateNode(expressionNode(text), env);
  const { slots } = ctx.finish();
  if (someExpr(bound, (e) => e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query')) {
    throw queryError('unsupported', { construct: 'a subquery in a policy predicate', hint: null });
  }
  const physical = new Map(relation.columns.map((c) => [c.name, c.physical]));
  const grounded = (e: Expr): Expr => {
    if (e.kind === 'column')
      return Object.freeze({ kind: 'base', column: physical.get(e.name) ?? e.name, type: e.type });
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
