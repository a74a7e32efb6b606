/** The way in which a column of the data reaches an answer, in the terms of OpenLineage's column lineage. */
export type Transformation =
  /** The value itself goes in: as it is, computed on, or aggregated. */
  | { readonly type: 'DIRECT'; readonly subtype: DirectKind; readonly masking: boolean }
  /** It decides what goes in. `policy`: no clause of the question looks at it, but a row filter or a mask does. */
  | { readonly type: 'INDIRECT'; readonly subtype: IndirectKind; readonly policy: boolean };

export type DirectKind = 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION';
export type IndirectKind = 'FILTER' | 'JOIN' | 'GROUP_BY' | 'SORT' | 'WINDOW' | 'CONDITIONAL';

/** One column of the semantic graph, and every way in which it reaches an answer. */
export interface Influence {
  /** `osl.entities.<name>` or `osl.facets.<name>`. */
  readonly object: string;
  readonly column: string;
  /** Never empty; sorted. */
  readonly transformations: readonly Transformation[];
}

const ORDER: readonly DirectKind[] = ['IDENTITY', 'TRANSFORMATION', 'AGGREGATION'];

/** `transformation` with at least `kind` done to the value; what only decides stays what it is. */
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

/** The way of what decides about a value whose own way is `transformation`. */
export function deciding(transformation: Transformation, subtype: IndirectKind): Transformation {
  return transformation.type === 'INDIRECT' ? transformation : indirect(subtype);
}

export function keyOf(t: Transformation): string {
  return t.type === 'DIRECT' ? `0${ORDER.indexOf(t.subtype)}${t.masking}` : `1${t.subtype}${t.policy}`;
}

/** Gathers influences; each column and way counts once. */
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

  /** Sorted by object and column. */
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
