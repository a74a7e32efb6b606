import type { Relation } from '../catalog/catalog.js';
import type { Grain } from '../catalog/grain.js';
import type { FunctionDefinition, OperatorDefinition } from '../functions/define.js';
import type { DeclaredType } from '../types/declared-types.js';
import type { ArrayType, ScalarType, TypeName } from '../types/types.js';

/**
 * The intermediate representation: a closed set of frozen, resolved nodes, without one for SQL text or a catch-all. No
 * identifier and no literal that a caller wrote occurs in it, except output names, which are never emitted.
 */

/** Identifies one FROM item within a plan, for column references. */
export type SourceId = number;

// ---------------------------------------------------------------- values

export interface ColumnRef {
  readonly kind: 'column';
  readonly source: SourceId;
  readonly name: string;
  readonly type: TypeName;
}

/** A column of the upstream table itself; allowed only inside a governed scan and in policy predicates. */
export interface BaseColumn {
  readonly kind: 'base';
  /** The physical name. */
  readonly column: string;
  readonly type: TypeName;
  /** The column's type in the database, if its value is read as text. */
  readonly stored?: string;
  /** Maximum number of characters of a `varchar(n)`; absent if the database sets no limit. */
  readonly characters?: number;
}

/** A value that is sent separately from the SQL, never as part of it. */
export interface Parameter {
  readonly kind: 'parameter';
  readonly slot: number;
  readonly type: TypeName;
}

/** Policy only: a constant in a predicate. `govern` turns it into a parameter. */
export interface Literal {
  readonly kind: 'literal';
  readonly value: LiteralValue;
  readonly type: TypeName;
}

interface NullValue {
  readonly kind: 'null';
  readonly type: TypeName;
}

interface BooleanValue {
  readonly kind: 'boolean';
  readonly value: boolean;
  readonly type: 'bool';
}

/** A literal that is part of the SQL text, not a parameter; it comes from a closed set or from a mask. */
interface StructuralText {
  readonly kind: 'structural';
  readonly text: string;
  readonly type: 'text';
}

export interface FunctionCall {
  readonly kind: 'call';
  readonly definition: FunctionDefinition;
  readonly args: readonly Expr[];
  readonly type: TypeName;
}

export interface Operation {
  readonly kind: 'operation';
  readonly definition: OperatorDefinition;
  /** The left operand; null for a prefix operator. */
  readonly left: Expr | null;
  readonly right: Expr;
  readonly type: TypeName;
}

/** The modifiers of a cast without length or precision. */
export const NO_MODIFIERS: readonly number[] = Object.freeze([]);

export interface Cast {
  readonly kind: 'cast';
  readonly arg: Expr;
  readonly type: TypeName;
  /** Length, or precision and scale, as in `numeric(12,2)`; empty if not written. */
  readonly modifiers: readonly number[];
}

/** `arg::bit(length)::type`: converts a string of bits or hexadecimal digits, such as `x1F`, to a number. */
export interface BitNumber {
  readonly kind: 'bit_number';
  readonly arg: Expr;
  readonly length: number;
  readonly type: 'int4' | 'int8';
}

/** `arg COLLATE collation`, one of `COLLATIONS`. */
export interface Collate {
  readonly kind: 'collate';
  readonly arg: Expr;
  readonly collation: string;
  readonly type: TypeName;
}

export interface Logic {
  readonly kind: 'and' | 'or';
  readonly args: readonly Expr[];
  readonly type: 'bool';
}

interface Not {
  readonly kind: 'not';
  readonly arg: Expr;
  readonly type: 'bool';
}

interface NullTest {
  readonly kind: 'null_test';
  readonly arg: Expr;
  readonly negated: boolean;
  readonly type: 'bool';
}

/** `arg IS [NOT] TRUE | FALSE | UNKNOWN`. */
interface TruthTest {
  readonly kind: 'truth_test';
  readonly arg: Expr;
  readonly test: 'true' | 'false' | 'unknown';
  readonly negated: boolean;
  readonly type: 'bool';
}

/** `left IS [NOT] DISTINCT FROM right`. */
export interface DistinctTest {
  readonly kind: 'distinct_test';
  readonly left: Expr;
  readonly right: Expr;
  readonly negated: boolean;
  readonly type: 'bool';
}

/**
 * `(left, …) < (right, …)`, decided by the first pair whose sides differ. `=`, `<>` and IS DISTINCT FROM of rows
 * become comparisons of pairs.
 */
export interface RowComparison {
  readonly kind: 'row_comparison';
  readonly operator: '<' | '<=' | '>' | '>=';
  /** At least two pairs. */
  readonly pairs: readonly RowPair[];
  readonly type: 'bool';
}

interface RowPair {
  readonly definition: OperatorDefinition;
  readonly left: Expr;
  readonly right: Expr;
}

/** `arg op ANY | ALL (array)`; IN lists become one array parameter. */
interface QuantifiedComparison {
  readonly kind: 'quantified';
  readonly definition: OperatorDefinition;
  readonly quantifier: 'any' | 'all';
  readonly arg: Expr;
  readonly array: Expr;
  readonly type: 'bool';
}

/** `arg IN (a, b, …)` with an element that is neither a literal nor a parameter. */
interface Membership {
  readonly kind: 'membership';
  readonly arg: Expr;
  readonly items: readonly Expr[];
  readonly negated: boolean;
  readonly type: 'bool';
}

interface Case {
  readonly kind: 'case';
  readonly arms: readonly { readonly when: Expr; readonly result: Expr }[];
  readonly otherwise: Expr;
  readonly type: TypeName;
}

/** `coalesce`, `greatest`, `least`, `nullif`, which are syntax in Postgres, not functions. */
interface Conditional {
  readonly kind: 'conditional';
  readonly form: 'coalesce' | 'greatest' | 'least' | 'nullif';
  readonly args: readonly Expr[];
  readonly type: TypeName;
}

interface ArrayValue {
  readonly kind: 'array';
  readonly items: readonly Expr[];
  readonly type: ArrayType;
}

/** The text that Postgres writes for `ROW(items)`: `(1,Ada,)`. */
interface RowText {
  readonly kind: 'row_text';
  readonly items: readonly Expr[];
  readonly type: 'text';
}

/** `arg[i]`, or `arg[i][j]` of an array of arrays. */
interface Subscript {
  readonly kind: 'subscript';
  readonly arg: Expr;
  readonly indices: readonly Expr[];
  readonly type: ScalarType;
}

/** `arg[lower:upper]`; a bound is null if it is left out. */
export interface Slice {
  readonly kind: 'slice';
  readonly arg: Expr;
  readonly lower: Expr | null;
  readonly upper: Expr | null;
  readonly type: ArrayType;
}

export interface Aggregate {
  readonly kind: 'aggregate';
  readonly definition: FunctionDefinition;
  /** The arguments: none for `count(*)`, several only for `count(distinct (a, b))`. */
  readonly args: readonly Expr[];
  readonly distinct: boolean;
  readonly filter: Expr | null;
  /** ORDER BY inside the call, or WITHIN GROUP for an ordered-set aggregate. */
  readonly orderBy: readonly SortKey[];
  /** The metric that the call comes from; null if the caller wrote it. */
  readonly metric: string | null;
  readonly type: TypeName;
}

/** `grouping(…)` of keys of GROUP BY: one bit for each argument, set if the row's grouping set leaves the key out. */
export interface GroupingCall {
  readonly kind: 'grouping';
  readonly args: readonly Expr[];
  readonly type: 'int4';
}

export interface WindowCall {
  readonly kind: 'window';
  readonly definition: FunctionDefinition;
  readonly args: readonly Expr[];
  readonly filter: Expr | null;
  readonly partitionBy: readonly Expr[];
  readonly orderBy: readonly SortKey[];
  readonly frame: WindowFrame | null;
  readonly type: TypeName;
}

export interface WindowFrame {
  readonly mode: 'rows' | 'range' | 'groups';
  readonly start: FrameBound;
  readonly end: FrameBound;
  readonly exclude: 'current row' | 'group' | 'ties' | null;
}

export type FrameBound =
  | { readonly kind: 'unbounded preceding' | 'current row' | 'unbounded following' }
  | { readonly kind: 'preceding' | 'following'; readonly offset: Expr };

/** The distance between a stored vector and a given one; allowed only inside a scan of a facet's store. */
export interface Distance {
  readonly kind: 'distance';
  /** `<#>` is the negative inner product, `<=>` the cosine distance, `<~>` the Hamming distance of the signs. */
  readonly operator: '<#>' | '<=>' | '<~>';
  /** The type of `to`; `bit` stands for the signs of a `vector`. */
  readonly vector: 'sparsevec' | 'vector' | 'bit';
  readonly column: string;
  /** The vector in pgvector's text format. */
  readonly to: Expr;
  readonly type: 'float8';
}

/** A stored vector, as numbers or in pgvector's text format; allowed only inside a scan of a facet's store. */
interface StoredVector {
  readonly kind: 'stored_vector';
  readonly column: string;
  readonly type: 'float4[]' | 'text';
}

/** A subquery that yields one value. */
interface ScalarQuery {
  readonly kind: 'scalar_query';
  readonly query: Query;
  readonly type: TypeName;
}

/** EXISTS over a query. The join rule requires a correlation by sealed keys (columns that joins may compare). */
interface Exists {
  readonly kind: 'exists';
  readonly query: Query;
  readonly type: 'bool';
}

/** `arg [NOT] IN (query)`. The join rule requires both sides to be sealed keys. */
export interface InQuery {
  readonly kind: 'in_query';
  readonly arg: Expr;
  readonly query: Query;
  readonly negated: boolean;
  readonly type: 'bool';
}

/** Policy only: `arg` equals one of the values of a subject's attribute. */
export interface AttributeMatch {
  readonly kind: 'attribute_match';
  readonly arg: Expr;
  readonly equality: OperatorDefinition;
  readonly attribute: string;
  /** The subject; null until the predicate is tied to a delegation chain. */
  readonly subject: ChainSubject | null;
  readonly type: 'bool';
}

/** A subject of the delegation chain, reduced to the properties of one attribute that affect the plan. */
export interface ChainSubject {
  /** Its index in the chain, root first. */
  readonly index: number;
  /** `one` if the attribute has a single value, `many` if it has several. */
  readonly values: 'one' | 'many';
}

export type Expr =
  | ColumnRef
  | BaseColumn
  | Parameter
  | Literal
  | NullValue
  | BooleanValue
  | StructuralText
  | FunctionCall
  | Operation
  | Cast
  | BitNumber
  | Collate
  | Logic
  | Not
  | NullTest
  | TruthTest
  | DistinctTest
  | RowComparison
  | QuantifiedComparison
  | Membership
  | Case
  | Conditional
  | ArrayValue
  | RowText
  | Subscript
  | Slice
  | Aggregate
  | GroupingCall
  | WindowCall
  | Distance
  | StoredVector
  | ScalarQuery
  | Exists
  | InQuery
  | AttributeMatch;

// ---------------------------------------------------------------- relations

export interface SortKey {
  /** The 1-based position of an output, or an expression. */
  readonly by: Expr | number;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

/** A relation before policy is applied. `govern` replaces all of these scans; none may be emitted. */
export interface EntityScan {
  readonly kind: 'entity';
  readonly id: SourceId;
  readonly relation: Relation;
  /** Names of the columns that the query uses. */
  readonly columns: readonly string[];
  readonly sample?: TableSample;
}

/** `TABLESAMPLE method (percent) [REPEATABLE (seed)]`: some of a table's rows, sampled before any filtering. */
export interface TableSample {
  readonly method: 'bernoulli' | 'system';
  readonly percent: Parameter;
  readonly seed: Parameter | null;
}

/** A relation as this caller may see it: row filter, then masked projection, before anything else. */
export interface GovernedScan {
  readonly kind: 'governed';
  readonly id: SourceId;
  readonly relation: Relation;
  readonly columns: readonly GovernedColumn[];
  /** The row filter over base columns; null if every row is visible. */
  readonly filter: Expr | null;
  /** Predicates over base columns that cannot fail (see `isHarmless`), evaluated together with the filter. */
  readonly pushed: readonly Expr[];
  /** True if the planner must not move predicates of the query below the filter. */
  readonly fenced: boolean;
  /** Set if some rows of the scan may only be aggregated; the scan then has a `GROUP_KEY` column. */
  readonly minimum: GroupMinimum | null;
  /** TABLESAMPLE, allowed only if every row and column is shown unmasked. */
  readonly sample?: TableSample;
}

/** The minimum size of groups in which rows that may only be aggregated are counted. */
export interface GroupMinimum {
  /** The grants that apply to the scan; the verifier checks that the caller has each of them. */
  readonly grants: readonly CountedGrant[];
  readonly size: number;
  /** The minimum number of distinct values for each of the columns `groupValue(i)`. */
  readonly distinct: readonly number[];
  /** The maximum percentage of an aggregated value that one row may contribute; null: no maximum. */
  readonly dominance: number | null;
  /** True if the minimum applies to every row: no other grants show all columns that the query uses. */
  readonly everyRow: boolean;
}

/** A grant that applies to a scan, with the columns that it shows there, including those that its metrics read. */
export interface CountedGrant {
  readonly id: string;
  readonly filter: Expr | null;
  readonly columns: ReadonlySet<string>;
}

/** The scan column with the key of a row that may only be aggregated, NULL for other rows. */
export const GROUP_KEY = '#group';

/** The scan column for the i-th value in `GroupMinimum.distinct`; NULL for rows that other grants show. */
export function groupValue(i: number): string {
  return `${GROUP_KEY} ${i}`;
}

/** True for columns that count the members of groups; no query can name them. */
export function isGroupColumn(name: string): boolean {
  return name.startsWith(GROUP_KEY);
}

/** The scan column that is true if the row filter accepts the row; never NULL. */
export const SHOWN = '#shown';

export interface GovernedColumn {
  readonly name: string;
  readonly type: TypeName;
  /** The expression, over base columns. */
  readonly expr: Expr;
  /** `none`: shows the value itself; `some`: masked in some rows; `all`: masked in every row. */
  readonly masked: 'none' | 'some' | 'all';
}

export interface DerivedTable {
  readonly kind: 'derived';
  readonly id: SourceId;
  readonly query: Query;
  /** True if its query uses columns of FROM items to its left. */
  readonly lateral?: true;
}

export interface CommonTableRef {
  readonly kind: 'cte';
  readonly id: SourceId;
  readonly table: number;
  /** Set for a recursive table: its number of columns. Reading over a million rows fails with SQLSTATE 54000. */
  readonly recursive?: number;
}

/** In the second operand of recursive table `table`: the rows returned by the previous step. */
export interface RecursionRef {
  readonly kind: 'recursion';
  readonly id: SourceId;
  readonly table: number;
  readonly columns: readonly TypeName[];
}

/** Rows that are computed before the statement runs; see `runtime.ts`. */
export interface RuntimeScan {
  readonly kind: 'runtime';
  readonly id: SourceId;
  /** The slot with the rows, a jsonb array of objects. */
  readonly slot: number;
  readonly columns: readonly { readonly name: string; readonly type: TypeName }[];
  /** The names of the columns that are sealed keys. */
  readonly sealed: readonly string[];
  /** Set for the query's own rows, with results of operators such as CLASSIFY added; unset e.g. for retrievals. */
  readonly own?: true;
}

export interface Join {
  readonly kind: 'join';
  /** True if `on` equates sealed keys, one from each side; false in raw SQL, which has no sealed keys. */
  readonly sealed: boolean;
  /** Set if the compiler creates the join, along links in the manifest; callers cannot write one. */
  readonly made?: true;
  /** Set if the join must use sealed keys, whatever join rule the manifest sets. */
  readonly strict?: true;
  readonly type: 'inner' | 'left' | 'full';
  readonly left: FromItem;
  readonly right: FromItem;
  /** Conjuncts over data that the caller is shown; empty for a cross join. */
  readonly on: readonly Expr[];
}

/**
 * The start of every period of `grain` from the first to the last, as timestamp `c1`. Only metrics use it; queries
 * cannot name it. More than 100,000 periods fail with SQLSTATE 22008.
 */
export interface Spine {
  readonly kind: 'spine';
  readonly id: SourceId;
  /** One row of two timestamps, the starts of the first and last periods; NULL if there are none. */
  readonly bounds: Query;
  readonly grain: Grain;
}

/**
 * The rows that a function generates from its arguments, which may reference columns of earlier FROM items and of outer
 * queries: `generate_series`, `unnest`, `jsonb_each`. Its columns are `c1`, …, in the function's order.
 */
export interface RowSource {
  readonly kind: 'rows';
  readonly id: SourceId;
  readonly definition: FunctionDefinition;
  readonly args: readonly Expr[];
  readonly columns: readonly TypeName[];
  /** Keys to read from each row (a JSON object), one per column. Null if the row itself is the value. */
  readonly fields: readonly Expr[] | null;
  /** True if there is an additional `int8` column with the row number, from 1. */
  readonly numbered: boolean;
}

export type FromItem =
  | EntityScan
  | GovernedScan
  | DerivedTable
  | CommonTableRef
  | RecursionRef
  | RuntimeScan
  | RowSource
  | Spine
  | Join;

export type FromLeaf = Exclude<FromItem, { readonly kind: 'join' }>;

export interface CommonTable {
  readonly id: number;
  readonly query: Query;
  readonly materialized: boolean | null;
  /**
   * True if `query` is a UNION whose right operand reads the rows of the previous step, by one `RecursionRef` in its
   * FROM, until a step finds none.
   */
  readonly recursive?: boolean;
}

/** One column of a query's result. Its position determines the emitted name `c<position>`. */
export interface PlanOutput {
  readonly name: string;
  readonly expr: Expr;
}

export interface Select {
  readonly kind: 'select';
  readonly with: readonly CommonTable[];
  /** The FROM clause; null for a SELECT without one. */
  readonly from: FromItem | null;
  /** The conjuncts of WHERE. */
  readonly where: readonly Expr[];
  readonly grouped: boolean;
  readonly groupBy: readonly Expr[];
  /** Grouping sets as lists of indices into `groupBy`; null if all keys form a single set. */
  readonly groupingSets: readonly (readonly number[])[] | null;
  /** The conjuncts of HAVING. */
  readonly having: readonly Expr[];
  readonly outputs: readonly PlanOutput[];
  /** `distinct` drops equal rows; `distinctOn` keeps the first row of each key. */
  readonly distinct: boolean;
  readonly distinctOn: readonly Expr[];
  readonly orderBy: readonly SortKey[];
  readonly limit: Expr | null;
  readonly offset: Expr | null;
  /** True for FETCH … WITH TIES: rows that sort equal to the last one are included. */
  readonly withTies: boolean;
}

export interface SetOperation {
  readonly kind: 'set_operation';
  readonly with: readonly CommonTable[];
  readonly operator: 'union' | 'intersect' | 'except';
  readonly all: boolean;
  readonly left: Query;
  readonly right: Query;
  readonly columns: readonly { readonly name: string; readonly type: TypeName }[];
  readonly orderBy: readonly SortKey[];
  readonly limit: Expr | null;
  readonly offset: Expr | null;
  readonly withTies: boolean;
}

export interface ValuesList {
  readonly kind: 'values';
  readonly rows: readonly (readonly Expr[])[];
  readonly columns: readonly { readonly name: string; readonly type: TypeName }[];
}

export type Query = Select | SetOperation | ValuesList;

// ---------------------------------------------------------------- slots and forms

/** Source of a parameter's value at execution. */
export type Slot =
  /** `written`: true if the caller's text contains the literal, false if policy, a metric or the compiler added it. */
  | {
      readonly kind: 'literal';
      readonly type: TypeName;
      readonly value: LiteralValue;
      readonly written: boolean;
    }
  /** The client's `$n`, counted from 0. `declared`: the type its value is sent in; null if that is `type`. */
  | {
      readonly kind: 'client';
      readonly type: TypeName;
      readonly index: number;
      readonly declared: Exclude<DeclaredType, { readonly kind: 'model' }> | null;
    }
  /** An attribute of a subject in the delegation chain: its single value, or an array of all values. */
  | { readonly kind: 'attribute'; readonly type: TypeName; readonly subject: number; readonly name: string }
  /** The rows of runtime relation `index`. */
  | { readonly kind: 'runtime'; readonly type: 'jsonb'; readonly index: number }
  /** The values of one column of the rows of runtime relation `index`, as an array. */
  | { readonly kind: 'keys'; readonly type: ArrayType; readonly index: number; readonly column: string }
  /** A value that a step of a runtime relation receives from the previous step. */
  | { readonly kind: 'given'; readonly type: TypeName; readonly name: string }
  /** The inner or outer HMAC pad of one key domain, derived from the tenant's mask key; 64 bytes. */
  | {
      readonly kind: 'pad';
      readonly type: 'bytea';
      readonly pad: 'inner' | 'outer';
      readonly domain: string;
    };

/** A literal in Postgres' text format; an array for an IN list. */
export type LiteralValue = string | readonly (string | null)[];

/** The five forms of OSL-SQL, and those of raw SQL and metrics requests. */
export type Form = 'structured' | 'retrieve' | 'traverse' | 'joint' | 'cross_modal' | 'sql' | 'metrics';
