import type { Relation, RelationAccess } from 'osl-compiler';
import type { ColumnView } from './view.js';

/** A relation of which the reader may use something, as the compiler judges it. */
export interface VisibleRelation {
  readonly relation: Relation;
  readonly rights: RelationAccess;
  readonly views: readonly ColumnView[];
  /** Columns that the reader can join on. */
  readonly joinable: ReadonlySet<string>;
}
