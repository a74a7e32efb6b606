import { QueryError } from 'osl-compiler';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';

/** Runs `parse`; a malformed request is refused and recorded after its sender was authenticated. */
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
