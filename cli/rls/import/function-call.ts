import type { Node } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import type { DatabaseFunction } from '../catalog/catalog.js';
import { calledName, firstTarget, namesOf } from '../nodes.js';
import { schemasOf } from '../search-path.js';
import { isCallerFunction } from './caller-value.js';
import type { CurrentUser } from './current-user.js';
import {
  type BoundNode,
  FailsInDatabase,
  NO_ARGUMENTS,
  type ReadableRows,
  type Scope,
  Untranslatable,
} from './scope.js';

/** Functions of users by name. */
export interface FunctionBodies {
  /** Functions with this name and number of arguments. */
  named(
    schema: string | null,
    name: string,
    args: number,
    searchPath: readonly string[],
  ): readonly DatabaseFunction[];
  /** The rows of tables that a SECURITY DEFINER function may read, and its current user. */
  asOwner(called: DatabaseFunction): OwnerRights;
}

interface OwnerRights {
  readonly rows: ReadableRows;
  readonly user: CurrentUser;
}

/** The expression that a call stands for. */
export interface InlinedCall extends BoundNode {
  /** Null: that of the caller. */
  readonly searchPath: readonly string[] | null;
  /** Null: those of the current user. */
  readonly rights: OwnerRights | null;
}

const DEPTH = 8;

/** The body of a user's function in place of its call; null for any other node. @throws Untranslatable */
export function inlined(
  node: Node,
  scope: Scope,
  functions: FunctionBodies,
  searchPath: readonly string[],
  user: CurrentUser,
): InlinedCall | null {
  if (!('FuncCall' in node)) return null;
  const names = namesOf(node.FuncCall.funcname);
  const { schema, name } = calledName(node.FuncCall);
  if ((schema === null && names.length > 1) || isCallerFunction(schema, name)) return null; // of pg_catalog
  const args = node.FuncCall.args ?? [];
  const [called, another] = functions.named(schema, name, args.length, searchPath);
  if (called === undefined) return null;
  const text = names.join('.');
  if (another !== undefined) throw new Untranslatable(`there are several functions ${text}`);
  if (!user.mayExecute(called))
    throw new FailsInDatabase(`${text}, which ${user.name} may not execute: the policy fails`);
  if (scope.depth > DEPTH) throw new Untranslatable(`${text} calls itself`);
  if (called.strict && args.length > 0) throw new Untranslatable(`${text}, which is STRICT`);
  const bound = new Map<string, BoundNode>();
  for (const [i, arg] of args.entries()) {
    bound.set(`$${i + 1}`, { node: arg, scope });
    const argument = called.argumentNames[i];
    if (argument !== undefined && argument !== '') bound.set(argument, { node: arg, scope });
  }
  return {
    node: expressionOf(called, text),
    // Only the arguments come from outside: a body does not see the columns around its call.
    scope: {
      ranges: [],
      arguments: bound.size === 0 ? NO_ARGUMENTS : bound,
      outer: null,
      depth: scope.depth + 1,
    },
    searchPath: called.searchPath === null ? null : schemasOf(called.searchPath),
    rights: called.securityDefiner ? functions.asOwner(called) : null,
  };
}

/** The single expression of a function, or its single SELECT as a subquery. */
function expressionOf(called: DatabaseFunction, name: string): Node {
  const statement = statementOf(called);
  if (statement === null) throw new Untranslatable(`${name}, which is no single expression of SQL`);
  const { node } = parsed(statement, name);
  const select = 'SelectStmt' in node ? node.SelectStmt : null;
  const target = select === null ? null : firstTarget(select);
  if (select === null || target === null || select.targetList?.length !== 1)
    throw new Untranslatable(`${name}, which is no SELECT of one value`);
  const plain = select.fromClause === undefined && select.whereClause === undefined;
  if (plain) return target;
  return { SubLink: { subLinkType: called.returnsSet ? 'ARRAY_SUBLINK' : 'EXPR_SUBLINK', subselect: node } };
}

function statementOf({ language, body, bound }: DatabaseFunction): string | null {
  if (language === 'sql' && !bound) return body;
  if (bound) {
    const [, returned] = /^\s*return\s([\s\S]+)$/i.exec(body) ?? [];
    if (returned !== undefined) return `select ${returned}`;
    const [, atomic] = /^\s*begin\s+atomic\s([\s\S]+?);?\s*end\s*$/i.exec(body) ?? [];
    return atomic ?? null;
  }
  if (language !== 'plpgsql') return null;
  const [, query] = /^\s*begin\s+return\s+query\s([\s\S]+?);\s*(?:return;\s*)?end\s*;?\s*$/i.exec(body) ?? [];
  if (query !== undefined) return query;
  const [, returned] = /^\s*begin\s+return\s([\s\S]+?);\s*end\s*;?\s*$/i.exec(body) ?? [];
  return returned === undefined ? null : `select ${returned}`;
}

function parsed(statement: string, name: string): { readonly node: Node } {
  try {
    return parse(statement.trim().replace(/;$/, ''));
  } catch (error) {
    if (error instanceof QueryError) throw new Untranslatable(`${name}: ${error.message}`);
    throw error;
  }
}
