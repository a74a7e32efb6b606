import type { Node } from '@pgsql/types';
import { queryError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { parse } from '../../text/parse.js';
import type { BindContext } from '../context.js';
import { WrittenLiteral } from '../literals.js';
import { settingsFree } from './settings-free.js';

/** Turns an expression into a statement for the parser. */
export const PREFIX = 'select ';

/** Syntax trees of manifest and policy texts, which repeat. Trees are never modified. */
const NODES = new Map<string, Node>();
const MOST_NODES = 1_000;
/** UTF-16 units. Longer texts are parsed each time. */
const LONGEST_KEPT = 2_048;

/** Parses `text` as a single value expression, for metrics and policy predicates. */
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

/** Makes a manifest expression independent of session settings. Its literals are in the slots of `ctx`. */
export function ofManifest(value: Expr, ctx: BindContext): Expr {
  return settingsFree(value, {
    valueOf: (e) => ctx.literalValue(e),
    make: (v, type) =>
      ctx.literal(
        typeof v === 'string'
          ? new WrittenLiteral(v, null)
          : v.map((item) => (item === null ? null : new WrittenLiteral(item, null))),
        type,
      ),
  });
}
