import type { FacetReranker, FacetStore } from '../catalog/catalog.js';
import type { OperatorName } from '../catalog/operators.js';
import type { TypeName } from '../types/types.js';
import type { Expr, InQuery, Query, Select, SourceId } from './plan.js';
import { allQueries } from './walk.js';

/**
 * A FROM item whose rows are worked out before the statement runs, and given to it as one jsonb parameter. What is
 * above it in the statement is ordinary governed SQL.
 */
export type RuntimeRelation = Retrieval | Traversal | Hydration | OperatedRows;

/** Column with the rank of a passage in the answer, best first, from 1. No query can name it. */
export const ORDINAL = '#ordinal';

/** The column of a passage that names its redacted fields. */
export const REDACTED_FIELDS = 'redacted_fields';

/** Columns of every passage, whatever its facet. Key and metadata come besides. */
export const PASSAGE_COLUMNS: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['text', 'text'],
  ['score', 'float8'],
  ['cite', 'jsonb'],
  [REDACTED_FIELDS, 'text[]'],
]);

/** Columns of a passage that RETRIEVE adds on request, each by its own argument. Type: jsonb. */
export const ASKED_COLUMNS = Object.freeze({
  highlight: 'highlights',
  explain_score: 'score_parts',
} as const);

export type AskedColumn = (typeof ASKED_COLUMNS)[keyof typeof ASKED_COLUMNS];

/** True if the search itself provides column `name`, so that it is no metadata of the facet. */
export function isOfPassage(name: string, asked: readonly string[]): boolean {
  return PASSAGE_COLUMNS.has(name) || asked.includes(name);
}

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
  readonly page: PassagePage;
  readonly legs: Legs;
  readonly asked: readonly AskedColumn[];
  /** Reranker of the best passages; null to keep the order of the search. */
  readonly rerank: FacetReranker | null;
  /** Predicates over `source`'s indexed fields; they hold in the store, before the best are taken. */
  readonly filters: readonly Expr[];
  /** Semi-joins on an indexed field, which the statement has too; the store holds them before the best are taken. */
  readonly keyFilters: readonly InQuery[];
  /** The name of the FROM item, where conditions on other rows hold only after the best are taken; else null. */
  readonly filteredAfter: string | null;
  readonly operators: readonly OperatorUse[];
  readonly columns: readonly RuntimeColumn[];
}

/** The permitted passages, best first, that are the answer: at most `topK` after the first `skip`. */
export interface PassagePage {
  /** `document` if each document counts with its best passage only. */
  readonly per: 'passage' | 'document';
  /** int4; 0 to `MAX_SKIP`, checked again when its value is known. Null for 0. */
  readonly skip: Expr | null;
  /** float8; a passage whose score is below it does not count. Null where none is. */
  readonly minScore: Expr | null;
  /** float8 from 0 to 1: how much a passage counts less for being like one before it. Null for not at all. */
  readonly diversity: Expr | null;
}

/** By which leg of its facet a search goes, or how what both find becomes one order. */
export type Legs =
  | { readonly mode: 'lexical' | 'dense' }
  | {
      readonly mode: 'hybrid';
      /** By the ranks that a passage has in the legs, or by its scores, each leg's from 0 to 1. */
      readonly fuse: 'rank' | 'score';
      /** float8[]: how much the lexical and the dense leg count. Null where both count alike. */
      readonly weights: Expr | null;
    };

/** Passages that the pages before may hold: a store finds and drops them for each page. */
export const MAX_SKIP = 10_000;

/** One operator over the passages; its result is column `column` of the retrieval. */
export interface OperatorUse {
  readonly operator: OperatorName;
  readonly column: string;
  readonly type: TypeName;
  /** By the signature's argument names. Each is a literal, a parameter, or an array of them. */
  readonly arguments: ReadonlyMap<string, Expr>;
}

/**
 * Rows of a query, with operators over texts of theirs: `SELECT classify(body, …) FROM osl.entities.ticket`. The query is
 * run first; what its level computes of the operators' values stands above.
 *
 * Its columns are `c1`, …: first the results of the operators, then the outputs of `rows`.
 */
export interface OperatedRows {
  readonly kind: 'operated';
  readonly source: SourceId;
  /** In a total order, and no more than one row beyond `most`. */
  readonly rows: Query;
  readonly operators: readonly RowOperator[];
  /** Maximum number of rows that operators may work on. */
  readonly most: number;
  /** The column that tells a reader the first row of a group of DEDUP; null where rows have no such key. */
  readonly key: string | null;
  readonly columns: readonly RuntimeColumn[];
}

/** One operator over the texts of one column. */
export interface RowOperator extends OperatorUse {
  /** The column of the rows that holds the texts. */
  readonly of: string;
}

/**
 * Handling of a question whose step leaves out rows because of a cap: its reader is told, or it is refused because
 * something in it is computed from several rows.
 */
export type CapHandling = 'told' | 'refused';

/** `TRAVERSE(anchor => …, target => …, keys => …)`. */
export interface Traversal {
  readonly kind: 'traversal';
  readonly source: SourceId;
  readonly anchor: string;
  readonly target: string;
  /** The anchor's keys: an array for each column of its primary key, all of one length. */
  readonly keys: readonly Expr[];
  /** The query whose rows are these keys; null where `keys` are. */
  readonly start: Query | null;
  readonly hops: readonly Hop[];
  /** `hops` lead from an entity to itself, and are walked again and again, up to `maxHops`. */
  readonly repeats: boolean;
  readonly maxHops: number;
  /** Distinct keys that one hop may reach. */
  readonly perHop: number;
  readonly clipping: CapHandling;
  readonly columns: readonly RuntimeColumn[];
}

/** The column of a walk's rows that says how each was reached, from its anchor on. */
export const PATH = 'path';

/** The column of a walk's rows that holds column `index` of a key of `width` columns. No query can name it. */
export function walkedKey(index: number, width: number): string {
  return width === 1 ? 'key' : `${PART_OF_KEY}${index + 1}`;
}

const PART_OF_KEY = '#key';

/** True if a column holds one of several columns of a key, which identify nothing by themselves. */
export function isPartOfKey(column: string): boolean {
  return column.startsWith(PART_OF_KEY);
}

/**
 * One step of a traversal, as OSL-SQL of our own making: `$1`, … are the keys to start from, an array for each column
 * of the key; then comes how many targets it gives at most. The answer has each target once, with the first source by
 * key that leads to it: the columns of the source's key, and behind them those of the target's, in this order.
 */
export interface Hop {
  readonly edge: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  /** Number of columns in the keys of either end. */
  readonly sourceWidth: number;
  readonly targetWidth: number;
}

/** The content of entities that are named by key, for the Joint form. */
export interface Hydration {
  readonly kind: 'hydration';
  readonly source: SourceId;
  readonly entity: string;
  /** An array of the entity's keys. */
  readonly keys: Expr;
  /** The facets whose passages or derived attributes the statement uses. */
  readonly facets: readonly FacetStore[];
  readonly clipping: CapHandling;
  /** `key`, and of `evidence` and the derived attributes what the statement uses. */
  readonly columns: readonly RuntimeColumn[];
}

/** The name under which an entity's content can be selected. */
export const EVIDENCE = 'evidence';

/** LIMIT and OFFSET of a statement that takes the rows of a step as they come. */
export interface WantedRows {
  readonly limit: Expr;
  readonly offset: Expr | null;
}

/**
 * Bounds on the rows of retrieval `source` that can be in the answer: LIMIT and OFFSET, if the SELECT that reads it
 * takes them best first and keeps each of them. Null if any row may be needed.
 */
export function wantedRows(query: Query, source: SourceId): WantedRows | null {
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
