import type { Node, RangeSubselect } from '@pgsql/types';
import { nameParts, rowItems } from '../ast.js';

/**
 * `(a, b) IN (SELECT x, y …)`, a conjunct of WHERE, as `EXISTS (SELECT 1 FROM (SELECT x, y …) WHERE x = a AND y = b)`:
 * of a row that is neither in the result nor known not to be, both let nothing through. Null for anything else.
 */
export function existsOfRows(node: Node): Node | null {
  if (!('SubLink' in node) || node.SubLink.subLinkType !== 'ANY_SUBLINK') return null;
  const { testexpr, operName, subselect, location } = node.SubLink;
  const items = rowItems(testexpr);
  const operator = nameParts(operName).join('.');
  if (items === null || items.length < 2 || subselect === undefined) return null;
  if (operator !== '' && operator !== '=') return null;
  const names = items.map((_, i) => `${ALIAS} ${i + 1}`);
  const at = location ?? -1;
  const pairs = items.map(
    (item, i): Node => ({
      A_Expr: {
        kind: 'AEXPR_OP',
        name: [text('=')],
        lexpr: { ColumnRef: { fields: [text(ALIAS), text(names[i] ?? '')], location: at } },
        rexpr: item,
        location: at,
      },
    }),
  );
  const derived = { subquery: subselect, alias: { aliasname: ALIAS, colnames: names.map(text) } };
  OWN.add(derived);
  const rows: Node = { RangeSubselect: derived };
  const exists: Node = {
    SelectStmt: {
      targetList: [{ ResTarget: { val: { A_Const: { boolval: { boolval: true } } } } }],
      fromClause: [rows],
      whereClause: { BoolExpr: { boolop: 'AND_EXPR', args: pairs, location: at } },
      limitOption: 'LIMIT_OPTION_DEFAULT',
      op: 'SETOP_NONE',
    },
  };
  return { SubLink: { subLinkType: 'EXISTS_SUBLINK', subselect: exists, location: at } };
}

const OWN = new WeakSet<RangeSubselect>();

/** True for a derived table of `existsOfRows`, which no caller wrote. */
export function isOfRowIn(derived: RangeSubselect): boolean {
  return OWN.has(derived);
}

/** No name that the text can have for a column of another item, as there is a blank in it and no quotes around. */
const ALIAS = 'row of the subquery';

function text(sval: string): Node {
  return { String: { sval } };
}
