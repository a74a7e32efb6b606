import type { Access } from '../access/access.js';
import type { Catalog, Relation } from '../catalog/catalog.js';
import { NO_FEATURES } from '../catalog/features.js';
import type { ColumnRef, Expr, SourceId } from '../plan/plan.js';
import { selectOf } from '../plan/select-nodes.js';
import { visitExpr } from '../plan/walk.js';
import type { BoundPlan } from './bind.js';
import { BindContext } from './context.js';
import { columnValue } from './expressions/expression.js';
import { columnsOf, joinParents } from './manifest/computed.js';
import { withUsedColumns } from './runtime/finish-runtime.js';
import { innerScope, resolveColumn, type ScopeItem, withParents } from './scope.js';

export interface SampledValue {
  readonly name: string;
  readonly stored: boolean;
  readonly expr: Expr;
  /** The stored columns that the value is computed from, including keys used to reach parents. */
  readonly reads: readonly SampledRead[];
}

interface SampledRead {
  readonly relation: Relation;
  readonly ref: ColumnRef;
  /** True if the column belongs to a parent of the sampled row. The parent may be missing. */
  readonly ofParent: boolean;
}

/** Rows of an entity with all columns of `*`, in order. Policy has not been applied yet. */
export interface BoundSample {
  /** The plan of the rows, without outputs, ORDER BY and LIMIT. */
  readonly plan: BoundPlan;
  readonly values: readonly SampledValue[];
}

/** Binds the columns of `*` for this caller as a query without outputs. */
export function bindSample(relation: Relation, catalog: Catalog, access: Access): BoundSample {
  const ctx = new BindContext({ original: '', quoted: [] }, catalog, access, NO_FEATURES, []);
  const rights = access.relations.get(relation.name);
  const columns = rights === undefined ? new Map() : columnsOf(relation, rights, ctx);
  const source = ctx.nextSource();
  const item: ScopeItem = { source, alias: relation.name, columns, relation, parents: [] };
  const scope = innerScope(null, [item], new Map());
  const starred = [...item.columns.values()].filter((c) => c.starred);
  const bound = starred.map(({ name, computed }) => {
    const expr = columnValue(resolveColumn(scope, [name], ctx, undefined), ctx, undefined);
    return { name, stored: computed === undefined, expr };
  });
  const reads = new StoredReads(item);
  const values = bound.map((value) => Object.freeze({ ...value, reads: reads.under(value.expr) }));
  const scan = Object.freeze({ kind: 'entity', id: source, relation, columns: [] } as const);
  const query = selectOf({ from: joinParents(scan, [item]), outputs: [] });
  const plan: BoundPlan = Object.freeze({
    form: 'structured',
    joins: null,
    query: withUsedColumns(query, ctx),
    runtime: Object.freeze([]),
    columns: Object.freeze([]),
    positionOf: () => null,
    positionOfSource: () => null,
    ...ctx.finish(),
  });
  return Object.freeze({ plan, values: Object.freeze(values) });
}

class StoredReads {
  readonly #own: ScopeItem;
  readonly #items = new Map<SourceId, ScopeItem>();
  readonly #keys = new Map<SourceId, readonly ColumnRef[]>();

  constructor(own: ScopeItem) {
    this.#own = own;
    for (const item of withParents([own])) {
      this.#items.set(item.source, item);
      for (const { item: parent, on } of item.parents ?? []) {
        const sides = on.flatMap(({ left, right }) => [left, right]);
        this.#keys.set(
          parent.source,
          sides.filter((side) => side?.kind === 'column'),
        );
      }
    }
  }

  under(expr: Expr): readonly SampledRead[] {
    const found = new Map<string, SampledRead>();
    visitExpr(expr, (e) => {
      if (e.kind === 'column') this.#add(e, found);
    });
    return Object.freeze([...found.values()]);
  }

  #add(ref: ColumnRef, found: Map<string, SampledRead>): void {
    const id = `${ref.source} ${ref.name}`;
    const item = this.#items.get(ref.source);
    if (found.has(id) || item === undefined || item.relation === null) return;
    found.set(id, Object.freeze({ relation: item.relation, ref, ofParent: item !== this.#own }));
    for (const key of this.#keys.get(ref.source) ?? []) this.#add(key, found);
  }
}
