import type { FacetReranker, FacetStore } from '../catalog/catalog.js';
import type { OperatorName } from '../catalog/operators.js';
import type { TypeName } from '../types/types.js';
import type { Expr, InQuery, Query, Select, SourceId } from './plan.js';
import { allQueries } from './walk.js';

/**
 * A FROM item whose rows are computed before the statement runs, and passed to it as one jsonb parameter. Everything
 * above it in the statement is ordinary governed SQL.
 */
export type RuntimeRelation = Retrieval | Traversal | Hydration | OperatedRows;

/** Column with the rank of a passage in the result, from 1 for the best. No query can name it. */
export const ORDINAL = '#ordinal';

/** The column of a passage that lists its redacted fields. */
export const REDACTED_FIELDS = 'redacted_fields';

/** Columns of every passage, in addition to the key and metadata of its facet. */
export const PASSAGE_COLUMNS: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['text', 'text'],
  ['score', 'float8'],
  ['cite', 'jsonb'],
  [REDACTED_FIELDS, 'text[]'],
]);

/** Passage columns of type jsonb that RETRIEVE adds on request, by the argument that requests them. */
export const OPTIONAL_COLUMNS = Object.freeze({
  highlight: 'highlights',
  explain_score: 'score_parts',
} as const);

export type OptionalColumn = (typeof OPTIONAL_COLUMNS)[keyof typeof OPTIONAL_COLUMNS];

/** True if the search itself provides column `name`, so that it is not facet metadata. */
export function isOfPassage(name: string, asked: readonly string[]): boolean {
  return PASSAGE_COLUMNS.has(name) || asked.includes(name);
}

export interface RuntimeColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** A call of RETRIEVE, the passage search: `RETRIEVE(facet => …, query => …, top_k => …)`. */
export interface Retrieval {
  readonly kind: 'retrieval';
  readonly source: SourceId;
  readonly facet: FacetStore;
  /** An expression of type text. */
  readonly query: Expr;
  /** int4, from 1 to the facet's `maxTopK`, checked again when its value is known. */
  readonly topK: Expr;
  readonly page: PassagePage;
  readonly legs: Legs;
  readonly asked: readonly OptionalColumn[];
  /** Reranker of the best passages; null keeps the order of the search. */
  readonly rerank: FacetReranker | null;
  /** Predicates over indexed fields of `source`; the store applies them before it takes the best passages. */
  readonly filters: readonly Expr[];
  /** Semi-joins on an indexed field, repeated in the statement; the store applies them to choose passages. */
  readonly keyFilters: readonly InQuery[];
  /** Alias of the RETRIEVE if a condition on other FROM items filters only its best passages; otherwise null. */
  readonly filteredAfter: string | null;
  readonly operators: readonly OperatorUse[];
  readonly columns: readonly RuntimeColumn[];
}

/** The permitted passages that form the result, best first: at most `topK` after the first `skip`. */
export interface PassagePage {
  /** `document` keeps only the best passage of each document. */
  readonly per: 'passage' | 'document';
  /** int4, 0 to `MAX_SKIP`, checked again when its value is known. Null for 0. */
  readonly skip: Expr | null;
  /** float8; passages with a lower score are dropped. Null: no minimum. */
  readonly minScore: Expr | null;
  /** float8 from 0 to 1: penalty for similarity to an earlier passage. Null: no penalty. */
  readonly diversity: Expr | null;
}

/** Search by one index of the facet (a leg), full-text or vector, or by both with merged results. */
export type Legs =
  | { readonly mode: 'lexical' | 'dense' }
  | {
      readonly mode: 'hybrid';
      /** Merges results by a passage's rank in each leg, or by its score in each leg, scaled to the range 0 to 1. */
      readonly fuse: 'rank' | 'score';
      /** float8[]: weights of the lexical and the dense leg. Null for equal weights. */
      readonly weights: Expr | null;
    };

/** Maximum number of skipped passages: a store has to find and drop them again for each page. */
export const MAX_SKIP = 10_000;

/** An operator applied to the passages; its result is column `column` of the retrieval. */
export interface OperatorUse {
  readonly operator: OperatorName;
  readonly column: string;
  readonly type: TypeName;
  /** Arguments by name in the operator's signature: each a literal, a parameter, or an array of them. */
  readonly arguments: ReadonlyMap<string, Expr>;
}

/**
 * Rows of a query, with operators over their texts: `SELECT classify(body, …) FROM osl.entities.ticket`. The query
 * runs first; expressions over the operators' results are evaluated by the statement above it.
 *
 * Its columns are `c1`, …: first the results of the operators, then the outputs of `rows`.
 */
export interface OperatedRows {
  readonly kind: 'operated';
  readonly source: SourceId;
  /** A query with a total order that returns at most `most` + 1 rows. */
  readonly rows: Query;
  readonly operators: readonly RowOperator[];
  /** Maximum number of rows that operators may process. */
  readonly most: number;
  /** Column with the primary key, by which DEDUP names the first row of a group; null without DEDUP or a usable key. */
  readonly key: string | null;
  readonly columns: readonly RuntimeColumn[];
}

/** An operator applied to the texts of one column. */
export interface RowOperator extends OperatorUse {
  /** The column of the rows that contains the texts. */
  readonly of: string;
}

/**
 * Handling of rows that a step drops because of a cap. `told`: the reader is notified. `refused`: the query is refused,
 * because it computes something from several rows.
 */
export type CapHandling = 'told' | 'refused';

/** A call of TRAVERSE, which follows relationships: `TRAVERSE(anchor => …, target => …, keys => …)`. */
export interface Traversal {
  readonly kind: 'traversal';
  readonly source: SourceId;
  readonly anchor: string;
  readonly target: string;
  /** The anchor's keys: one array for each column of its primary key, all of the same length. */
  readonly keys: readonly Expr[];
  /** The query that yields the anchor's keys; null if `keys` contains them. */
  readonly start: Query | null;
  readonly hops: readonly Hop[];
  /** True if `hops` lead from an entity back to itself and are repeated, up to `maxHops`. */
  readonly repeats: boolean;
  readonly maxHops: number;
  /** Maximum number of distinct keys that one hop may reach. */
  readonly perHop: number;
  readonly clipping: CapHandling;
  readonly columns: readonly RuntimeColumn[];
}

/** The column of a traversal that contains the path from the anchor to the row. */
export const PATH = 'path';

/** Name of the internal traversal column for part `index` of a key of `width` columns; queries cannot use it. */
export function walkedKey(index: number, width: number): string {
  return width === 1 ? 'key' : `${PART_OF_KEY}${index + 1}`;
}

const PART_OF_KEY = '#key';

/** True if a column contains one part of a multi-column key, which does not identify a row by itself. */
export function isPartOfKey(column: string): boolean {
  return column.startsWith(PART_OF_KEY);
}

/**
 * One step of a traversal, as OSL-SQL that the compiler generates: `$1`, … are the keys to start from, one array for
 * each key column; the last parameter is the maximum number of targets. The result has each target once, with the first
 * source, in key order, that leads to it: the key columns of the source, then those of the target.
 */
export interface Hop {
  readonly edge: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  /** Number of key columns of the source; `targetWidth` is that of the target. */
  readonly sourceWidth: number;
  readonly targetWidth: number;
}

/** Content of entities picked by key, for queries of `evidence` or derived attributes (the Joint form). */
export interface Hydration {
  readonly kind: 'hydration';
  readonly source: SourceId;
  readonly entity: string;
  /** An array with the keys of the entities whose content is read. */
  readonly keys: Expr;
  /** The facets whose passages or derived attributes the statement uses. */
  readonly facets: readonly FacetStore[];
  readonly clipping: CapHandling;
  /** `key`, plus `evidence` and the derived attributes that the statement uses. */
  readonly columns: readonly RuntimeColumn[];
}

/** Name of the column by which queries select an entity's content. */
export const EVIDENCE = 'evidence';

/** LIMIT and OFFSET of a statement that reads the rows of a runtime relation in their order. */
export interface RowBounds {
  readonly limit: Expr;
  readonly offset: Expr | null;
}

/**
 * Returns LIMIT and OFFSET of the SELECT that reads retrieval `source`, if it keeps the order and every row: only rows
 * within these bounds can be in the result. Null if any row may be needed.
 */
export function rowBounds(query: Query, source: SourceId): RowBounds | null {
  const reads = (q: Query): q is Select =>
    q.kind === 'select' && q.from?.kind === 'runtime' && q.from.id === source;
  const select = allQueries(query).find(reads);
  if (select === undefined || select.limit === null || !keepsEach(select, source)) return null;
  return { limit: select.limit, offset: select.offset };
}

function keepsEach(select: Select, source: SourceId): boolean {
  const { where, grouped, distinct, distinctOn, withTies, orderBy } = select;
  const [first] = orderBy;
  if (first === undefined || typeof first.by === 'number' || first.by.kind !== 'column') return false;
  const inOrder = first.by.source === source && first.by.name === ORDINAL && !first.descending;
  return inOrder && where.length === 0 && !grouped && !distinct && distinctOn.length === 0 && !withTies;
}
