import { queryError } from 'osl-compiler';
import type { Identity } from '../../policy/index.js';
import type { Service } from '../service.js';
import { callerOf, limit, publicError, refuse } from './index.js';
import { Ledger } from './ledger.js';
import type { Call } from './question.js';

/**
 * Opens a session: the token is verified, belongs to `user`, and a policy is loaded. Recorded either way.
 *
 * @throws QueryError E2102, E3001, E2001, E4290, E5030
 */
export async function login(service: Service, call: Call, user: string): Promise<Identity> {
  const ledger = new Ledger(service, call, 'login');
  try {
    const { identity } = await callerOf(service, call.credentials, ledger);
    if (identity.subject !== user) {
      throw queryError('invalidToken', { reason: 'its subject is not the user that logs in' });
    }
    await ledger.allow();
    ledger.outcome('ok', 0);
    return identity;
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
}

/**
 * A newer token for a session that is open: same tenant, same chain. Recorded either way.
 *
 * @throws QueryError E3001, E2001, E4290, E5030
 */
export async function renewed(
  service: Service,
  call: Call,
  current: Identity,
  token: string,
): Promise<Identity> {
  const ledger = await admitted(service, call, 'renew');
  try {
    const next = await service.verifier.verify(token);
    if (next.tenant !== current.tenant || next.chain.join('\n') !== current.chain.join('\n'))
      throw queryError('invalidToken', { reason: "it is not a token of this session's caller" });
    await ledger.allow();
    ledger.outcome('ok', 0);
    return next;
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
}

/**
 * Records, and counts against the limits, a statement that touches no data: SET, SHOW, BEGIN and their like, and
 * questions about the catalog.
 *
 * @throws QueryError E4290, E5030
 */
export async function sessionCommand(service: Service, call: Call, action = 'session'): Promise<void> {
  const ledger = await admitted(service, call, action);
  try {
    await ledger.allow();
  } catch (error) {
    throw publicError(service, call.requestId, error);
  }
  ledger.outcome('ok', 0);
}

/** The same for a statement that the surface itself refuses with this SQLSTATE. */
export async function refusedCommand(service: Service, call: Call, sqlstate: string): Promise<void> {
  const ledger = await admitted(service, call, 'session');
  try {
    await ledger.refuse(sqlstate);
  } catch (error) {
    throw publicError(service, call.requestId, error);
  }
}

/** Something failed before there was a session. What an address may do so is limited before it reaches the log. */
export async function refusedConnection(
  service: Service,
  call: Call,
  action: string,
  sqlstate: string | null,
): Promise<void> {
  if (call.credentials.kind !== 'bearer') return;
  const { address } = call.credentials;
  const taken = await service.limiter.takeAddress(address);
  if (!taken.ok && !service.strangers.isFirst(service, call, address)) return;
  try {
    await new Ledger(service, call, action).refuse(sqlstate ?? 'E3001');
  } catch (error) {
    publicError(service, call.requestId, error);
  }
}

async function admitted(service: Service, call: Call, action: string): Promise<Ledger> {
  const ledger = new Ledger(service, call, action);
  try {
    const { identity } = await callerOf(service, call.credentials, ledger);
    await limit(service, identity, 'catalog', call.surface);
    return ledger;
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
}
