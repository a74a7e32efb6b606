/**
 * Limits on the cost of compiling one statement. Each bounds one thing that a text can multiply, so that together they
 * bound the time: a statement within them compiles in a few milliseconds, and one beyond them is refused as fast.
 */
export const LIMITS = Object.freeze({
  /** UTF-16 units of a text. */
  text: 1_048_576,
  /** Tokens of a text: words, numbers, strings, operators and brackets. Values of a long IN list are not counted. */
  tokens: 25_000,
  /** Parameters (each use of `$7`) that count, with a comma each, neither as tokens nor as values. */
  parameters: 65_536,
  /** Total number of values in IN lists that are too long to count as tokens. */
  listed: 100_000,
  /** Nesting depth of comments. */
  comments: 64,
  /** Nesting depth of brackets. */
  brackets: 1_000,
  /** Nesting depth of bound queries, joins and values. */
  depth: 200,
  /** Columns of one query, and items of one list of GROUP BY or ORDER BY, as in Postgres. */
  columns: 1_664,
  /** Grouping sets of one GROUP BY, with ROLLUP and CUBE expanded. */
  groupingSets: 1_024,
  /** FROM items of all levels together; those of a NOT MATERIALIZED table count in each place where it is read. */
  fromItems: 250,
  /** RETRIEVEs of one statement: each is a separate search before the statement. */
  retrievals: 8,
  /** Bound values, with `*`, BETWEEN, CASE, metrics and `GROUP BY 1` expanded. */
  nodes: 16_000,
  /** Bound values, with every derived column expanded to its definition, as a planner does. */
  expanded: 100_000,
  /** Labels that enums are ordered by: a comparison lists all labels of its enum twice, a sort key once. */
  labels: 20_000,
  /** UTF-16 units of the emitted SQL, policy included. */
  sql: 4_194_304,
});
