import { queryError } from 'osl-compiler';
import { type Caller, type Decision, type RequestCall, type RequestParts, respond } from '../index.js';
import type { Insight } from './insight.js';

/** What answers who runs the server about what it knows of itself. */
export interface InsightParts extends RequestParts {
  readonly insight: Insight;
}

/** Counted as what authors ask, and refused to whoever is no admin over its whole chain. */
export const OPERATING = {
  bucket: 'authoring',
  permits: ({ access }: Caller): void => {
    if (access.adminRoles.size === 0) throw queryError('operatorsOnly', {});
  },
} as const satisfies Partial<Decision<unknown>>;

/** A request of who runs the server that changes nothing: on the one way of every request. @throws QueryError E2101 */
export function look<T>(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  answer: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  return respond<null, T>(parts, call, {
    action,
    ...OPERATING,
    decide: () => null,
    answer: (_, caller) => answer(caller),
  });
}
