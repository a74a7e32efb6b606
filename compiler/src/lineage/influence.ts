/** Contribution of a column to a result, in the terms of OpenLineage's column lineage. */
export type Transformation =
  /** The value is part of the result, possibly transformed or aggregated. */
  | { readonly type: 'DIRECT'; readonly subtype: DirectKind; readonly masking: boolean }
  /**
   * The value affects the result without being part of it. `policy` is true if it does so through a row filter or a
   * mask rather than through the query.
   */
  | { readonly type: 'INDIRECT'; readonly subtype: IndirectKind; readonly policy: boolean };

export type DirectKind = 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION';
export type IndirectKind = 'FILTER' | 'JOIN' | 'GROUP_BY' | 'SORT' | 'WINDOW' | 'CONDITIONAL';

/** A column of the semantic graph, with all its contributions to a result. */
export interface Influence {
  /** `osl.entities.<name>` or `osl.facets.<name>`. */
  readonly object: string;
  readonly column: string;
  /** Sorted, and never empty. */
  readonly transformations: readonly Transformation[];
}

const ORDER: readonly DirectKind[] = ['IDENTITY', 'TRANSFORMATION', 'AGGREGATION'];

/** Raises a direct transformation to at least `kind`. Indirect transformations remain unchanged. */
export function atLeast(transformation: Transformation, kind: DirectKind, masking = false): Transformation {
  if (transformation.type === 'INDIRECT') return transformation;
  const { subtype } = transformation;
  return {
    type: 'DIRECT',
    subtype: ORDER.indexOf(subtype) < ORDER.indexOf(kind) ? kind : subtype,
    masking: transformation.masking || masking,
  };
}

export function indirect(subtype: IndirectKind, policy = false): Transformation {
  return Object.freeze({ type: 'INDIRECT', subtype, policy });
}

/**
 * Returns the transformation of a column that only decides which value is used, such as a CASE condition, if that value
 * itself contributes by `transformation`.
 */
export function deciding(transformation: Transformation, subtype: IndirectKind): Transformation {
  return transformation.type === 'INDIRECT' ? transformation : indirect(subtype);
}

export function keyOf(t: Transformation): string {
  return t.type === 'DIRECT' ? `0${ORDER.indexOf(t.subtype)}${t.masking}` : `1${t.subtype}${t.policy}`;
}

export class Influences {
  readonly #columns = new Map<
    string,
    { object: string; column: string; ways: Map<string, Transformation> }
  >();

  add(object: string, column: string, transformation: Transformation): void {
    const id = JSON.stringify([object, column]);
    const known = this.#columns.get(id) ?? { object, column, ways: new Map() };
    known.ways.set(keyOf(transformation), transformation);
    this.#columns.set(id, known);
  }

  list(): readonly Influence[] {
    const sorted = [...this.#columns].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.freeze(
      sorted.map(([, { object, column, ways }]) => {
        const transformations = [...ways]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([, t]) => Object.freeze(t));
        return Object.freeze({ object, column, transformations: Object.freeze(transformations) });
      }),
    );
  }
}
