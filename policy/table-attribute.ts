import type { Expr, Relation, TypeName } from 'osl-compiler';

/** An attribute whose values are read from an entity for each subject. Frozen. */
export interface TableAttribute {
  readonly name: string;
  readonly relation: Relation;
  /** Null: the value is true if there is a row. */
  readonly column: string | null;
  readonly type: TypeName;
  /** Selects the subject's rows by other attributes of the subject. */
  readonly filter: Expr;
  /** The attributes that `filter` names. */
  readonly needs: ReadonlySet<string>;
  /** Time in ms for which values may be used again. */
  readonly maxAgeMs: number;
}

/** Values read for the subjects of a chain, root first; a missing name is a missing attribute. */
export interface ReadAttributes {
  /** Equal keys mean equal values. */
  readonly key: string;
  readonly subjects: readonly ReadonlyMap<string, readonly string[]>[];
}
