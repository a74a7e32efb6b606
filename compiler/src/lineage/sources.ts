import { assertNever, InternalError } from '../errors/errors.js';
import type { FromLeaf, GovernedScan, Query, RecursionRef, RowSource, SourceId } from '../plan/plan.js';
import { allQueries, columnsOf, leavesOf } from '../plan/walk.js';

export type ColumnOrigin =
  | { readonly kind: 'scan'; readonly scan: GovernedScan }
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'rows'; readonly made: RowSource }
  | { readonly kind: 'step'; readonly query: Query; readonly recursion: RecursionRef }
  | { readonly kind: 'runtime'; readonly slot: number };

export class Sources {
  readonly #leaves = new Map<SourceId, FromLeaf>();
  readonly #tables = new Map<number, Query>();

  constructor(root: Query) {
    for (const query of allQueries(root)) {
      if (query.kind === 'values') continue;
      for (const table of query.with) this.#tables.set(table.id, table.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) this.#leaves.set(leaf.id, leaf);
    }
  }

  origin(source: SourceId): ColumnOrigin {
    const leaf = this.#leaves.get(source);
    if (leaf === undefined) throw new InternalError(`source ${source} is no FROM item`);
    return this.originOf(leaf);
  }

  originOf(leaf: FromLeaf): ColumnOrigin {
    switch (leaf.kind) {
      case 'governed':
        return { kind: 'scan', scan: leaf };
      case 'derived':
        return { kind: 'query', query: leaf.query };
      case 'spine':
        return { kind: 'query', query: leaf.bounds };
      case 'cte': {
        const query = this.#tables.get(leaf.table);
        if (query === undefined) throw new InternalError(`common table ${leaf.table} is not there`);
        return { kind: 'query', query };
      }
      case 'rows':
        return { kind: 'rows', made: leaf };
      case 'recursion': {
        const query = this.#tables.get(leaf.table);
        if (query === undefined) throw new InternalError(`recursive table ${leaf.table} is not there`);
        return { kind: 'step', query, recursion: leaf };
      }
      case 'runtime':
        return { kind: 'runtime', slot: leaf.slot };
      case 'entity':
        throw new InternalError(`scan of ${leaf.relation.name} is not governed`);
      default:
        return assertNever(leaf);
    }
  }
}

export function widthOf(query: Query): number {
  return columnsOf(query).length;
}
