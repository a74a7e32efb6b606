/**
 * Limits on what one statement may cost to compile. Each bounds one thing that a text can multiply, so that together
 * they bound the time: a statement within them compiles in a few milliseconds, and one beyond them is refused as fast.
 */
export const LIMITS = Object.freeze({
  /** UTF-16 units of a text. */
  text: 1_048_576,
  /** Tokens of a text: words, numbers, strings, operators and brackets. Values of a long IN list are not counted. */
  tokens: 25_000,
  /** Parameters (`$7`, each time that it is written) that count neither as tokens, with a comma each, nor as values. */
  parameters: 65_536,
  /** Values of the IN lists of a text together, where they are too many to be tokens. */
  listed: 100_000,
  /** Comments within each other. */
  comments: 64,
  /** Brackets within each other. */
  brackets: 1_000,
  /** Levels of nesting of what is bound: queries, joins, values. */
  depth: 200,
  /** Columns that one query yields, and items of one list of GROUP BY or ORDER BY, as in Postgres. */
  columns: 1_664,
  /** Grouping sets of one GROUP BY, with what ROLLUP and CUBE stand for written out. */
  groupingSets: 1_024,
  /** FROM items of all levels together, with those of a NOT MATERIALIZED table in each place where it is read. */
  fromItems: 250,
  /** RETRIEVEs of one statement: each is a search of its own, before the statement. */
  retrievals: 8,
  /** Values that are bound, with what `*`, BETWEEN, CASE, a metric's name and `GROUP BY 1` stand for written out. */
  nodes: 16_000,
  /** Values that are bound, with every derived column written out as what it is computed from, as a planner does. */
  expanded: 100_000,
  /** Labels that enums are ordered by: each comparison and each key of an order has all those of its enum twice or once. */
  labels: 20_000,
  /** UTF-16 units of the SQL that a statement becomes, policy included. */
  sql: 4_194_304,
});
