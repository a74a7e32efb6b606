/** Message and hint of the error for rows that may only be aggregated. */
interface GroupsOnlyText {
  readonly detail: string;
  readonly hint: string;
}

/** @param name a function, or the list of the metrics that the grants allow */
type TextFor = (relation: string, name: string) => GroupsOnlyText;

const ALONE = 'aggregate it in a SELECT without that join, or take count(DISTINCT …) of its columns';

export const GROUPS_ONLY = {
  rows: (relation) => ({
    detail: 'they must be aggregated in the SELECT that reads them',
    hint: `write count, sum or avg of columns in the SELECT that reads \`${relation}\`, over groups that are large enough`,
  }),
  made: () => ({
    detail: 'they can only be joined to entities and bridges',
    hint: 'join entities by name, without a derived table, WITH table or function in FROM',
  }),
  joined: () => ({
    detail: 'they can only be joined in OSL-SQL, and only on sealed keys',
    hint: 'use OSL-SQL, with only equalities of sealed keys in ON; put other conditions into WHERE',
  }),
  drawn: () => ({
    detail: 'random values are not allowed over their groups',
    hint: 'leave out random() and other functions that give a new value at each call',
  }),
  optional: () => ({
    detail: 'they must not be the optional side of a join',
    hint: 'use INNER JOIN',
  }),
  around: (relation) => ({
    detail: 'an outer query can only select them by `=` on a key',
    hint: `compare a sealed key of \`${relation}\` with one of the outer query by = in WHERE, and use no other column of that query`,
  }),
  expanded: () => ({
    detail: 'functions that make rows cannot be applied to them',
    hint: 'leave functions such as unnest out of this SELECT',
  }),
  shows: (_, name) => ({
    detail: `\`${name}\` would show the value of a single row`,
    hint: 'use count, sum, avg, stddev or variance',
  }),
  ordered: () => ({
    detail: 'an aggregate over them must not have ORDER BY',
    hint: 'leave out ORDER BY in the call',
  }),
  tooLarge: (_, name) => ({
    detail: `\`${name}\` of intervals or money may be too large`,
    hint: 'use count, or aggregate a column of numbers',
  }),
  computed: () => ({
    detail: 'only plain columns can be aggregated, not expressions',
    hint: 'aggregate each column separately and compute with the results, as in sum(a) / count(b)',
  }),
  repeated: () => ({
    detail: 'a join repeats them, which would give some rows more weight than others',
    hint: ALONE,
  }),
  besideRows: () => ({
    detail: 'a join to visible rows would give some rows more weight than others',
    hint: ALONE,
  }),
  known: () => ({
    detail: 'a visible column would give some rows more weight than others',
    hint: 'use count, or aggregate a column whose values you cannot see',
  }),
  fails: () => ({
    detail: 'only columns and comparisons, which cannot fail, can filter and group them',
    hint: 'compare columns with constants in WHERE, group by plain columns, and compute with the results in an outer query',
  }),
  running: () => ({
    detail: 'a running total would reveal its single periods',
    hint: 'query each period separately, with a metric that is not a running total',
  }),
  metrics: (relation, metrics) => ({
    detail: 'only certain metrics of it may be queried',
    hint: `query ${metrics} in a SELECT from \`${relation}\` alone`,
  }),
  sharedJoin: (relation) => ({
    detail: 'an aggregate over rows joined to them could consist mostly of one of them',
    hint: `aggregate columns of \`${relation}\` itself, or use count`,
  }),
  sampled: (relation) => ({
    detail: 'a sample would show single rows',
    hint: `use count, sum or avg of columns of \`${relation}\`, over groups that are large enough`,
  }),
} satisfies Readonly<Record<string, TextFor>>;

export type GroupsOnlyReason = keyof typeof GROUPS_ONLY;

/** Returns the hint for a metric that needs more than aggregates over groups. */
export function inPlaceOfMetric(relation: string): string {
  return `use another metric, or write count, sum or avg of columns in a SELECT that reads \`${relation}\``;
}
