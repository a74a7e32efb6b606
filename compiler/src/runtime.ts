import type { FacetStore } from './catalog.js';
import type { OperatorName } from './operators.js';
import type { Expr, SourceId } from './plan.js';
import type { TypeName } from './types.js';

/**
 * A FROM item whose rows are worked out before the statement runs, and given to it as one jsonb parameter. What is
 * above it in the statement is ordinary governed SQL.
 */
export type RuntimeRelation = Retrieval | Traversal | Hydration;

/** Where a passage stands among the answer's, best first, from 1. No query can name this column. */
export const ORDINAL = '#ordinal';

/** The column of a passage that names its redacted fields. */
export const REDACTED_FIELDS = 'redacted_fields';

/** What every passage has, whatever its facet. Its key and its metadata come beside these. */
export const PASSAGE_COLUMNS: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['text', 'text'],
  ['score', 'float8'],
  ['cite', 'jsonb'],
  [REDACTED_FIELDS, 'text[]'],
]);

export interface RuntimeColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** `RETRIEVE(facet => …, query => …, top_k => …)`. */
export interface Retrieval {
  readonly kind: 'retrieval';
  readonly source: SourceId;
  readonly facet: FacetStore;
  /** Text. */
  readonly query: Expr;
  /** int4; at least 1 and at most the facet's `maxTopK`, checked again when its value is known. */
  readonly topK: Expr;
  /** Predicates over `source`'s indexed fields; they hold in the store, before the best are taken. */
  readonly filters: readonly Expr[];
  readonly operators: readonly OperatorUse[];
  readonly columns: readonly RuntimeColumn[];
}

/** One operator over the passages; its result is column `column` of the retrieval. */
export interface OperatorUse {
  readonly operator: OperatorName;
  readonly column: string;
  readonly type: TypeName;
  /** By the signature's argument names. Each is a literal, a parameter, or an array of them. */
  readonly arguments: ReadonlyMap<string, Expr>;
}

/**
 * What becomes of the question where a cap holds rows of a step back: its reader is told, or it is refused, because
 * something in it is made of several rows.
 */
export type Clipping = 'told' | 'refused';

/** `TRAVERSE(anchor => …, target => …, keys => …)`. */
export interface Traversal {
  readonly kind: 'traversal';
  readonly source: SourceId;
  readonly anchor: string;
  readonly target: string;
  /** An array of the anchor's keys. */
  readonly keys: Expr;
  readonly hops: readonly Hop[];
  /** A link of an entity with itself is walked again and again, up to `maxHops`. */
  readonly repeats: boolean;
  readonly maxHops: number;
  /** Rows of one hop in all, and of one source in it. */
  readonly perHop: number;
  readonly clipping: Clipping;
  readonly columns: readonly RuntimeColumn[];
}

/**
 * One step of a traversal, as OSL-SQL of our own making: `$1` are the keys to start from, `$2` the rows of one
 * source, `$3` those of all; the answer has `source` and `target`.
 */
export interface Hop {
  readonly edge: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/** The content of entities that are named by key, for the Joint form. */
export interface Hydration {
  readonly kind: 'hydration';
  readonly source: SourceId;
  readonly entity: string;
  /** An array of the entity's keys. */
  readonly keys: Expr;
  /** Those whose passages or derived attributes the statement uses. */
  readonly facets: readonly FacetStore[];
  readonly clipping: Clipping;
  /** `key`, and of `evidence` and the derived attributes what the statement uses. */
  readonly columns: readonly RuntimeColumn[];
}

/** The name under which an entity's content can be selected. */
export const EVIDENCE = 'evidence';
