/** An index that an answer rests on. */
export interface IndexRead {
  readonly facet: string;
  /** As `ReadyStore.indexedAt`: of the stores that were read the oldest. */
  readonly indexedAt: string | null;
}

/** The indexes that one question reads, by facet. */
export class IndexesRead {
  readonly #times = new Map<string, string | null>();

  add(facet: string, indexedAt: string | null): void {
    const known = this.#times.get(facet);
    this.#times.set(facet, known === undefined ? indexedAt : older(known, indexedAt));
  }

  /** In the order of their names. */
  list(): readonly IndexRead[] {
    return [...this.#times]
      .map(([facet, indexedAt]) => ({ facet, indexedAt }))
      .sort((a, b) => (a.facet < b.facet ? -1 : 1));
  }
}

/** Times of one form, which sort as texts do. What is not known may be older than anything. */
function older(a: string | null, b: string | null): string | null {
  return a === null || b === null ? null : a < b ? a : b;
}
