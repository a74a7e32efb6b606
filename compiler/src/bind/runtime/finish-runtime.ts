import type { Catalog, FacetStore } from '../../catalog/catalog.js';
import { assertNever, InternalError } from '../../errors/errors.js';
import type { Query } from '../../plan/plan.js';
import {
  type CapHandling,
  EVIDENCE,
  type Hydration,
  type OperatedRows,
  type Retrieval,
  type RuntimeColumn,
  type RuntimeRelation,
  type Traversal,
} from '../../plan/runtime.js';
import { mapQuery } from '../../plan/walk.js';
import type { TypeName } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { answersRowByRow, isOnlyShown } from './clipping.js';
import { mostPerHop, type RuntimeDraft } from './runtime-draft.js';

/** Completes a draft with the columns that the statement uses. */
export function finishRelation(draft: RuntimeDraft, query: Query, ctx: BindContext): RuntimeRelation {
  const columns = usedColumns(draft, ctx);
  switch (draft.kind) {
    case 'retrieval': {
      const { offered: _, filters, keyFilters, operators, ...rest } = draft;
      const lists = {
        filters: Object.freeze([...filters]),
        keyFilters: Object.freeze(
          keyFilters.map((f) => Object.freeze({ ...f, query: withUsedColumns(f.query, ctx) })),
        ),
        operators: Object.freeze([...operators]),
      };
      return Object.freeze({ ...rest, ...lists, columns } satisfies Retrieval);
    }
    case 'traversal': {
      const { offered: _, ...rest } = draft;
      const plain = answersRowByRow(query, draft.source, (select) => ctx.isInOwnOrder(select));
      const clipping = plain ? 'told' : 'refused';
      const perHop = draft.perHop ?? perHopUnlessTold(clipping, ctx.catalog);
      const start = draft.start === null ? null : withUsedColumns(draft.start, ctx);
      return Object.freeze({ ...rest, start, perHop, clipping, columns } satisfies Traversal);
    }
    case 'hydration': {
      const { offered: _, keys, ...rest } = draft;
      if (keys === null) throw new InternalError('content without keys was not refused');
      const isUsed = (f: FacetStore): boolean =>
        columns.some((c) => c.name === EVIDENCE || f.derived.some((d) => d.name === c.name));
      const facets = Object.freeze(draft.facets.filter(isUsed));
      const clipping = isOnlyShown(query, draft.source, EVIDENCE) ? 'told' : 'refused';
      return Object.freeze({ ...rest, keys, facets, clipping, columns } satisfies Hydration);
    }
    case 'operated': {
      const { offered: _, rows, ...rest } = draft;
      if (rows === null) throw new InternalError('the rows of operators were not taken out of their SELECT');
      return Object.freeze({ ...rest, rows: withUsedColumns(rows, ctx), columns } satisfies OperatedRows);
    }
    default:
      return assertNever(draft);
  }
}

const DEFAULT_PER_HOP = 1_000;

/** Refused caps allow the maximum; otherwise a number of rows that people can read. */
function perHopUnlessTold(clipping: CapHandling, catalog: Catalog): number {
  return clipping === 'refused' ? mostPerHop(catalog) : Math.min(DEFAULT_PER_HOP, mostPerHop(catalog));
}

function usedColumns(draft: RuntimeDraft, ctx: BindContext): readonly RuntimeColumn[] {
  const operators = draft.kind === 'retrieval' ? draft.operators : [];
  const types = new Map<string, TypeName>([
    ...draft.offered,
    ...operators.map((o) => [o.column, o.type] as const),
  ]);
  return Object.freeze(
    ctx.usedOf(draft.source).flatMap((name) => {
      const type = types.get(name);
      return type === undefined ? [] : [Object.freeze({ name, type })];
    }),
  );
}

function columnsOfDraft(source: number, ctx: BindContext) {
  const draft = ctx.drafts.find((d) => d.source === source);
  return draft === undefined ? [] : usedColumns(draft, ctx);
}

/** Fills in the columns of each scan. Call it when the whole statement is bound. */
export function withUsedColumns(query: Query, ctx: BindContext): Query {
  return mapQuery(query, {
    item: (i) =>
      i.kind === 'entity'
        ? Object.freeze({ ...i, columns: Object.freeze(ctx.usedOf(i.id)) })
        : i.kind === 'runtime'
          ? Object.freeze({ ...i, columns: columnsOfDraft(i.id, ctx) })
          : i,
  });
}
