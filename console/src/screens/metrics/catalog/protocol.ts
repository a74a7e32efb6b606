import type { AskedThread } from '../../../parts/thread/asked-thread.js';
import type { Format } from '../answer/figure.js';
import type { DimensionChoice } from '../dimensions/offered.js';

/** A metric as the schema tells it. */
export interface Metric {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** Null where it takes rows of several entities. */
  readonly entity: string | null;
  readonly kind: string;
  readonly type: string;
  readonly format: Format | null;
}

/** Some of many, and how many there are. */
export interface Some<T> {
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
    readonly answer: Some<Metric>;
  };
  /** Of these names, those that there are. */
  readonly known: { readonly ask: { readonly names: readonly string[] }; readonly answer: readonly Metric[] };
  /** What rows of all these entities can be grouped by. */
  readonly offered: {
    readonly ask: { readonly entities: readonly string[]; readonly term: string; readonly most: number };
    readonly answer: Some<DimensionChoice>;
  };
};

export type CatalogThread = AskedThread<CatalogQuestions>;
