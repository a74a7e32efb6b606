import { queryError } from 'osl-compiler';
import { isEmpty, type LimitBucket } from '../../../policy/index.js';
import { type Resolution, resolve } from '../../model/graph/index.js';
import type { Service } from '../../service/service.js';
import { answered, type Caller, counted, refuse, settled } from '../index.js';
import { Ledger } from '../ledger.js';
import type { Call } from '../question.js';
import { fullMap } from './full-map.js';
import { type Reading, type Readings, readingsOf } from './readings.js';

/** What a caller wants to be told of the graph. `governed`: of what its grants show; otherwise of all. */
export interface Description {
  readonly document: 'schema' | 'domain_map';
  readonly governed: boolean;
}

/**
 * Describes the graph. The same way as a question's: identify → access → limit → decide → audit → answer → outcome.
 *
 * @throws QueryError E2101 where all is asked for without an admin role, and what `ask` throws before it compiles
 */
export async function describe(service: Service, call: Call, wanted: Description): Promise<Reading> {
  const { document, governed } = wanted;
  const ledger = new Ledger(service, call, document);
  if (document === 'domain_map' && !governed) return wholeMap(service, call, ledger);
  // The contract limits the schema on its own.
  const bucket = document === 'schema' ? 'schema' : 'query';
  const extent = governed ? 'governed' : 'full';
  return told(service, call, ledger, bucket, extent, (readings) => {
    ledger.touches({ form: null, objects: readings.objects });
    return document === 'schema' ? readings.schema : readings.domainMap;
  });
}

/** What a business word may mean, of what the caller's grants show. @throws QueryError as `describe` */
export async function resolveTerm(service: Service, call: Call, term: string): Promise<Resolution> {
  const ledger = new Ledger(service, call, 'resolve', { kind: 'term', text: term });
  return told(service, call, ledger, 'query', 'governed', ({ view }) => {
    const resolution = resolve(term, view);
    ledger.touches({ form: null, objects: resolution.matches.map((m) => m.fqn).sort() });
    return resolution;
  });
}

/** The map with what is not adopted yet: the decision is on disk before a database is asked. */
async function wholeMap(service: Service, call: Call, ledger: Ledger): Promise<Reading> {
  let caller: Caller;
  try {
    caller = await counted(service, call, ledger, 'query');
    authorize(caller, 'full');
    const { objects } = readingsOf(caller, 'full', service.content.hasDecoder);
    ledger.touches({ form: null, objects });
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
  return answered(service, call, ledger, () => fullMap(service, caller.manifest, call.requestId));
}

async function told<T>(
  service: Service,
  call: Call,
  ledger: Ledger,
  bucket: LimitBucket,
  extent: 'full' | 'governed',
  answer: (readings: Readings) => T,
): Promise<T> {
  let answered: T;
  try {
    const caller = await counted(service, call, ledger, bucket);
    authorize(caller, extent);
    answered = answer(readingsOf(caller, extent, service.content.hasDecoder));
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
  await settled(service, call, ledger);
  return answered;
}

/** All of the graph is for admins; of the rest a caller sees something, or is told that it has no access. */
function authorize({ access }: Caller, extent: 'full' | 'governed'): void {
  if (extent === 'full' && access.adminRoles.size === 0) throw queryError('adminOnly', {});
  if (extent === 'governed' && isEmpty(access)) throw queryError('noAccess', {});
}
