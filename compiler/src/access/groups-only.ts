/** The reason why rows that may only be aggregated are refused, and the alternative to suggest. */
interface Reason {
  readonly detail: string;
  readonly hint: string;
}

/** `relation` is the object whose rows they are; `what` a function, or the metrics that its grants name. */
type ReasonOf = (relation: string, what: string) => Reason;

const ALONE = 'aggregate it in a SELECT without that join, or take count(DISTINCT …) of its columns';

export const GROUPS_ONLY = {
  rows: (relation) => ({
    detail: 'aggregate them where they are read',
    hint: `write count, sum or avg of columns in the SELECT that reads \`${relation}\`, over groups that are large enough`,
  }),
  made: () => ({
    detail: 'join them to entities and bridges only',
    hint: 'join entities by their names, with no derived table, WITH item or function in FROM beside them',
  }),
  joined: () => ({
    detail: 'OSL-SQL alone joins them, on sealed keys and nothing else',
    hint: 'ask in OSL-SQL, with equalities of sealed keys alone in ON; other conditions go in WHERE',
  }),
  drawn: () => ({
    detail: 'nothing may be drawn anew for each of their groups',
    hint: 'leave out random() and whatever else gives a new value at each call',
  }),
  optional: () => ({
    detail: 'they may not be the optional side of a join',
    hint: 'use INNER JOIN',
  }),
  around: (relation) => ({
    detail: 'a query around chooses them by `=` and a key, and by nothing else',
    hint: `compare a sealed key of \`${relation}\` to one of the query around, with = in WHERE, and name no other column of that query`,
  }),
  expanded: () => ({
    detail: 'rows cannot be made of them',
    hint: 'leave out of this SELECT what makes rows, such as unnest',
  }),
  shows: (_, name) => ({
    detail: `\`${name}\` would show what is in one of them`,
    hint: 'use count, sum, avg, stddev or variance',
  }),
  ordered: () => ({
    detail: 'an aggregate over them takes no ORDER BY',
    hint: 'leave out ORDER BY in the call',
  }),
  intervals: (_, name) => ({
    detail: `\`${name}\` of intervals may be too large`,
    hint: 'use count, or aggregate a column of numbers',
  }),
  computed: () => ({
    detail: 'aggregate columns as they are, without an expression',
    hint: 'aggregate each column by itself and compute with the results, as in sum(a) / count(b)',
  }),
  repeated: () => ({
    detail: 'a join repeats them, and so would weigh one more than another',
    hint: ALONE,
  }),
  besideRows: () => ({
    detail: 'a join to rows that are shown would weigh one more than another',
    hint: ALONE,
  }),
  known: () => ({
    detail: 'a column that is shown would weigh one more than another',
    hint: 'use count, or aggregate a column of which you are shown no values',
  }),
  fails: () => ({
    detail: 'filter and group by columns and comparisons only, which cannot fail',
    hint: 'compare columns to constants in WHERE, group by columns as they are, and compute with the results in a query around',
  }),
  running: () => ({
    detail: 'a running total would tell its periods apart',
    hint: 'ask for each period by itself, with a metric that adds nothing up over time',
  }),
  metrics: (relation, metrics) => ({
    detail: 'only some metrics of it may be asked for',
    hint: `ask for ${metrics} in a SELECT from \`${relation}\` alone`,
  }),
  sharedJoin: (relation) => ({
    detail: 'a figure over rows that are joined to them could be one of them for the most part',
    hint: `aggregate columns of \`${relation}\` itself, or use count`,
  }),
  sharedPart: (_, name) => ({
    detail: `what part of \`${name}\` is one row's cannot be told`,
    hint: 'use count, or aggregate a column of numbers',
  }),
  sampled: (relation) => ({
    detail: 'a sample would show some of them',
    hint: `ask for count, sum or avg of columns of \`${relation}\`, over groups that are large enough`,
  }),
} satisfies Readonly<Record<string, ReasonOf>>;

export type GroupsOnlyReason = keyof typeof GROUPS_ONLY;

/** Hint for a metric that needs more than figures over groups. */
export function inPlaceOfMetric(relation: string): string {
  return `ask for another metric, or write count, sum or avg of columns in a SELECT that reads \`${relation}\``;
}
