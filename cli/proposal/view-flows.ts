import type { Node, SelectStmt } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import type { UpstreamRelation } from '../../src/model/discovery/index.js';
import { columnId } from './choose.js';

export interface FlowSource {
  readonly id: string;
  readonly table: string;
  readonly column: string;
}

export type ViewFlows = ReadonlyMap<string, readonly FlowSource[]>;

/**
 * Sources of the columns of all views, derived from their definitions. If a definition cannot be analysed, its columns
 * are assumed to depend on every column of the relations that it names. Requires `ready()` of osl-compiler.
 */
export function viewFlows(relations: readonly UpstreamRelation[]): ViewFlows {
  const known = new Map(relations.map((r) => [columnsKey(r.schema, r.name), r]));
  const flows = new Map<string, readonly FlowSource[]>();
  for (const view of relations) {
    if (view.definition === null) continue;
    const reads = readsOf(view.definition, known);
    const idOf = (column: string): string => columnId({ schema: view.schema, table: view.name }, column);
    const own = new Set(view.columns.map(({ name }) => idOf(name)));
    for (const [i, { name }] of view.columns.entries()) {
      const made = reads.outputs?.[i]?.reads ?? reads.all;
      flows.set(
        idOf(name),
        [...made.values()].filter(({ id }) => !own.has(id)),
      );
    }
  }
  return flows;
}

type FlowSources = ReadonlyMap<string, FlowSource>;
type RelationsByName = ReadonlyMap<string, UpstreamRelation>;

interface FlowOutput {
  readonly name: string;
  readonly reads: FlowSources;
}

interface VisibleTable {
  readonly alias: string;
  readonly columns: readonly FlowOutput[];
}

/** Map key of a relation, encoded as JSON so that it is unambiguous for any names. */
function columnsKey(schema: string, name: string): string {
  return JSON.stringify([schema, name]);
}

function readsOf(
  definition: string,
  known: RelationsByName,
): { outputs: readonly FlowOutput[] | null; all: FlowSources } {
  try {
    const { node } = parse(definition.trim().replace(/;$/, ''));
    if (!('SelectStmt' in node)) return { outputs: null, all: new Map() };
    return { outputs: outputsOf(node.SelectStmt, new Map(), [], known), all: everythingIn(node, known) };
  } catch (error) {
    // The definition is too long, too deep, or not in our grammar.
    if (error instanceof QueryError || error instanceof RangeError)
      return { outputs: null, all: mentioned(definition, known) };
    throw error;
  }
}

type CteOutputs = ReadonlyMap<string, readonly FlowOutput[]>;

function outputsOf(
  select: SelectStmt,
  around: CteOutputs,
  outer: readonly VisibleTable[],
  known: RelationsByName,
): readonly FlowOutput[] {
  const tables = new Map(around);
  for (const node of select.withClause?.ctes ?? []) {
    if (!('CommonTableExpr' in node)) continue;
    const { ctename = '', ctequery, aliascolnames = [] } = node.CommonTableExpr;
    if (ctequery === undefined || !('SelectStmt' in ctequery)) continue;
    // A recursive CTE is assumed to depend on everything in it.
    const own = everythingIn(ctequery, known);
    tables.set(ctename, []);
    const outputs = outputsOf(ctequery.SelectStmt, tables, outer, known).map(({ name, reads }, i) => {
      return {
        name: stringIn(aliascolnames[i]) ?? name,
        reads: select.withClause?.recursive === true ? own : reads,
      };
    });
    tables.set(ctename, outputs);
  }
  if (select.larg !== undefined && select.rarg !== undefined) {
    const [left, right] = [select.larg, select.rarg].map((side) => outputsOf(side, tables, outer, known));
    return (left ?? []).map(({ name, reads }, i) => ({
      name,
      reads: joined([reads, right?.[i]?.reads ?? new Map()]),
    }));
  }
  const items = [
    ...(select.fromClause ?? []).flatMap((node) => itemsOf(node, tables, outer, known)),
    ...outer,
  ];
  return (select.targetList ?? []).flatMap((node): readonly FlowOutput[] => {
    const target = 'ResTarget' in node ? node.ResTarget : {};
    const { val, name = '' } = target;
    if (val === undefined) return [];
    const starred = starIn(val, items);
    return starred ?? [{ name: name === '' ? nameIn(val) : name, reads: readsIn(val, items, tables, known) }];
  });
}

function itemsOf(
  node: Node,
  tables: CteOutputs,
  outer: readonly VisibleTable[],
  known: RelationsByName,
): readonly VisibleTable[] {
  if ('JoinExpr' in node) {
    return [node.JoinExpr.larg, node.JoinExpr.rarg].flatMap((side) =>
      side === undefined ? [] : itemsOf(side, tables, outer, known),
    );
  }
  if ('RangeVar' in node) {
    const { schemaname, relname = '', alias } = node.RangeVar;
    const common = schemaname === undefined ? tables.get(relname) : undefined;
    const columns = common ?? columnsOf(known.get(columnsKey(schemaname ?? '', relname)));
    return [{ alias: alias?.aliasname ?? relname, columns: renamed(columns, alias?.colnames) }];
  }
  if ('RangeSubselect' in node) {
    const { subquery, alias } = node.RangeSubselect;
    if (subquery === undefined || !('SelectStmt' in subquery)) return [];
    const columns = outputsOf(subquery.SelectStmt, tables, outer, known);
    return [{ alias: alias?.aliasname ?? '', columns: renamed(columns, alias?.colnames) }];
  }
  return [];
}

function renamed(columns: readonly FlowOutput[], names: readonly Node[] | undefined): readonly FlowOutput[] {
  return names === undefined
    ? columns
    : columns.map((c, i) => ({ ...c, name: stringIn(names[i]) ?? c.name }));
}

function columnsOf(relation: UpstreamRelation | undefined): readonly FlowOutput[] {
  return (relation?.columns ?? []).map(({ name: column }) => {
    const { schema = '', name: table = '' } = relation ?? {};
    const id = columnId({ schema, table }, column);
    return { name: column, reads: new Map([[id, { id, table, column }]]) };
  });
}

/** Sources of an expression, including its subqueries. Counts have no sources, because they reveal no value. */
function readsIn(
  value: unknown,
  items: readonly VisibleTable[],
  tables: CteOutputs,
  known: RelationsByName,
): FlowSources {
  if (typeof value !== 'object' || value === null) return new Map();
  if ('ColumnRef' in value) return referred(value as Extract<Node, { ColumnRef: unknown }>, items);
  if ('SelectStmt' in value) {
    const { SelectStmt } = value as Extract<Node, { SelectStmt: unknown }>;
    return joined(outputsOf(SelectStmt, tables, items, known).map((o) => o.reads));
  }
  if ('FuncCall' in value && isCount(value as Extract<Node, { FuncCall: unknown }>)) return new Map();
  return joined(Object.values(value).map((member) => readsIn(member, items, tables, known)));
}

function isCount({ FuncCall: { funcname = [] } }: Extract<Node, { FuncCall: unknown }>): boolean {
  return stringIn(funcname.at(-1)) === 'count';
}

/**
 * Sources of a column reference. An ambiguous name counts as every column it may refer to, an unknown one as everything
 * in scope.
 */
function referred(
  { ColumnRef: { fields = [] } }: Extract<Node, { ColumnRef: unknown }>,
  items: readonly VisibleTable[],
): FlowSources {
  const [name, alias] = [stringIn(fields.at(-1)), fields.length > 1 ? stringIn(fields.at(-2)) : null];
  const meant = alias === null ? items : items.filter((i) => i.alias === alias);
  const found = meant.flatMap((i) => i.columns.filter((c) => c.name === name));
  const whole = items.filter((i) => i.alias === name);
  const columns = found.length > 0 ? found : (whole.length > 0 ? whole : items).flatMap((i) => i.columns);
  return joined(columns.map((c) => c.reads));
}

function starIn(val: Node, items: readonly VisibleTable[]): readonly FlowOutput[] | null {
  if (!('ColumnRef' in val)) return null;
  const fields = val.ColumnRef.fields ?? [];
  const last = fields.at(-1);
  if (last === undefined || !('A_Star' in last)) return null;
  const alias = fields.length > 1 ? stringIn(fields.at(-2)) : null;
  return items.filter((i) => alias === null || i.alias === alias).flatMap((i) => i.columns);
}

function nameIn(val: Node): string {
  return 'ColumnRef' in val ? (stringIn(val.ColumnRef.fields?.at(-1)) ?? '') : '';
}

function stringIn(node: Node | undefined): string | null {
  return node !== undefined && 'String' in node ? (node.String.sval ?? '') : null;
}

/** Every column of every relation in a syntax tree. */
function everythingIn(value: unknown, known: RelationsByName): FlowSources {
  if (typeof value !== 'object' || value === null) return new Map();
  if ('RangeVar' in value) {
    const { schemaname = '', relname = '' } = (value as Extract<Node, { RangeVar: unknown }>).RangeVar;
    return joined(columnsOf(known.get(columnsKey(schemaname, relname))).map((c) => c.reads));
  }
  return joined(Object.values(value).map((member) => everythingIn(member, known)));
}

/** Every column of every relation named in a text that cannot be parsed. */
function mentioned(definition: string, known: RelationsByName): FlowSources {
  const named = [...known.values()].filter((r) => definition.includes(r.name));
  return joined(named.flatMap((r) => columnsOf(r).map((c) => c.reads)));
}

function joined(all: readonly FlowSources[]): FlowSources {
  return new Map(all.flatMap((reads) => [...reads]));
}
