import type { FuncCall, Node } from '@pgsql/types';
import {
  OPERATORS,
  type OperatorArgument,
  type OperatorName,
  operatorNamed,
} from '../../catalog/operators.js';
import { columnRef } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { TypeName } from '../../types/types.js';
import { firstLocation, type Location, nameParts } from '../ast.js';
import { bindExpression } from '../expressions/expression.js';
import { coerce, typeOfBound } from '../expressions/operands.js';
import { type BindEnvironment, resolveColumn } from '../scope.js';
import { refuseComputed } from './named-arguments.js';
import type { RowOperators } from './row-operators.js';

/** Binds an operator call; null for an ordinary function such as `EXTRACT(year FROM x)` or `rank() OVER (…)`. */
export function bindOperatorCall(node: FuncCall, env: BindEnvironment): Expr | null {
  const name = operatorNamed(nameParts(node.funcname).join('.'));
  if (name === null || node.over !== undefined || node.funcformat === 'COERCE_SQL_SYNTAX') return null;
  const [over, ...rest] = node.args ?? [];
  if (over === undefined || !('ColumnRef' in over)) return null;
  const { ctx, scope } = env;
  const parts = (over.ColumnRef.fields ?? []).map((f) => ('String' in f ? (f.String.sval ?? '') : '*'));
  const { item, column, level } = resolveColumn(scope, parts, ctx, over.ColumnRef.location);
  const draft = level === 0 ? item.retrieval : undefined;
  if (
    level === 0 &&
    item.retrieval === undefined &&
    scope.operators !== undefined &&
    ctx.world === 'semantic'
  )
    return overRows(name, over, rest, node.location, scope.operators, env);
  if (draft === undefined || column.name !== 'text') {
    // The argument is neither the text of passages nor a column of the SELECT's own rows.
    const detail = `operator ${name} maps over the \`text\` of a RETRIEVE, or a text of the rows of its own SELECT`;
    throw ctx.mismatch(detail, node.location, `SELECT ${signatureOf(name)} FROM RETRIEVE(…)`);
  }
  // Checked before the arguments, because the error does not depend on them.
  if (OPERATORS[name].class === 'decoder' && !ctx.hasDecoder)
    throw ctx.error('noDecoder', { operator: name }, node.location);
  const given = bindArguments(name, rest, node.location, env);
  const type = resultOf(name, given);
  const key = JSON.stringify([name, [...given]]);
  const known = draft.operators.find((o) => JSON.stringify([o.operator, [...o.arguments]]) === key);
  const columnName = known?.column ?? `#op${draft.operators.length + 1}`;
  if (known === undefined) {
    draft.operators.push(Object.freeze({ operator: name, column: columnName, type, arguments: given }));
  }
  ctx.use(draft.source, columnName);
  return ctx.at(columnRef(draft.source, columnName, type), node.location);
}

function resultOf(name: OperatorName, given: ReadonlyMap<string, Expr>): TypeName {
  const { result, resultWith } = OPERATORS[name];
  return resultWith !== null && given.has(resultWith.argument) ? resultWith.type : result;
}

/**
 * Binds an operator over a text column of the SELECT's rows. Unlike in RETRIEVE, there is no search query from which
 * missing arguments could be derived.
 */
function overRows(
  name: OperatorName,
  over: Node,
  rest: readonly Node[],
  location: Location,
  operators: RowOperators,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const text = coerce(bindExpression(over, env), 'text', ctx);
  if (OPERATORS[name].class === 'decoder') {
    const detail = `operator ${name} sends texts to a language model, which only the passages of a facet may be sent to`;
    throw ctx.mismatch(detail, location, `SELECT ${signatureOf(name)} FROM RETRIEVE(…)`);
  }
  const given = bindArguments(name, rest, location, env);
  const { arguments: declared, query } = OPERATORS[name];
  const wanted = declared.find((a) => a.worked || (query !== 'never' && query.unless === a.name));
  if (wanted !== undefined && !given.has(wanted.name)) {
    const detail = `${name} over rows needs \`${wanted.name}\`: only RETRIEVE has a question to make it of`;
    throw ctx.mismatch(detail, location, signatureOf(name));
  }
  const use = { operator: name, type: resultOf(name, given), arguments: given, text };
  return ctx.at(operators.result(use, location, ctx), location);
}

function signatureOf(name: OperatorName): string {
  const more = OPERATORS[name].arguments.map((a) => (a.positional ? a.name : `${a.name} => …`));
  return `${name}(${['text', ...more].join(', ')})`;
}

function bindArguments(
  name: OperatorName,
  nodes: readonly Node[],
  at: Location,
  env: BindEnvironment,
): ReadonlyMap<string, Expr> {
  const { ctx } = env;
  const given = new Map<string, Expr>();
  const signature = OPERATORS[name];
  const positional = signature.arguments.filter((a) => a.positional);
  for (const [i, node] of nodes.entries()) {
    const named = 'NamedArgExpr' in node ? node.NamedArgExpr : null;
    const declared = named === null ? positional[i] : signature.arguments.find((a) => a.name === named.name);
    if (declared === undefined || given.has(declared.name)) {
      const detail =
        named === null
          ? `${name} takes ${positional.length === 0 ? 'its other' : 'its further'} arguments by name`
          : `${name} ${declared === undefined ? 'has no argument' : 'was already given'} \`${named.name}\``;
      throw ctx.mismatch(detail, firstLocation(node) ?? at, signatureOf(name));
    }
    given.set(declared.name, constant(named?.arg ?? node, declared, env));
  }
  return given;
}

const TYPES: Readonly<Record<OperatorArgument['type'], TypeName>> = {
  text: 'text',
  float8: 'float8',
  int4: 'int4',
  labels: 'text[]',
  schema: 'jsonb',
};

function constant(node: Node, declared: OperatorArgument, env: BindEnvironment): Expr {
  const { ctx } = env;
  const bound = bindExpression(node, env);
  const type = typeOfBound(bound);
  const wanted = declared.type === 'labels' && type !== 'text[]' ? 'jsonb' : TYPES[declared.type];
  const value = coerce(bound, wanted, ctx);
  refuseComputed(value, declared.name, firstLocation(node), ctx);
  return value;
}
