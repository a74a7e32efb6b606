import type { Node } from '@pgsql/types';
import { and, Encoder, expressionKey, FALSE, type Formula, not } from '../../../policy/proof/index.js';
import type { Oid, PgRelation } from '../catalog/catalog.js';
import { arrayAggOf, firstTarget, isDistinctOn, partsOf } from '../nodes.js';
import type { RowSets } from './caller-values.js';
import type { ConditionEncoder } from './conditions.js';
import type { Subquery } from './functions.js';
import {
  type ColumnOf,
  columnsIn,
  type FromReader,
  type Home,
  NO_ARGUMENTS,
  NotUnderstood,
  operatorOf,
  type PlacedExpression,
  type QueryRights,
  type RangeTable,
  referenceOf,
} from './scope.js';
import { comparedValue, isNull } from './terms.js';

/** A part of a subquery's condition. Once all tables are replaced by row sets, it concerns only the outer row. */
type SubqueryPart =
  | { readonly kind: 'condition'; readonly place: PlacedExpression }
  | { readonly kind: 'equality'; readonly left: PlacedExpression; readonly right: PlacedExpression }
  /** True if the value is in a row set. */
  | { readonly kind: 'member'; readonly value: PlacedExpression; readonly set: string };

export interface SubqueryContext {
  readonly sets: RowSets;
  readonly from: FromReader;
  conditions(): ConditionEncoder;
  /** A formula over `home` that is true for the rows of a table that a role sees. */
  visible(home: Home, rights: QueryRights): Formula;
  mayRead(role: Oid, relation: PgRelation): boolean;
}

/**
 * Returns a formula that is true if a subquery has a row. Replaces the subquery's tables one after the other by row
 * sets: for a table linked by a single `column = value`, `value` must be among the column's values in the rows that
 * meet the table's own conditions. In the end, only conditions on the outer row are left.
 *
 * @throws NotUnderstood for other shapes
 */
export function subqueryHasRow(subquery: Subquery, home: Home, context: SubqueryContext): Formula {
  const { select, place } = subquery;
  requirePlain(subquery);
  const { ranges, conditions } = context.from(select, place.rights);
  for (const { relation } of ranges) requireReadable(relation, place.rights, context);
  const inner = { ranges, arguments: NO_ARGUMENTS, outer: place.scope };
  const own = (node: Node): PlacedExpression => ({ ...place, node, scope: inner });
  const target = firstTarget(select);
  let parts: SubqueryPart[] = [
    ...conditions,
    ...(select.whereClause === undefined ? [] : [select.whereClause]),
  ]
    .flatMap((node) => partsOf(node, 'AND_EXPR'))
    .map((node) => ({ kind: 'condition', place: own(node) }));
  if (subquery.equalTo !== null || subquery.isTrue) {
    if (target === null || select.targetList?.length !== 1)
      throw new NotUnderstood('a subquery of several columns');
    const value = own(arrayAggOf(target) ?? target);
    parts.push(
      subquery.equalTo === null
        ? { kind: 'condition', place: value }
        : { kind: 'equality', left: value, right: subquery.equalTo },
    );
  }
  if (subquery.firstRow && arrayAggOf(target) === null) requireOneRow(ranges, parts, context.from);
  const left = new Set(ranges);
  while (left.size > 0) parts = withoutOne(left, parts, place, context);
  return and(...parts.map((part) => partFormula(part, home, context)));
}

/** Requires a query whose rows are rows of its tables, without grouping, set operations or LIMIT. */
function requirePlain({ select, equalTo, isTrue }: Subquery): void {
  const { groupClause, havingClause, limitCount, limitOffset, op, withClause, valuesLists, targetList } =
    select;
  if (op !== undefined && op !== 'SETOP_NONE') throw new NotUnderstood('UNION, INTERSECT or EXCEPT');
  if (withClause !== undefined) throw new NotUnderstood('WITH in a subquery');
  if (groupClause !== undefined || havingClause !== undefined)
    throw new NotUnderstood('GROUP BY in a subquery');
  if (isDistinctOn(select)) throw new NotUnderstood('DISTINCT ON in a subquery');
  if (valuesLists !== undefined) throw new NotUnderstood('VALUES');
  const isExists = equalTo === null && !isTrue;
  const one = limitCount !== undefined && 'A_Const' in limitCount && limitCount.A_Const.ival?.ival === 1;
  if (limitOffset !== undefined || (limitCount !== undefined && !(isExists && one)))
    throw new NotUnderstood('LIMIT in a subquery');
  if (!isExists) return;
  for (const target of targetList ?? []) {
    const value = 'ResTarget' in target ? target.ResTarget.val : undefined;
    if (value !== undefined && !('A_Const' in value) && !('ColumnRef' in value) && !('TypeCast' in value))
      throw new NotUnderstood('EXISTS over something else than columns');
  }
}

function requireReadable(
  relation: PgRelation,
  { role, depth }: QueryRights,
  { mayRead }: SubqueryContext,
): void {
  if (mayRead(role, relation)) return;
  const name = `${relation.schema}.${relation.name}`;
  throw depth === 0
    ? new AlwaysFails(name)
    : new NotUnderstood(`the table ${name}, which the role may not read`);
}

/** Thrown for a policy that reads its own table, or a table that the role may not read: every query fails. */
export class AlwaysFails extends Error {
  override readonly name = 'AlwaysFails';
}

/** Requires at most one row in a subquery: its conditions fix each column of a unique key of its only table. */
function requireOneRow(
  ranges: readonly RangeTable[],
  parts: readonly SubqueryPart[],
  from: FromReader,
): void {
  const [only, another] = ranges;
  if (only === undefined) return;
  const given = new Set(
    parts.flatMap((part) => {
      const sides = sidesOf(part);
      if (sides === null) return [];
      return [sides, [sides[1], sides[0]] as const].flatMap(([own, other]) => {
        const column = plainColumn(own);
        const depends = columnsIn(other, from).some(({ range }) => range === only);
        return column?.range === only && !depends ? [column.column] : [];
      });
    }),
  );
  const isKey = only.relation.indexes.some(
    ({ unique, partial, keys }) =>
      unique && !partial && keys.every(({ column }) => column !== null && given.has(column)),
  );
  if (another !== undefined || !isKey) throw new NotUnderstood('the first of several rows');
}

interface Links {
  readonly range: RangeTable;
  readonly own: readonly SubqueryPart[];
  /** Parts that also depend on other tables or on the outer row. */
  readonly links: readonly SubqueryPart[];
  readonly others: readonly SubqueryPart[];
  /** True if the only link is to another table of the subquery. */
  readonly isLeaf: boolean;
}

/** Replaces one table by a row set; returns the other parts and a part that tests membership in the set. */
function withoutOne(
  left: Set<RangeTable>,
  parts: readonly SubqueryPart[],
  place: PlacedExpression,
  context: SubqueryContext,
): SubqueryPart[] {
  const candidates = [...left].map((range) => linksOf(range, left, parts, context.from));
  const simple = candidates.filter(({ links }) => links.length < 2);
  const chosen = simple.find(({ isLeaf }) => isLeaf) ?? simple[0];
  if (chosen === undefined) throw new NotUnderstood('a subquery that is linked by several conditions');
  const { range, own, links, others } = chosen;
  const [link] = links;
  const sides = link === undefined ? null : linkSides(link, range);
  left.delete(range);
  const set = setOf(range, sides?.column ?? null, own, place.rights, context);
  const value = sides?.other ?? { ...place, node: TRUE_NODE };
  return [...others, { kind: 'member', value, set }];
}

function linksOf(
  range: RangeTable,
  left: ReadonlySet<RangeTable>,
  parts: readonly SubqueryPart[],
  from: FromReader,
): Links {
  const [own, links, others]: [SubqueryPart[], SubqueryPart[], SubqueryPart[]] = [[], [], []];
  let isLeaf = false;
  for (const part of parts) {
    const about = placesOf(part).flatMap((place) => columnsIn(place, from).map((column) => column.range));
    if (!about.includes(range)) others.push(part);
    else if (about.every((one) => one === range)) own.push(part);
    else {
      links.push(part);
      isLeaf = about.some((one) => one !== range && left.has(one));
    }
  }
  return { range, own, links, others, isLeaf: isLeaf && links.length === 1 };
}

function placesOf(part: SubqueryPart): readonly PlacedExpression[] {
  switch (part.kind) {
    case 'condition':
      return [part.place];
    case 'equality':
      return [part.left, part.right];
    case 'member':
      return [part.value];
  }
}

/** The two sides of an equality; null for any other part. */
function sidesOf(part: SubqueryPart): readonly [PlacedExpression, PlacedExpression] | null {
  if (part.kind === 'equality') return [part.left, part.right];
  if (part.kind === 'member') return null;
  const { node } = part.place;
  if (!('A_Expr' in node) || node.A_Expr.kind !== 'AEXPR_OP') return null;
  const { lexpr, rexpr } = node.A_Expr;
  if (lexpr === undefined || rexpr === undefined || operatorOf(node.A_Expr) !== '=') return null;
  return [
    { ...part.place, node: lexpr },
    { ...part.place, node: rexpr },
  ];
}

function linkSides(
  part: SubqueryPart,
  range: RangeTable,
): { readonly column: string; readonly other: PlacedExpression } {
  const sides = sidesOf(part);
  if (sides === null) throw new NotUnderstood('a subquery that is linked by another condition than =');
  for (const [own, other] of [sides, [sides[1], sides[0]] as const]) {
    const found = plainColumn(own);
    if (found?.range === range) return { column: found.column, other };
  }
  throw new NotUnderstood('a subquery that is linked by an expression');
}

/** The column that an expression names, also as an argument or in a cast to text; otherwise null. */
function plainColumn(place: PlacedExpression): ColumnOf | null {
  const { node } = place;
  if ('TypeCast' in node && node.TypeCast.arg !== undefined) {
    const found = plainColumn({ ...place, node: node.TypeCast.arg });
    const type = found?.range.relation.columns.find(({ name }) => name === found.column)?.type;
    const isText = type === 'text' || type === 'character varying';
    return isText && isCastToText(node) ? found : null;
  }
  const reference = referenceOf(place);
  if (reference === null) return null;
  return 'node' in reference ? plainColumn(reference) : reference;
}

function isCastToText(node: Extract<Node, { TypeCast: unknown }>): boolean {
  const last = node.TypeCast.typeName?.names?.at(-1);
  return last !== undefined && 'String' in last && last.String.sval === 'text';
}

const TRUE_NODE: Node = { A_Const: { boolval: { boolval: true } } };

/** Adds the set of a table's rows that meet the conditions `own` and that the role sees; returns the id of the set. */
function setOf(
  range: RangeTable,
  column: string | null,
  own: readonly SubqueryPart[],
  rights: QueryRights,
  context: SubqueryContext,
): string {
  const { entity, relation } = range;
  if (entity === null)
    throw new NotUnderstood(`the table ${relation.schema}.${relation.name}, which is not an entity`);
  const home = { range, encoder: new Encoder(entity, 'caller', null, expressionKey) };
  const condition = and(
    ...own.map((part) => partFormula(part, home, context)),
    context.visible(home, rights),
  );
  return context.sets.add({ relation, entity, column, encoder: home.encoder, condition }).id;
}

function partFormula(part: SubqueryPart, home: Home, context: SubqueryContext): Formula {
  const conditions = context.conditions();
  switch (part.kind) {
    case 'condition':
      return conditions.truth(part.place, home).isTrue;
    case 'equality':
      return conditions.equal(part.left, part.right, home).isTrue;
    case 'member': {
      const term = conditions.rowTerm(part.value, home);
      const type = term.kind === 'truth' ? 'bool' : (term.type ?? 'text');
      const none = isNull(term, home.encoder) ?? FALSE;
      return and(not(none), home.encoder.compare(part.set, comparedValue(term, type)));
    }
  }
}
