import type { BaseColumn, GovernedScan, Query } from '../plan/plan.js';
import { allQueries, leavesOf, visitExpr } from '../plan/walk.js';
import { identifier } from '../text/sql-text.js';
import { oidOf } from '../types/types.js';
import { emitExpr } from './expression.js';
import { Writer } from './writer.js';

/** A statement that reads no row, and fails or has other columns where a table is not as the manifest declares it. */
export interface SourceProbe {
  readonly sql: string;
  /** Types of its columns where the table is as declared. */
  readonly columnOids: readonly number[];
}

/** One probe for each table that `query` scans, of the columns that it reads of it. */
export function sourceProbes(query: Query): readonly SourceProbe[] {
  const tables = new Map<string, Map<string, BaseColumn>>();
  for (const each of allQueries(query)) {
    if (each.kind !== 'select') continue;
    for (const leaf of leavesOf(each.from)) {
      if (leaf.kind !== 'governed') continue;
      const { schema, table } = leaf.relation;
      const name = `${identifier(schema)}.${identifier(table)}`;
      const columns = tables.get(name) ?? new Map<string, BaseColumn>();
      tables.set(name, columns);
      for (const column of baseColumns(leaf)) columns.set(column.column, column);
    }
  }
  return [...tables].map(([table, columns]) => probeOf(table, [...columns.values()]));
}

function probeOf(table: string, columns: readonly BaseColumn[]): SourceProbe {
  const writer = new Writer([]);
  writer.write('select ');
  writer.list(columns, ', ', (column) => emitExpr(column, writer));
  writer.write(` from ${table} as t limit 0`);
  return { sql: writer.text(), columnOids: columns.map((c) => oidOf(c.type)) };
}

function baseColumns({ columns, filter, pushed }: GovernedScan): readonly BaseColumn[] {
  const found: BaseColumn[] = [];
  for (const expr of [...columns.map((c) => c.expr), ...(filter === null ? [] : [filter]), ...pushed])
    visitExpr(expr, (e) => {
      if (e.kind === 'base') found.push(e);
    });
  return found;
}
