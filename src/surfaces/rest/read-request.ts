import { QueryError } from 'osl-compiler';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';

/** What `parse` makes of the request of `call`. What cannot be read is refused like anything else: once it is known who sent it. */
export async function readRequest<T>(
  service: RequestParts,
  call: RequestCall,
  action: string,
  parse: () => T,
): Promise<T> {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw await turnAway(service, call, action, error, 'identified');
  }
}
