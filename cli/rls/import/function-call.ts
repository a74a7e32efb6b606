import type { Node } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import type { DatabaseFunction } from '../catalog/catalog.js';
import { schemasOf } from '../function-body.js';
import { calledName, firstTarget, namesOf } from '../nodes.js';
import { eachNode } from '../statement.js';
import { isCallerFunction } from './caller-value.js';
import { type BoundNode, NO_ARGUMENTS, type Range, type Scope } from './scope.js';
import { Untranslatable } from './untranslatable.js';

/** Functions of users by name. */
export interface FunctionBodies {
  /** Functions with this name and number of arguments. */
  named(
    schema: string | null,
    name: string,
    args: number,
    searchPath: readonly string[],
  ): readonly DatabaseFunction[];
  /** The rows of tables that a SECURITY DEFINER function may read. */
  rowsOfOwner(called: DatabaseFunction): (range: Range) => string | null;
}

/** The expression that a call stands for. */
export interface InlinedCall extends BoundNode {
  /** Null: that of the caller. */
  readonly searchPath: readonly string[] | null;
  /** Null: those of the caller. */
  readonly readableRows: ((range: Range) => string | null) | null;
}

const DEPTH = 8;

/** The body of a user's function in place of its call; null for any other node. @throws Untranslatable */
export function inlined(
  node: Node,
  scope: Scope,
  functions: FunctionBodies,
  searchPath: readonly string[],
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
  if (scope.depth > DEPTH) throw new Untranslatable(`${text} calls itself`);
  if (called.strict && args.length > 0) throw new Untranslatable(`${text}, which is STRICT`);
  const bound = new Map<string, BoundNode>();
  for (const [i, arg] of args.entries()) {
    bound.set(`$${i + 1}`, { node: arg, scope });
    const argument = called.argumentNames[i];
    if (argument !== undefined && argument !== '') bound.set(argument, { node: arg, scope });
  }
  const ofDefiner = called.securityDefiner || scope.ofDefiner === true;
  const body = expressionOf(called, text);
  if (ofDefiner && namesCurrentUser(body))
    throw new Untranslatable(`current_user in ${text}: there it is the owner of a SECURITY DEFINER function`);
  return {
    node: body,
    // Only the arguments come from outside: a body does not see the columns around its call.
    scope: {
      ranges: [],
      arguments: bound.size === 0 ? NO_ARGUMENTS : bound,
      outer: null,
      depth: scope.depth + 1,
      ofDefiner,
    },
    searchPath: called.searchPath === null ? null : schemasOf(called.searchPath),
    readableRows: called.securityDefiner ? functions.rowsOfOwner(called) : null,
  };
}

function namesCurrentUser(body: Node): boolean {
  let found = false;
  eachNode(body, (node) => {
    found ||= 'SQLValueFunction' in node && isUser(node.SQLValueFunction.op);
  });
  return found;
}

function isUser(op: string | undefined): boolean {
  return op === 'SVFOP_CURRENT_USER' || op === 'SVFOP_CURRENT_ROLE' || op === 'SVFOP_USER';
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
