import type { TypeName } from 'osl-compiler';
import type { Part } from '../part.js';

/** Declarations for a table in `models:`, as far as a manifest can express them. */
export interface ModelInfo {
  readonly table: string;
  readonly description: string | null;
  readonly columns: ReadonlyMap<string, ModelColumn>;
  readonly primaryKey: readonly string[] | null;
  readonly foreignKeys: readonly ForeignKeyConstraint[];
  readonly part: Part;
  used: boolean;
}

/** A `foreign_key` constraint of a model, or of one of its columns. */
export interface ForeignKeyConstraint {
  readonly columns: readonly string[];
  /** Target table as written: `ref('orders')`, `source('raw', 'orders')` or `raw.orders`. */
  readonly to: string;
  /** Target columns; empty if the constraint names none and so refers to the primary key. */
  readonly toColumns: readonly string[];
  readonly part: Part;
}

export interface ModelColumn {
  readonly type: TypeName | null;
  readonly notNull: boolean;
  readonly description: string | null;
  readonly part: Part;
}
