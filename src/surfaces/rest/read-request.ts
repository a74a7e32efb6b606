import { QueryError } from 'osl-compiler';
import type { Call } from '../../ask/index.js';
import { turnAway } from '../../ask/visit.js';
import type { Service } from '../../service/service.js';

/** What `parse` makes of the request of `call`. What cannot be read is refused like anything else: once it is known who sent it. */
export async function readRequest<T>(
  service: Service,
  call: Call,
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
