import type { A_Expr, Node, SelectStmt } from '@pgsql/types';
import type { Relation as Entity } from 'osl-compiler';
import type { Encoder } from '../../../policy/proof/index.js';
import type { Oid, PgRelation } from '../catalog/catalog.js';
import { namesOf } from '../nodes.js';
import { isTree } from '../statement.js';

/** Thrown for a part of a condition that the proof does not understand; the message names the part. */
export class NotUnderstood extends Error {
  override readonly name = 'NotUnderstood';
}

/** One table of a FROM clause, or the table of a policy. */
export interface RangeTable {
  readonly alias: string;
  readonly relation: PgRelation;
  /** Null if the model does not have the table. */
  readonly entity: Entity | null;
}

/** The table row for which a condition is translated, with the encoder of its columns. */
export interface Home {
  readonly range: RangeTable;
  readonly encoder: Encoder;
}

/** Names that an expression may use, the innermost first. */
interface ProofScope {
  readonly ranges: readonly RangeTable[];
  /** Arguments of the function whose body contains the expression, by name and as `$1`, `$2`. */
  readonly arguments: ReadonlyMap<string, PlacedExpression>;
  readonly outer: ProofScope | null;
}

/** Rights and settings under which Postgres evaluates an expression. */
export interface QueryRights {
  /** Role whose privileges and row security apply; it is also `current_user`. */
  readonly role: Oid;
  /** Schemas in which names without a schema are looked up. */
  readonly searchPath: readonly string[];
  /** search_path for functions that do not set their own: of the session, or of the function around the expression. */
  readonly sessionPath: readonly string[];
  /** Number of function bodies around the expression. */
  readonly depth: number;
  /** Tables whose policies are being translated, to detect policies that read themselves. */
  readonly open: ReadonlySet<Oid>;
}

/** An expression with the scope of its names and the rights under which it runs. */
export interface PlacedExpression {
  readonly node: Node;
  readonly scope: ProofScope;
  readonly rights: QueryRights;
}

/** Another expression in the same scope. @throws NotUnderstood if it is missing */
export function at(place: PlacedExpression, node: Node | undefined): PlacedExpression {
  if (node === undefined) throw new NotUnderstood('an expression that is cut off');
  return { ...place, node };
}

export const NO_ARGUMENTS: ReadonlyMap<string, PlacedExpression> = new Map();

export interface ColumnOf {
  readonly range: RangeTable;
  readonly column: string;
}

/** The column or the argument that a node names; null for any other node. @throws NotUnderstood for an unknown name */
export function referenceOf({ node, scope }: PlacedExpression): ColumnOf | PlacedExpression | null {
  if ('ParamRef' in node) return namedArgument(`$${node.ParamRef.number ?? 0}`, scope);
  if (!('ColumnRef' in node)) return null;
  const names = namesOf(node.ColumnRef.fields);
  const [column = '', qualifier = null] = [...names].reverse();
  for (let at: ProofScope | null = scope; at !== null; at = at.outer) {
    const having = at.ranges.filter(
      ({ alias, relation }) =>
        (qualifier === null || alias === qualifier) && relation.columns.some(({ name }) => name === column),
    );
    const [range, another] = having;
    if (another !== undefined) throw new NotUnderstood(`\`${column}\`, which several tables have`);
    if (range !== undefined) return { range, column };
    const argument = at.arguments.get(column);
    if (qualifier === null && argument !== undefined) return argument;
  }
  throw new NotUnderstood(`the name \`${names.join('.')}\``);
}

function namedArgument(name: string, scope: ProofScope): PlacedExpression {
  for (let at: ProofScope | null = scope; at !== null; at = at.outer) {
    const argument = at.arguments.get(name);
    if (argument !== undefined) return argument;
  }
  throw new NotUnderstood(`the argument ${name}`);
}

/** The name of a built-in operator. @throws NotUnderstood for any other operator */
export function operatorOf({ name }: A_Expr): string {
  const names = namesOf(name);
  const [schema, operator] = names.length > 1 ? names : ['pg_catalog', names[0]];
  if (schema !== 'pg_catalog' || operator === undefined)
    throw new NotUnderstood(`the operator ${names.join('.')}`);
  return operator;
}

/** A FROM clause: its tables, and the conditions of its inner joins. */
export interface From {
  readonly ranges: readonly RangeTable[];
  readonly conditions: readonly Node[];
}

/** Reads the FROM clause of a query. @throws NotUnderstood */
export type FromReader = (select: SelectStmt, rights: QueryRights) => From;

/** The columns that an expression names, including outer columns in nested queries. @throws NotUnderstood */
export function columnsIn(placed: PlacedExpression, from: FromReader): readonly ColumnOf[] {
  const found: ColumnOf[] = [];
  collect(placed.node, placed, from, found);
  return found;
}

function collect(value: unknown, place: PlacedExpression, from: FromReader, found: ColumnOf[]): void {
  if (!isTree(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, place, from, found);
    return;
  }
  const node = value as Node; // safe: objects other than nodes have none of the names below
  const reference = referenceOf({ ...place, node });
  if (reference !== null) {
    if ('column' in reference) found.push(reference);
    else collect(reference.node, reference, from, found);
    return;
  }
  if (!('SelectStmt' in node)) {
    for (const child of Object.values(value)) collect(child, place, from, found);
    return;
  }
  const { fromClause: _from, sortClause: _sort, ...rest } = node.SelectStmt;
  const { ranges, conditions } = from(node.SelectStmt, place.rights);
  const inner: PlacedExpression = {
    ...place,
    scope: { ranges, arguments: NO_ARGUMENTS, outer: place.scope },
  };
  const own: ColumnOf[] = [];
  for (const part of [...conditions, ...Object.values(rest)]) collect(part, inner, from, own);
  found.push(...own.filter(({ range }) => !ranges.includes(range)));
}
