import type { Node, SelectStmt } from '@pgsql/types';
import type { PgRelation } from '../catalog/catalog.js';
import { namesOf } from '../nodes.js';

/** A table that became an entity. */
export interface ImportedTable {
  readonly relation: PgRelation;
  readonly entity: string;
  /** Names of the entity's columns, by column name of the table. */
  readonly columns: ReadonlyMap<string, string>;
}

/** A table in the FROM of a query, or the table of a policy. */
export interface FromTable {
  readonly alias: string;
  readonly table: ImportedTable;
}

/** The names that an expression may use, innermost scope first. */
export interface NameScope {
  readonly ranges: readonly FromTable[];
  /** Arguments of the function whose body contains the expression, by name and as `$1`, `$2`. */
  readonly arguments: ReadonlyMap<string, BoundNode>;
  readonly outer: NameScope | null;
  /** Number of function bodies around the expression. */
  readonly depth: number;
}

/** An expression with the scope of its names. */
export interface BoundNode {
  readonly node: Node;
  readonly scope: NameScope;
}

const BOUND = Symbol('bound');

/** Wraps an expression of another scope in a node, which `resolve` unwraps. */
export function boundNode(bound: BoundNode): Node {
  const node: unknown = { [BOUND]: bound };
  return node as Node; // safe: code that may meet such a node calls `resolve` first
}

function isBound(node: object): node is { readonly [BOUND]: BoundNode } {
  return BOUND in node;
}

/** The filter for the rows of a table that a query may read; null for all rows. @throws Untranslatable */
export type ReadableRows = (range: FromTable) => string | null;

export interface ScopedColumn {
  readonly range: FromTable;
  readonly column: string;
}

export const NO_ARGUMENTS: ReadonlyMap<string, BoundNode> = new Map();

/** Finds tables by name; without a schema, in the search_path of the function that uses the name. */
export interface TableLookup {
  table(schema: string | null, name: string, searchPath: readonly string[]): ImportedTable;
}

/** The name of a built-in operator. @throws Untranslatable for any other operator */
export function operatorOf(nodes: readonly Node[] | undefined): string {
  const [schema = '', name] = namesOf(nodes);
  if (name === undefined) return schema;
  if (schema === 'pg_catalog') return name;
  throw new Untranslatable(`the operator ${schema}.${name} of a user or an extension`);
}

/** The column or argument that a node names; otherwise null. @throws Untranslatable for unknown names */
export function resolve(node: Node, scope: NameScope): ScopedColumn | BoundNode | null {
  if (isBound(node)) return node[BOUND];
  if ('ParamRef' in node) return argumentOf(`$${node.ParamRef.number ?? 0}`, scope);
  if (!('ColumnRef' in node)) return null;
  const names = namesOf(node.ColumnRef.fields);
  const column = names.at(-1) ?? '';
  const qualifier = names.length > 1 ? (names.at(-2) ?? null) : null;
  for (let at: NameScope | null = scope; at !== null; at = at.outer) {
    const found = at.ranges.filter(
      ({ alias, table }) =>
        (qualifier === null || alias === qualifier) && table.relation.columns.some((c) => c.name === column),
    );
    const [range] = found;
    if (found.length > 1) throw new Untranslatable(`\`${column}\` could be of several tables`);
    if (range !== undefined) return { range, column };
    const argument = at.arguments.get(column);
    if (argument !== undefined && (qualifier === null || names.length === 2)) return argument;
  }
  throw new Untranslatable(`nothing is known of \`${names.join('.')}\``);
}

function argumentOf(name: string, scope: NameScope): BoundNode {
  for (let at: NameScope | null = scope; at !== null; at = at.outer) {
    const found = at.arguments.get(name);
    if (found !== undefined) return found;
  }
  throw new Untranslatable(`${name} is not an argument`);
}

/** A FROM clause: its tables, and the conditions of its joins. */
export interface FromClause {
  readonly ranges: readonly FromTable[];
  readonly conditions: readonly Node[];
}

export function fromClauseOf(
  select: SelectStmt,
  tables: TableLookup,
  searchPath: readonly string[],
): FromClause {
  const ranges: FromTable[] = [];
  const conditions: Node[] = [];
  const add = (node: Node): void => {
    if ('RangeVar' in node) {
      const { schemaname = null, relname = '', alias, inh } = node.RangeVar;
      if (inh !== true) throw new Untranslatable(`ONLY ${relname}`);
      if (alias?.colnames !== undefined) throw new Untranslatable('renamed columns in FROM');
      ranges.push({
        alias: alias?.aliasname ?? relname,
        table: tables.table(schemaname, relname, searchPath),
      });
    } else if ('JoinExpr' in node) {
      const { jointype, larg, rarg, quals, usingClause, isNatural } = node.JoinExpr;
      if (jointype !== 'JOIN_INNER' || isNatural === true || usingClause !== undefined || !larg || !rarg)
        throw new Untranslatable('a join other than an inner join with ON');
      add(larg);
      add(rarg);
      if (quals !== undefined) conditions.push(quals);
    } else throw new Untranslatable('a subquery or a function in FROM');
  };
  for (const node of select.fromClause ?? []) add(node);
  return { ranges, conditions };
}

/** Thrown for a part of a policy that has no equivalent in a policy file. The message is the reason. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable';
}

/** Thrown for a part of a policy that fails for the role: every query on the table fails, so the role sees no row. */
export class FailsInDatabase extends Untranslatable {}
