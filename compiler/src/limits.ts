/**
 * Limits on the cost of compiling one statement. Each bounds one quantity that a text can multiply; together they bound
 * the compile time. A statement within the limits compiles in a few milliseconds, and a larger one is rejected just as
 * fast.
 */
export const LIMITS = Object.freeze({
  /** Length of the text in UTF-16 code units. */
  text: 1_048_576,
  /** Tokens in the text: words, numbers, strings, operators and brackets. Values in a long IN list are not counted. */
  tokens: 25_000,
  /** Uses of parameters such as `$7`. A parameter and one comma next to it do not count as tokens or listed values. */
  parameters: 65_536,
  /** Total number of values in long IN lists, which are not counted as tokens. */
  listed: 100_000,
  /** Nesting depth of comments. */
  comments: 64,
  /** Nesting depth of brackets. */
  brackets: 1_000,
  /** Nesting depth of bound queries, joins and values. */
  depth: 200,
  /** Columns of one query, and items in one GROUP BY or ORDER BY list; the same limit as in Postgres. */
  columns: 1_664,
  /** Grouping sets of one GROUP BY, after expanding ROLLUP and CUBE. */
  groupingSets: 1_024,
  /** FROM items and common tables of a statement; the FROM items of a NOT MATERIALIZED table count at each use. */
  fromItems: 250,
  /** RETRIEVEs in one statement: each is a separate search that runs before the statement. */
  retrievals: 8,
  /** Bound expressions, after expanding `*`, BETWEEN, CASE, metrics and `GROUP BY 1`. */
  nodes: 16_000,
  /** Bound expressions, after replacing every derived column by its definition, as a planner does. */
  expanded: 100_000,
  /** Enum labels used for ordering: a comparison lists all labels of its enum twice, a sort key once. */
  labels: 20_000,
  /** Length of the emitted SQL in UTF-16 code units, including what policy adds. */
  sql: 4_194_304,
});
