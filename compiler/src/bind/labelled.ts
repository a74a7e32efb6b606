import type { Relation } from '../catalog/catalog.js';
import type { Expr, Query, SourceId } from '../plan/plan.js';

/**
 * The columns of a statement's FROM items that are read as text and are labels of an enum. A cast of one to text stays
 * in the plan until `govern/enum-order.ts` has given the others their order: Postgres orders the text as any text.
 */
export class LabelledColumns {
  readonly #columns = new Map<SourceId, ReadonlySet<string>>();

  /** A key is joined on as it is, whatever it is cast to. */
  ofRelation(source: SourceId, { columns, sealedKeys }: Relation): void {
    const labelled = columns.filter((c) => c.labels !== undefined && !sealedKeys.includes(c.name));
    this.#note(
      source,
      labelled.map((c) => c.name),
    );
  }

  ofQuery(source: SourceId, query: Query): void {
    if (this.#columns.size > 0) this.#note(source, this.#outputsOf(query));
  }

  has(expr: Expr): boolean {
    return expr.kind === 'column' && this.#columns.get(expr.source)?.has(expr.name) === true;
  }

  #outputsOf(query: Query): readonly string[] {
    if (query.kind === 'set_operation') return this.#outputsOf(query.left);
    if (query.kind === 'values') return [];
    return query.outputs.flatMap(({ expr }, i) => (this.has(expr) ? [`c${i + 1}`] : []));
  }

  #note(source: SourceId, names: readonly string[]): void {
    if (names.length > 0) this.#columns.set(source, new Set(names));
  }
}
