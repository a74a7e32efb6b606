import type { Node, SelectStmt } from '@pgsql/types';
import { identifier, quoteLiteral } from 'osl-compiler';
import type { PgRelation } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { namesOf } from '../nodes.js';
import { columnOf, eachNode } from '../statement.js';
import type { GivenStatement } from './statements.js';
import { selectIn } from './statements.js';

/** A statement with schemas and values filled in, or the reason why it cannot run. */
export type ReadyStatement =
  | { readonly kind: 'ready'; readonly text: string; readonly sampled: readonly string[] }
  | { readonly kind: 'refused'; readonly reason: string };

/** Returns a value of a column from a row that the caller sees; null if the caller sees no such row. */
export type ColumnSample = (table: PgRelation, column: string) => Promise<string | null>;

interface ParameterEdit {
  /** Offset in UTF-8 bytes. */
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

/**
 * Prepares a statement to run on both sides: adds the schema to unqualified tables, and replaces each `$n` that
 * pg_stat_statements put in place of a literal with a value from a row that the caller sees.
 *
 * @param searchPath schemas in which the role looks for tables
 */
export async function readyStatement(
  { text }: GivenStatement,
  database: CheckedDatabase,
  searchPath: readonly string[],
  sample: ColumnSample,
): Promise<ReadyStatement> {
  const parsed = selectIn(text);
  if (parsed.kind === 'refused') return parsed;
  const tables = tablesOf(parsed.node, database, searchPath);
  const edits: ParameterEdit[] = tables.unqualified.map(({ at, schema }) => ({
    at,
    length: 0,
    text: `${identifier(schema)}.`,
  }));
  const sampled: string[] = [];
  for (const { number, at, use } of placeholdersOf(parsed.node)) {
    const found = await valueFor(use, tables, sample);
    if (found.kind === 'none') return { kind: 'refused', reason: `no value for $${number}: ${found.reason}` };
    const { value } = found;
    if (use?.kind !== 'count') sampled.push(value);
    edits.push({
      at,
      length: `$${number}`.length,
      text: use?.kind === 'count' ? value : quoteLiteral(value),
    });
  }
  if (edits.length > 0 && parsed.offsets === 'edited')
    return { kind: 'refused', reason: 'its names cannot be replaced: write the schema of each table' };
  return { kind: 'ready', text: edited(text, edits), sampled };
}

function edited(text: string, edits: readonly ParameterEdit[]): string {
  const bytes = Buffer.from(text, 'utf8');
  const parts: Buffer[] = [];
  let from = 0;
  for (const { at, length, text: added } of [...edits].sort((a, b) => a.at - b.at)) {
    parts.push(bytes.subarray(from, at), Buffer.from(added, 'utf8'));
    from = at + length;
  }
  return Buffer.concat([...parts, bytes.subarray(from)]).toString('utf8');
}

interface NamedTables {
  /** Tables by alias or, without one, by name. */
  readonly byAlias: ReadonlyMap<string, PgRelation>;
  readonly unqualified: readonly { readonly at: number; readonly schema: string }[];
}

function tablesOf(statement: Node, database: CheckedDatabase, searchPath: readonly string[]): NamedTables {
  const common = new Set<string>();
  eachNode(statement, (node) => {
    if ('CommonTableExpr' in node) common.add(node.CommonTableExpr.ctename ?? '');
  });
  const byAlias = new Map<string, PgRelation>();
  const unqualified: { at: number; schema: string }[] = [];
  eachNode(statement, (node) => {
    if (!('RangeVar' in node)) return;
    const { schemaname = null, relname: name = '', alias, location = 0 } = node.RangeVar;
    if (schemaname === null && common.has(name)) return;
    const table = tableNamed(schemaname, name, database, searchPath);
    if (table === null) return;
    byAlias.set(alias?.aliasname ?? name, table);
    if (schemaname === null) unqualified.push({ at: location, schema: table.schema });
  });
  return { byAlias, unqualified };
}

/**
 * Returns the table `name` in `schema`. Without a schema, searches the search_path, then takes the only table of this
 * name; null if none is found.
 */
function tableNamed(
  schema: string | null,
  name: string,
  database: CheckedDatabase,
  searchPath: readonly string[],
): PgRelation | null {
  for (const one of schema === null ? searchPath : [schema]) {
    const found = database.relationNamed({ schema: one, name });
    if (found !== null) return found;
  }
  return schema === null ? database.relationNamed({ schema: null, name }) : null;
}

/** Use of a placeholder, from which its value is chosen; null if no value can be derived from the use. */
type Use =
  | {
      readonly kind: 'compared' | 'prefix' | 'elements';
      readonly qualifier: string | null;
      readonly column: string;
    }
  | { readonly kind: 'count'; readonly value: string }
  | null;

interface Placeholder {
  readonly number: number;
  readonly at: number;
  readonly use: Use;
}

function placeholdersOf(statement: Node): readonly Placeholder[] {
  const uses = new Map<number, Use>();
  const at = new Map<number, number>();
  eachNode(statement, (node) => {
    for (const [param, use] of usesIn(node)) uses.set(param, use);
    if ('ParamRef' in node) at.set(node.ParamRef.location ?? 0, node.ParamRef.number ?? 0);
  });
  return [...at].map(([location, number]) => ({ number, at: location, use: uses.get(location) ?? null }));
}

/** Returns the use of each placeholder among the operands of a node, with the placeholder's location. */
function usesIn(node: Node): readonly (readonly [location: number, use: Use])[] {
  if ('SelectStmt' in node) return limitsOf(node.SelectStmt);
  if (!('A_Expr' in node)) return [];
  const { kind, name, lexpr, rexpr } = node.A_Expr;
  const operator = namesOf(name).at(-1) ?? '';
  const sides = [
    [lexpr, rexpr],
    [rexpr, lexpr],
  ] as const;
  return sides.flatMap(([value, other]) => {
    const column = value === undefined ? null : columnOf(withoutCasts(value));
    if (column === null) return [];
    if (kind === 'AEXPR_OP' && !COMPARING.has(operator)) return [];
    const isLike = kind === 'AEXPR_LIKE' || kind === 'AEXPR_ILIKE';
    const use: Use = {
      kind: isLike ? 'prefix' : kind === 'AEXPR_OP_ANY' ? 'elements' : 'compared',
      qualifier: column.qualifier,
      column: column.name,
    };
    return parametersIn(other).map((location) => [location, use] as const);
  });
}

const COMPARING: ReadonlySet<string> = new Set(['=', '<', '>', '<=', '>=', '<>']);

function limitsOf({ limitCount, limitOffset }: SelectStmt): readonly (readonly [number, Use])[] {
  return [
    ...parametersIn(limitCount).map((at) => [at, { kind: 'count', value: '10' }] as const),
    ...parametersIn(limitOffset).map((at) => [at, { kind: 'count', value: '0' }] as const),
  ];
}

/** Returns the locations of the placeholders in an operand: the operand itself, or the members of a list. */
function parametersIn(node: Node | undefined): readonly number[] {
  if (node === undefined) return [];
  const inner = withoutCasts(node);
  if ('ParamRef' in inner) return [inner.ParamRef.location ?? 0];
  return 'List' in inner ? (inner.List.items ?? []).flatMap(parametersIn) : [];
}

function withoutCasts(node: Node): Node {
  return 'TypeCast' in node && node.TypeCast.arg !== undefined ? withoutCasts(node.TypeCast.arg) : node;
}

/** Number of leading characters of a sampled text that are used as the prefix of a LIKE pattern. */
const PREFIX = 4;

type FoundValue =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'none'; readonly reason: string };

async function valueFor(use: Use, { byAlias }: NamedTables, sample: ColumnSample): Promise<FoundValue> {
  if (use === null) return { kind: 'none', reason: 'it is compared with no column of a table' };
  if (use.kind === 'count') return { kind: 'value', value: use.value };
  const candidates = use.qualifier === null ? [...byAlias.values()] : [byAlias.get(use.qualifier)];
  const table = candidates.find((one) => one?.columns.some(({ name }) => name === use.column) === true);
  if (table === undefined) return { kind: 'none', reason: `${use.column} is not a column of a table` };
  const value = await sample(table, use.column);
  if (value === null)
    return {
      kind: 'none',
      reason: `the caller sees no row of ${table.schema}.${table.name} to take it from`,
    };
  if (use.kind === 'prefix')
    return { kind: 'value', value: `${value.slice(0, PREFIX).replace(/[\\%_]/g, '\\$&')}%` };
  return { kind: 'value', value: use.kind === 'elements' ? `{"${value.replace(/["\\]/g, '\\$&')}"}` : value };
}
