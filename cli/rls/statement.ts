import type { Node, RangeVar, SelectStmt } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import { type DatabaseFunction, schemasOf } from './catalog/catalog.js';

export interface RelationName {
  readonly schema: string | null;
  readonly name: string;
}

/** Returns the relations that a statement reads or writes, except CTEs; null if the statement cannot be parsed. */
function relationsIn(text: string): readonly RelationName[] | null {
  const statement = parsedStatement(text);
  return statement === null ? null : relationNames(statement);
}

/** One column of a view. */
export interface ViewOutput {
  readonly name: string;
  /** True if the view column is a table column, unchanged. */
  readonly isPlain: boolean;
  /** Names of the columns from which the view column is computed. */
  readonly columns: ReadonlySet<string>;
}

/** Returns the columns of a view, those of a UNION once for each side; null if the definition cannot be parsed. */
export function outputsOfView(definition: string): readonly ViewOutput[] | null {
  const statement = parsedStatement(definition);
  if (statement === null) return null;
  return 'SelectStmt' in statement ? outputsOf(statement.SelectStmt) : [];
}

function outputsOf({ larg, rarg, targetList = [] }: SelectStmt): readonly ViewOutput[] {
  if (larg !== undefined && rarg !== undefined) return [...outputsOf(larg), ...outputsOf(rarg)];
  return targetList.flatMap((node): readonly ViewOutput[] => {
    if (!('ResTarget' in node) || node.ResTarget.val === undefined) return [];
    const { val, name = '' } = node.ResTarget;
    const columns = new Set<string>();
    eachNode(val, (inner) => {
      const column = columnOf(inner);
      if (column !== null) columns.add(column.name);
    });
    return [{ name, isPlain: 'ColumnRef' in val, columns }];
  });
}

/** Parses a text that contains a single statement; null if it cannot be parsed. */
export function parsedStatement(text: string): Node | null {
  try {
    return parse(text.trim().replace(/;$/, '')).node;
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError) return null;
    throw error;
  }
}

/** Returns the relations named in a syntax tree, except names of common table expressions (CTEs). */
export function relationNames(query: Node): readonly RelationName[] {
  const common = new Set<string>();
  const ranges: RangeVar[] = [];
  eachNode(query, (node) => {
    if ('CommonTableExpr' in node) common.add(node.CommonTableExpr.ctename ?? '');
    if ('RangeVar' in node) ranges.push(node.RangeVar);
    // The target of INSERT, UPDATE, DELETE or MERGE is a RangeVar without the usual wrapper object.
    for (const written of ['InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt']) {
      const statement: unknown = (node as TreeNode)[written]; // the type depends on the statement
      const target: unknown = isTree(statement) ? statement['relation'] : undefined;
      if (isTree(target)) ranges.push(target as RangeVar); // its type in the grammar
    }
  });
  const names = ranges
    .filter(({ schemaname, relname = '' }) => schemaname !== undefined || !common.has(relname))
    .map(({ schemaname = null, relname = '' }) => ({ schema: schemaname, name: relname }));
  return [...new Map(names.map((name) => [JSON.stringify(name), name])).values()];
}

/** Returns the column that a node names; null for any other node. */
export function columnOf(node: Node): { readonly qualifier: string | null; readonly name: string } | null {
  if (!('ColumnRef' in node)) return null;
  const names = (node.ColumnRef.fields ?? []).map((field) =>
    'String' in field ? (field.String.sval ?? '') : '*',
  );
  return { qualifier: names.at(-2) ?? null, name: names.at(-1) ?? '' };
}

type TreeNode = Readonly<Record<string, unknown>>;

export function isTree(value: unknown): value is TreeNode {
  return typeof value === 'object' && value !== null;
}

/** Calls `visit` for every node of a tree. */
export function eachNode(value: unknown, visit: (node: Node) => void): void {
  if (!isTree(value)) return;
  if (!Array.isArray(value)) visit(value as Node); // objects that are not nodes have no key that names a node type
  for (const child of Object.values(value)) eachNode(child, visit);
}

/**
 * Returns the relations named in the body of a function. SQL is parsed; in other bodies, names after FROM, JOIN, INTO,
 * UPDATE and ONLY count. Names without a schema get that of the function's own search_path, if it has exactly one
 * schema.
 */
export function relationsOfFunction(called: DatabaseFunction): readonly RelationName[] {
  if (called.language === 'c' || called.language === 'internal') return [];
  const own = onlySchema(called.searchPath);
  return namesIn(called).map(({ schema, name }) => ({ schema: schema ?? own, name }));
}

function namesIn({ language, body, bound }: DatabaseFunction): readonly RelationName[] {
  // A body with BEGIN ATOMIC is not a list of statements, which the parser expects.
  const parsed = language === 'sql' && !bound ? relationsIn(body) : null;
  return parsed ?? namesAfterKeywords(body);
}

/**
 * Returns the only schema of a search_path, without system schemas and `$user`: `app` for `app, pg_temp`; null if there
 * is not exactly one.
 */
function onlySchema(searchPath: string | null): string | null {
  const schemas = schemasOf(searchPath ?? '').filter((name) => !name.startsWith('pg_') && name !== '$user');
  return schemas.length === 1 ? (schemas[0] ?? null) : null;
}

const IGNORED = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g;
const WORD = String.raw`(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)`;
const NAMED = new RegExp(
  String.raw`\b(?:from|join|into|update|only)\s+(?:only\s+)?(?:(${WORD})\s*\.\s*)?(${WORD})`,
  'gi',
);

function namesAfterKeywords(body: string): readonly RelationName[] {
  return [...body.replace(IGNORED, ' ').matchAll(NAMED)].map(([, schema, name = '']) => ({
    schema: schema === undefined ? null : unquoted(schema),
    name: unquoted(name),
  }));
}

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replaceAll('""', '"') : word.toLowerCase();
}

/** Returns the settings that a function reads with `current_setting` by a literal name. */
export function settingsOfFunction({ body }: DatabaseFunction): readonly string[] {
  return [...body.matchAll(/current_setting\s*\(\s*'([^']+)'/gi)].map(([, name = '']) => name);
}

/**
 * Returns the single query or returned expression of a function in SQL or PL/pgSQL, as the text of a SELECT; null for
 * any other body.
 */
export function queryText({ language, body, bound }: DatabaseFunction): string | null {
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
