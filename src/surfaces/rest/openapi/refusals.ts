import { ERRORS, type ErrorName } from 'osl-compiler';
import { PROBLEM_REF } from './components.js';

/** What each status of the catalogue means to who asks. */
const MEANINGS: ReadonlyMap<number, string> = new Map([
  [400, 'Not a request that can be answered'],
  [401, 'The token is not valid'],
  [403, 'No token, no access, or denied'],
  [404, 'There is none'],
  [406, 'A value that Arrow does not have, such as an infinite date'],
  [409, 'Not in the state that this takes'],
  [412, 'Another version is served'],
  [413, 'The body is too large'],
  [415, 'The body is not JSON'],
  [422, 'Valid, but not resolvable'],
  [428, 'No version is named'],
  [429, 'Over the limit, with `Retry-After`'],
  [499, 'Cancelled'],
  [500, 'A fault of the service, told by its request id alone'],
  [502, 'The database could not run it'],
  [503, 'It cannot be answered now, or not here'],
  [504, 'It ran too long'],
]);

const ALL = Object.keys(ERRORS) as readonly ErrorName[]; // of a literal object

/** What every call below `/osl` may meet, whatever it asks. */
const ANY_CALL: readonly ErrorName[] = [
  'malformedBody',
  'tooLarge',
  'invalidToken',
  'missingToken',
  'noAccess',
  'rateLimited',
  'internal',
  'noSnapshot',
  'auditUnavailable',
  'overloaded',
  'shuttingDown',
];

/** What a body that is no JSON may meet. */
export const BODY: readonly ErrorName[] = ['bodyTooLarge', 'mediaType', 'tooDeep'];

/** What a question may meet: all that the compiler refuses, and all that can go wrong while it runs. */
export const QUESTION: readonly ErrorName[] = [
  ...ALL.filter((name) => ERRORS[name].http === 400),
  'outsideAllowlist',
  'keyNotClear',
  'denied',
  'groupsOnly',
  'decodeDenied',
  'unresolvable',
  'planChanged',
  'cancelled',
  'execution',
  'databaseDown',
  'sourceDenied',
  'sourceGone',
  'sourceChanged',
  'noDecoder',
  'contentUnavailable',
  'modelUnavailable',
  'rerankerUnavailable',
  'rerankBudget',
  'timedOut',
];

export const AUTHOR: readonly ErrorName[] = ['authorsOnly'];

export function problem(description: string) {
  return { description, content: { 'application/problem+json': { schema: PROBLEM_REF } } };
}

/** The refusals of an operation by status: those of any call and of `names`, each with its codes of the catalogue. */
export function refusals(
  ...names: readonly ErrorName[]
): Readonly<Record<string, ReturnType<typeof problem>>> {
  const codes = new Map<number, Set<string>>();
  for (const name of [...ANY_CALL, ...names]) {
    const { http, code } = ERRORS[name];
    codes.set(http, (codes.get(http) ?? new Set()).add(code));
  }
  const statuses = [...codes].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([http, all]) => [
      http,
      problem(`${MEANINGS.get(http) ?? ''}: ${[...all].sort().join(', ')}.`),
    ]),
  );
}
