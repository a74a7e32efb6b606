import type { QueryableThread } from '../../../parts/thread/asked-thread.js';
import type { FigureFormat } from '../answer/figure.js';
import type { DimensionChoice } from '../dimensions/offered.js';

/** A metric as the schema tells it. */
export interface CatalogMetric {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** Null where it takes rows of several entities. */
  readonly entity: string | null;
  readonly kind: string;
  readonly type: string;
  readonly format: FigureFormat | null;
}

/** Some of many, and how many there are. */
export interface PartialList<T> {
  readonly first: readonly T[];
  readonly total: number;
}

/** What the thread of the screen is asked: it holds the schema, of any size, so that the page need not. */
export type CatalogQuestions = {
  readonly load: {
    readonly ask: { readonly body: ArrayBuffer };
    readonly answer: { readonly metrics: number; readonly version: string };
  };
  /** Metrics that a word is found in, or the first ones. */
  readonly metrics: {
    readonly ask: { readonly term: string; readonly most: number };
    readonly answer: PartialList<CatalogMetric>;
  };
  /** Of these names, those that there are. */
  readonly known: {
    readonly ask: { readonly names: readonly string[] };
    readonly answer: readonly CatalogMetric[];
  };
  /** What rows of all these entities can be grouped by. */
  readonly offered: {
    readonly ask: { readonly entities: readonly string[]; readonly term: string; readonly most: number };
    readonly answer: PartialList<DimensionChoice>;
  };
};

export type CatalogThread = QueryableThread<CatalogQuestions>;
