import { queryError } from 'osl-compiler';
import { type Caller, type Decision, type RequestCall, type RequestParts, respond } from '../index.js';
import type { Insight } from './insight.js';

/** Dependencies of the operators' requests for information. */
export interface InsightParts extends RequestParts {
  readonly insight: Insight;
}

/** Settings of operators' requests: counted with those of authors; an admin role over the whole chain is required. */
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
