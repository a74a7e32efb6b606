import type { Node, SelectStmt, SubLink } from '@pgsql/types';
import { identifier } from 'osl-compiler/sql-text';
import type { TableAttributeDocument } from '../../../policy/document.js';
import { schemasFor } from '../catalog/catalog.js';
import { arrayAggOf, firstTarget, isDistinctOn, namesOf, partsOf } from '../nodes.js';
import { type CallerValue, callerListOf } from './caller-value.js';
import { rowExpression } from './row-expression.js';
import {
  boundNode,
  type FromClause,
  type FromTable,
  fromClauseOf,
  type NameScope,
  NO_ARGUMENTS,
  operatorOf,
  resolve,
  Untranslatable,
} from './scope.js';
import type { ConditionPlace, Translation } from './translation.js';

/**
 * Writes a subquery in a condition as a comparison with an attribute whose values are read from the subquery's tables:
 * `x IN (SELECT y FROM t WHERE …)` becomes `x = attribute('t_y')`. Each joined table becomes an attribute in the filter
 * of the table that it is joined to, so the joins must form a tree.
 *
 * @param isScalar true for a subquery used as a single value, which must have at most one row
 * @throws Untranslatable
 */
export function membership(link: SubLink, isScalar: boolean, place: ConditionPlace): string {
  const { scope, context, positive } = place;
  const { subLinkType, subselect, testexpr } = link;
  const select = subselect !== undefined && 'SelectStmt' in subselect ? subselect.SelectStmt : null;
  if (select === null) throw new Untranslatable('a subquery that is no SELECT');
  const isExists = subLinkType === 'EXISTS_SUBLINK';
  requirePlain(select, isExists || isScalar);
  const from = fromClauseOf(select, context.tables, schemasFor(context.user.name, context.searchPath));
  const inner: NameScope = {
    ranges: from.ranges,
    arguments: NO_ARGUMENTS,
    outer: scope,
    depth: scope.depth,
  };
  const conditions = [
    ...from.conditions,
    ...(select.whereClause === undefined ? [] : [select.whereClause]),
  ].flatMap((one) => partsOf(one, 'AND_EXPR'));
  if (isScalar && !isExists) requireOneRow(select, from, conditions, inner);
  switch (subLinkType) {
    case 'EXISTS_SUBLINK':
      requireAnyTarget(select);
      break;
    case 'ANY_SUBLINK': {
      if (link.operName !== undefined && operatorOf(link.operName) !== '=')
        throw new Untranslatable('a comparison with a subquery by another operator than =');
      const value = targetOf(select);
      const list = callerListOf(value);
      if (testexpr === undefined) throw new Untranslatable('IN without a left side');
      if (list !== null && from.ranges.length === 0 && positive) {
        const others = conditions.map((node) => context.filterOf(node, { ...place, scope: inner }));
        return [callerMembership(testexpr, list, place), ...others].join(' and ');
      }
      if (
        !positive &&
        (list !== null || arrayAggOf(firstTarget(select)) !== null || !isNeverNull(value, from, inner))
      )
        throw new Untranslatable('NOT over IN with a subquery: a NULL in it hides all rows');
      conditions.push(equality(value, boundNode({ node: testexpr, scope })));
      break;
    }
    case 'EXPR_SUBLINK':
      if (!positive)
        throw new Untranslatable('NOT over a subquery for one value: without a row it hides all');
      conditions.push(targetOf(select));
      break;
    default:
      throw new Untranslatable('a subquery with ALL');
  }
  return joined(from, conditions, inner, place, isExists);
}

/** True for a NOT NULL column, and for a value without a table, which is translated separately. */
function isNeverNull(value: Node, { ranges }: FromClause, inner: NameScope): boolean {
  if (ranges.length === 0) return true;
  const found = columnIn(value, inner);
  if (found === null || !ranges.includes(found.range)) return false;
  return found.range.table.relation.columns.some(({ name, required }) => name === found.column && required);
}

function callerMembership(
  testexpr: Node,
  list: CallerValue,
  { scope, range, context }: ConditionPlace,
): string {
  return `${rowExpression(testexpr, scope, range)} = attribute('${context.attributes.caller(list)}')`;
}

/**
 * Refuses clauses that change which rows a subquery has. DISTINCT and ORDER BY are allowed; LIMIT 1 is allowed in
 * EXISTS and if there is at most one row.
 */
function requirePlain(select: SelectStmt, mayLimit: boolean): void {
  const { groupClause, havingClause, limitCount, limitOffset, op, withClause, valuesLists, lockingClause } =
    select;
  if (op !== undefined && op !== 'SETOP_NONE')
    throw new Untranslatable('UNION, INTERSECT or EXCEPT in a subquery');
  if (withClause !== undefined)
    throw new Untranslatable(withClause.recursive === true ? 'a recursive subquery' : 'WITH in a subquery');
  if (groupClause !== undefined || havingClause !== undefined)
    throw new Untranslatable('GROUP BY in a subquery');
  if (isDistinctOn(select)) throw new Untranslatable('DISTINCT ON in a subquery');
  const one = limitCount !== undefined && 'A_Const' in limitCount && limitCount.A_Const.ival?.ival === 1;
  if ((limitCount !== undefined && !(one && mayLimit)) || limitOffset !== undefined)
    throw new Untranslatable('LIMIT in a subquery');
  if (valuesLists !== undefined || lockingClause !== undefined)
    throw new Untranslatable('VALUES or FOR UPDATE');
}

/**
 * Requires only columns and constants in the select list of EXISTS, since an aggregate or a set-returning function
 * affects whether there is a row.
 */
function requireAnyTarget({ targetList = [] }: SelectStmt): void {
  for (const target of targetList) {
    const value = 'ResTarget' in target ? target.ResTarget.val : undefined;
    const inner = value !== undefined && 'TypeCast' in value ? value.TypeCast.arg : value;
    if (inner !== undefined && !('A_Const' in inner) && !('ColumnRef' in inner))
      throw new Untranslatable('EXISTS over something else than columns');
  }
}

/**
 * Requires that a subquery has at most one row: its conditions must give a value to each column of a unique key. With
 * several rows, a scalar subquery fails and a function returns the first.
 */
function requireOneRow(
  select: SelectStmt,
  { ranges }: FromClause,
  conditions: readonly Node[],
  inner: NameScope,
): void {
  const [only, another] = ranges;
  if (only === undefined || arrayAggOf(firstTarget(select)) !== null) return;
  if (!namesColumnOf(targetOf(select), ranges, inner)) return;
  const given = new Set<string>();
  for (const node of conditions) {
    const sides = equalSides(node);
    if (sides === null) continue;
    for (const [own, other] of [sides, [sides[1], sides[0]] as const]) {
      const found = columnIn(own, inner);
      if (found?.range === only && !namesColumnOf(other, ranges, inner)) given.add(found.column);
    }
  }
  const isKey = only.table.relation.indexes.some(
    ({ unique, partial, keys }) =>
      unique && !partial && keys.every(({ column }) => column !== null && given.has(column)),
  );
  if (another !== undefined || !isKey)
    throw new Untranslatable('a subquery for one value that may have several rows');
}

function namesColumnOf(node: Node, ranges: readonly FromTable[], scope: NameScope): boolean {
  let found = false;
  eachRange(node, scope, (range) => {
    found ||= ranges.includes(range);
  });
  return found;
}

/** The value that a subquery selects; for array_agg, its argument. */
function targetOf(select: SelectStmt): Node {
  const value = firstTarget(select);
  if (value === null || select.targetList?.length !== 1)
    throw new Untranslatable('a subquery of several columns');
  return arrayAggOf(value) ?? value;
}

function equality(left: Node, right: Node): Node {
  return { A_Expr: { kind: 'AEXPR_OP', name: [{ String: { sval: '=' } }], lexpr: left, rexpr: right } };
}

/** A condition of a subquery, with the tables of the subquery that it names. */
interface MembershipPart {
  readonly node: Node;
  readonly about: ReadonlySet<FromTable>;
  /** True if the condition names a column of the outer row. */
  readonly outside: boolean;
}

interface JoinEdge {
  readonly ends: readonly [FromTable, FromTable];
  readonly columns: readonly [string, string];
}

function joined(
  from: FromClause,
  conditions: readonly Node[],
  inner: NameScope,
  place: ConditionPlace,
  isExists: boolean,
): string {
  const { range, context, positive } = place;
  const parts = conditions.map((node): MembershipPart => {
    const about = new Set<FromTable>();
    let outside = false;
    eachRange(node, inner, (found) => {
      if (from.ranges.includes(found)) about.add(found);
      else outside = true;
    });
    return { node, about, outside };
  });
  const before = parts
    .filter(({ about }) => about.size === 0)
    .map(({ node }) => context.filterOf(node, { ...place, scope: inner }));
  const links = parts.filter(({ about, outside }) => about.size > 0 && outside);
  if (from.ranges.length === 0) {
    if (before.length === 0) throw new Untranslatable('a subquery without a table');
    return `(${before.join(' and ')})`;
  }
  const filters = new Map<FromTable, string[]>(from.ranges.map((one) => [one, []]));
  for (const { node, about, outside } of parts) {
    const [only, another] = about;
    if (only !== undefined && another === undefined && !outside)
      filters.get(only)?.push(context.filterOf(node, { ...place, scope: inner, range: only }));
  }
  for (const one of from.ranges) {
    const readable = context.readableRows(one);
    if (readable === null) continue;
    // The imported filter may accept fewer rows than the table's policies; under NOT, that would mean more.
    if (!positive) throw new Untranslatable(`NOT over \`${one.alias}\`, which has row security of its own`);
    filters.get(one)?.push(readable);
  }
  const edges = parts.flatMap((part) => (part.about.size > 1 && !part.outside ? [edgeOf(part, inner)] : []));
  const [link, second] = links;
  if (second !== undefined)
    throw new Untranslatable('a subquery that is linked to the row by more than one condition');
  const end = link === undefined ? null : linkOf(link, inner, range, from);
  const root = end?.range ?? from.ranges[0];
  if (root === undefined) throw new Untranslatable('a subquery without a table');
  const rows = rootFilter(root, from.ranges, edges, filters, context);
  const reading: TableAttributeDocument = {
    on: root.table.entity,
    ...(end !== null && { column: columnName(root, end.column) }),
    rows,
  };
  const name = context.attributes.table(reading);
  const match = `${end === null ? 'true' : end.outside} = attribute('${name}')`;
  // For a NULL, EXISTS is false and NOT makes it true, but the comparison is NULL and stays NULL under NOT.
  const test = positive || end === null || !isExists ? match : `(${end.outside} is not null and ${match})`;
  return before.length === 0 ? test : `(${[...before, test].join(' and ')})`;
}

/**
 * The condition that links the subquery to the outer row: a column of the subquery, and the value that it must equal,
 * as filter text.
 *
 * @throws Untranslatable for any other condition
 */
function linkOf(
  { node, about }: MembershipPart,
  inner: NameScope,
  range: FromTable,
  from: FromClause,
): { readonly range: FromTable; readonly column: string; readonly outside: string } {
  const sides = equalSides(node);
  if (sides === null || about.size !== 1)
    throw new Untranslatable('a subquery that is linked to the row by something else than =');
  for (const [own, other] of [sides, [sides[1], sides[0]] as const]) {
    const found = columnIn(own, inner);
    if (found !== null && from.ranges.includes(found.range))
      return { range: found.range, column: found.column, outside: rowExpression(other, inner, range) };
  }
  throw new Untranslatable('a subquery that is linked to the row by an expression');
}

function edgeOf({ node }: MembershipPart, inner: NameScope): JoinEdge {
  const sides = equalSides(node);
  const [left, right] = [
    sides === null ? null : columnIn(sides[0], inner),
    sides === null ? null : columnIn(sides[1], inner),
  ];
  if (left === null || right === null) throw new Untranslatable('a join by something else than two columns');
  return { ends: [left.range, right.range], columns: [left.column, right.column] };
}

/** The filter of the root table. Each other table becomes an attribute in the filter of a joined table. */
function rootFilter(
  root: FromTable,
  ranges: readonly FromTable[],
  edges: readonly JoinEdge[],
  filters: ReadonlyMap<FromTable, string[]>,
  { attributes }: Translation,
): string {
  let left = [...edges];
  const open = new Set(ranges);
  while (open.size > 1) {
    const leaf = [...open].find(
      (one) => one !== root && left.filter(({ ends }) => ends.includes(one)).length === 1,
    );
    const edge = left.find(({ ends }) => leaf !== undefined && ends.includes(leaf));
    if (leaf === undefined || edge === undefined)
      throw new Untranslatable('tables that are joined in a circle, by several columns, or not at all');
    const at = edge.ends[0] === leaf ? 0 : 1;
    const parent = edge.ends[1 - at];
    if (parent === undefined || parent === leaf) throw new Untranslatable('a table that is joined to itself');
    const name = attributes.table({
      on: leaf.table.entity,
      column: columnName(leaf, edge.columns[at] ?? ''),
      rows: allOf(filters.get(leaf) ?? []),
    });
    filters
      .get(parent)
      ?.push(`${identifier(columnName(parent, edge.columns[1 - at] ?? ''))} = attribute('${name}')`);
    left = left.filter((one) => one !== edge);
    open.delete(leaf);
  }
  return allOf(filters.get(root) ?? []);
}

/** Joins filters with AND, without duplicates: subqueries often repeat their table's own policy. */
function allOf(filters: readonly string[]): string {
  return filters.length === 0 ? 'true' : [...new Set(filters)].join(' and ');
}

function columnName({ table, alias }: FromTable, column: string): string {
  const name = table.columns.get(column);
  if (name === undefined) throw new Untranslatable(`\`${alias}.${column}\`, which is not part of the model`);
  return name;
}

function equalSides(node: Node): readonly [Node, Node] | null {
  if (!('A_Expr' in node) || node.A_Expr.kind !== 'AEXPR_OP' || operatorOf(node.A_Expr.name) !== '=')
    return null;
  const { lexpr, rexpr } = node.A_Expr;
  return lexpr === undefined || rexpr === undefined ? null : [lexpr, rexpr];
}

/** The column that a node names, also through arguments of functions; null for any other node. */
function columnIn(
  node: Node,
  scope: NameScope,
): { readonly range: FromTable; readonly column: string } | null {
  const found = resolve(node, scope);
  if (found === null) return null;
  return 'node' in found ? columnIn(found.node, found.scope) : found;
}

/** Calls `visit` with the table of each column in a tree; in nested subqueries, only of each outer column. */
function eachRange(value: unknown, scope: NameScope, visit: (range: FromTable) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) eachRange(item, scope, visit);
    return;
  }
  const node = value as Node; // safe: objects other than nodes have none of the names below
  const found = resolve(node, scope);
  if (found !== null) {
    if ('node' in found) eachRange(found.node, found.scope, visit);
    else visit(found.range);
    return;
  }
  if ('SubLink' in node) {
    // The tables of a nested subquery do not count, only its references to the scope around it.
    eachRange(node.SubLink.testexpr, scope, visit);
    eachOuterColumn(node.SubLink.subselect, scope, visit);
    return;
  }
  for (const child of Object.values(value)) eachRange(child, scope, visit);
}

/** Calls `visit` with the table of each column in a nested subquery that is qualified by an outer table. */
function eachOuterColumn(value: unknown, scope: NameScope, visit: (range: FromTable) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) eachOuterColumn(item, scope, visit);
    return;
  }
  const node = value as Node; // as in `eachRange`
  if ('ColumnRef' in node) {
    const names = namesOf(node.ColumnRef.fields);
    const qualifier = names.length > 1 ? names.at(-2) : undefined;
    for (let at: NameScope | null = scope; at !== null && qualifier !== undefined; at = at.outer)
      for (const one of at.ranges)
        if (one.alias === qualifier) {
          visit(one);
          return;
        }
    return;
  }
  for (const child of Object.values(value)) eachOuterColumn(child, scope, visit);
}
