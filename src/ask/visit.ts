import type { QueryError } from 'osl-compiler';
import type { LimitBucket } from '../../policy/index.js';
import type { Service } from '../service/service.js';
import { type Caller, counted, refuse, settled } from './index.js';
import { Ledger } from './ledger.js';
import type { Call } from './question.js';

/** Lets in a call that asks for no data, on any valid token. @throws QueryError */
export async function admit(
  service: Service,
  call: Call,
  action: string,
  bucket: LimitBucket,
): Promise<Caller> {
  const ledger = new Ledger(service, call, action);
  let caller: Caller;
  try {
    caller = await counted(service, call, ledger, bucket);
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
  await settled(service, call, ledger);
  return caller;
}

/** What a call that cannot be read is counted as, where that is no question. */
const BUCKETS: ReadonlyMap<string, LimitBucket> = new Map([
  ['sample', 'sample'],
  ['schema', 'schema'],
  ['candidates', 'authoring'],
  ['suggest', 'authoring'],
  ['validate', 'authoring'],
  ['publish', 'authoring'],
  ['objects', 'authoring'],
  ['mcp', 'catalog'],
]);

/** Whose call is turned away: where only the identified may know, whoever is not hears that instead. */
export type TurnedAway = 'anyone' | 'identified';

/**
 * Refuses, and records, a call that there is nothing to answer for: an unknown path, a request that is none. Gives
 * what the caller is told. A broken token is told of in any case: it is never downgraded to none.
 */
export async function turnAway(
  service: Service,
  call: Call,
  action: string,
  reason: QueryError,
  who: TurnedAway,
): Promise<QueryError> {
  const ledger = new Ledger(service, call, action);
  const { credentials } = call;
  const anonymous = credentials.kind === 'bearer' && credentials.token === null;
  if (!anonymous || who === 'identified') {
    try {
      await counted(service, call, ledger, BUCKETS.get(action) ?? 'query');
    } catch (error) {
      return refuse(service, call, ledger, error);
    }
  }
  return refuse(service, call, ledger, reason);
}
