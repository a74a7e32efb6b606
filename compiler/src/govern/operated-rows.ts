import { castTo, columnRef, selectOf } from '../plan/nodes.js';
import type { Output, Query, SourceId } from '../plan/plan.js';
import type { OperatedRows, RuntimeRelation } from '../plan/runtime.js';
import { columnsOf, mapQuery } from '../plan/walk.js';
import type { GovernedRuntime } from './governed-plan.js';

/** The rows of a statement that operators work on, each with the query that brings them. */
type OperatedQueries = ReadonlyMap<SourceId, { readonly relation: OperatedRows; readonly query: Query }>;

export function boundRows(runtime: readonly RuntimeRelation[]): OperatedQueries {
  return new Map(
    runtime.flatMap((r) => (r.kind === 'operated' ? [[r.source, { relation: r, query: r.rows }]] : [])),
  );
}

export function governedRows(runtime: readonly GovernedRuntime[]): OperatedQueries {
  return new Map(
    runtime.flatMap(({ kind, ...r }) =>
      kind === 'operated' && 'rows' in r
        ? [[r.relation.source, { relation: r.relation, query: r.rows.query }]]
        : [],
    ),
  );
}

/**
 * `root` as if the rows that operators work on were a derived table of it, and each result the text that it rests on:
 * for what asks where values come from. It is never run.
 */
export function withRowsInPlace(root: Query, operated: OperatedQueries): Query {
  if (operated.size === 0) return root;
  return mapQuery(root, {
    item: (i) => {
      if (i.kind !== 'runtime') return i;
      const rows = operated.get(i.id);
      return rows === undefined ? i : Object.freeze({ kind: 'derived', id: i.id, query: derived(rows) });
    },
  });
}

function derived({ relation, query }: { readonly relation: OperatedRows; readonly query: Query }): Query {
  // No other FROM item of the statement has such an id.
  const id = -relation.source;
  const results = relation.operators.length;
  const columns = columnsOf(query);
  const output = (position: number): Output['expr'] =>
    columnRef(id, `c${position}`, columns[position - 1]?.type ?? 'text');
  return selectOf({
    from: Object.freeze({ kind: 'derived', id, query }),
    outputs: [
      // A cast hands no column on as it is.
      ...relation.operators.map((o) => ({
        name: o.column,
        expr: castTo(output(Number(o.of.slice(1)) - results), o.type),
      })),
      ...columns.map(({ name }, i) => ({ name, expr: output(i + 1) })),
    ],
  });
}
