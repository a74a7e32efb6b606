import { queryError } from 'osl-compiler';
import { type Caller, type Decision, type RequestCall, type RequestParts, respond } from '../index.js';
import type { Insight } from './insight.js';

/** Dependencies of read-only operator requests. */
export interface InsightParts extends RequestParts {
  readonly insight: Insight;
}

/** Settings shared by operator requests: the bucket of authors, and an admin role over the whole chain. */
export const OPERATING = {
  bucket: 'authoring',
  permits: ({ access }: Caller): void => {
    if (access.adminRoles.size === 0) throw queryError('operatorsOnly', {});
  },
} as const satisfies Partial<Decision<unknown>>;

/** Handles a read-only operator request. @throws QueryError E2101, and as `respond` */
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
