import type { ValueFormat } from '../../../../../clients/typescript/types.js';
import type { QueryableThread } from '../../../parts/thread.js';
import type { DimensionChoice } from './dimensions.js';
import type { DrillQuery, DrillQuestion } from './drill.js';

/** A metric, as described by the schema. */
export interface CatalogMetric {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** Entity whose rows the metric uses; null if there are several. */
  readonly entity: string | null;
  /** `yes` if the metric can be grouped by `metric_time`; `unknown` if it uses rows of several entities. */
  readonly time: 'yes' | 'no' | 'unknown';
  readonly kind: string;
  readonly type: string;
  readonly format: ValueFormat | null;
}

export interface PartialList<T> {
  readonly first: readonly T[];
  readonly total: number;
}

/** Requests to the worker thread, which holds the schema. */
export type CatalogQuestions = {
  readonly load: {
    readonly ask: { readonly body: ArrayBuffer };
    readonly answer: { readonly metrics: number; readonly version: string };
  };
  /** The first `most` metrics that match a search term; an empty term matches all. */
  readonly metrics: {
    readonly ask: { readonly term: string; readonly most: number };
    readonly answer: PartialList<CatalogMetric>;
  };
  /** Looks up metrics by name; unknown names are omitted. */
  readonly known: {
    readonly ask: { readonly names: readonly string[] };
    readonly answer: readonly CatalogMetric[];
  };
  /** Dimensions by which the rows of all these entities can be grouped. */
  readonly offered: {
    readonly ask: { readonly entities: readonly string[]; readonly term: string; readonly most: number };
    readonly answer: PartialList<DimensionChoice>;
  };
  /** Queries for the rows behind a value, one for each of these entities. */
  readonly drill: {
    readonly ask: DrillQuestion;
    readonly answer: readonly DrillQuery[];
  };
};

export type CatalogThread = QueryableThread<CatalogQuestions>;
