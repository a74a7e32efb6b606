/**
 * Bodies that are pathological in one way each, of any size, for each path of callers. Drafts of admins are not among
 * them: decision 33 says what these may still cost.
 */
export interface BodyFamily {
  readonly name: string;
  readonly path: string;
  readonly admin?: true;
  /** As it is sent. */
  at(n: number): string;
}

const QUERY = '/osl/query';
const list = (n: number, what: (i: number) => unknown): unknown[] =>
  Array.from({ length: n }, (_, i) => what(i));
const json = (name: string, path: string, body: (n: number) => unknown, admin?: true): BodyFamily => ({
  name,
  path,
  at: (n) => JSON.stringify(body(n)),
  ...(admin === undefined ? {} : { admin }),
});

export const BODIES: readonly BodyFamily[] = [
  { name: 'arrays in each other', path: QUERY, at: (n) => `{"osql":${'['.repeat(n)}${']'.repeat(n)}}` },
  { name: 'objects in each other', path: QUERY, at: (n) => `{"osql":${'{"a":'.repeat(n)}1${'}'.repeat(n)}}` },
  { name: 'members', path: QUERY, at: (n) => `{${list(n + 1, (i) => `"m${i}":1`).join(',')}}` },
  { name: 'escapes', path: QUERY, at: (n) => `{"osql":"select '${'\\u0061'.repeat(n)}'"}` },
  { name: 'not JSON', path: QUERY, at: (n) => '['.repeat(n + 1) },
  json('parameters', QUERY, (n) => ({ osql: 'select 1', parameters: list(n, (i) => i) })),
  json('a parameter', QUERY, (n) => ({ osql: 'select $1::text as a', parameters: ['x'.repeat(n)] })),
  json('metrics', QUERY, (n) => ({ metrics: list(n + 1, () => 'revenue') })),
  json('groups', QUERY, (n) => ({ metrics: ['revenue'], group_by: list(n, (i) => `order__c${i}`) })),
  json('predicates', QUERY, (n) => ({
    metrics: ['revenue'],
    where: list(n, (i) => `{{ Dimension('order__id') }} = ${i}`),
  })),
  json('a long predicate', QUERY, (n) => ({
    metrics: ['revenue'],
    where: `true${" or {{ Dimension('order__id') }} = 1".repeat(n)}`,
  })),
  json('a predicate of brackets', QUERY, (n) => ({
    metrics: ['revenue'],
    where: `${'('.repeat(n)}true${')'.repeat(n)}`,
  })),
  json('a predicate of braces', QUERY, (n) => ({ metrics: ['revenue'], where: '{{ '.repeat(n) })),
  json('a predicate that doubles', QUERY, (n) => ({
    metrics: ['revenue'],
    where: `${'('.repeat(n)}true${' between false and true)'.repeat(n)}`,
  })),
  json('the name of a metric', QUERY, (n) => ({ metrics: ['x'.repeat(n + 1)] })),
  json('the name of a sample', '/osl/sample', (n) => ({ kind: 'table', name: 'x'.repeat(n + 1), limit: 1 })),
  json('a wish', '/osl/suggest', (n) => ({ term: 'x'.repeat(n + 1) }), true),
];
