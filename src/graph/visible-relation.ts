import type { Relation, VisibleColumn } from 'osl-compiler';
import type { ColumnView } from './view.js';

/** A relation of which the reader may use some column, as the compiler judges it. */
export interface VisibleRelation {
  readonly relation: Relation;
  readonly columns: readonly VisibleColumn[];
  readonly views: readonly ColumnView[];
  /** Columns that the reader can join on. */
  readonly joinable: ReadonlySet<string>;
}
