import { InternalError, queryError } from 'osl-compiler';
import {
  accountIdentity,
  effectiveAccess,
  type Identity,
  isExpired,
  type ServiceAccount,
} from '../../policy/index.js';
import type { Service } from '../service/service.js';
import { callerOf, counted, publicError, refuse, settled } from './index.js';
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

/** A right password that is refused as if it were wrong. */
export class TooManyGuesses extends Error {}

/**
 * Opens a session of a service account, whose password the wire has seen proved. Recorded either way.
 *
 * @throws QueryError E2001, E3001, E5030; TooManyGuesses
 */
export async function accountLogin(service: Service, call: Call, user: string): Promise<AccountSession> {
  if (
    call.credentials.kind === 'bearer' &&
    !(await service.limiter.guesses.right(user, call.credentials.address))
  ) {
    // Not waited for, as the record of a wrong password is not: how long it takes must not tell them apart.
    void refusedConnection(service, call, 'login', 'E4290');
    throw new TooManyGuesses();
  }
  const session = accountNow(service, user, null);
  const known: Call =
    session === null ? call : { ...call, credentials: { kind: 'session', identity: session.identity } };
  const ledger = new Ledger(service, known, 'login');
  try {
    if (session === null) throw queryError('invalidToken', { reason: 'there is no such service account' });
    await callerOf(service, known.credentials, ledger);
    await ledger.allow();
    ledger.outcome('ok', 0);
    return session;
  } catch (error) {
    throw await refuse(service, known, ledger, error);
  }
}

/** A session of a service account: who it is, and as what the policy knew it then. */
export interface AccountSession {
  readonly account: ServiceAccount;
  readonly identity: Identity;
}

/**
 * The session as the policy of now has it: `held` itself while nothing changed and its identity is good, a new one
 * where only rights or time did, null where the account is gone or has another password.
 */
export function accountNow(
  service: Service,
  login: string,
  held: AccountSession | null,
): AccountSession | null {
  const { snapshot } = service.model();
  // Without a policy a session goes on to hear so at its next question.
  const account = snapshot === null ? held?.account : snapshot.serviceAccounts.get(login);
  if (account === undefined || (held !== null && held.account.scram !== account.scram)) return null;
  if (held?.account === account && !isExpired(held.identity, Date.now())) return held;
  return Object.freeze({ account, identity: accountIdentity(account, service.tenant, Date.now()) });
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

/** The rights of `identity` as the policy and the manifest of now give them: equal texts, equal rights. */
export function rightsNow(service: Service, identity: Identity): string {
  const { manifest, snapshot } = service.model();
  if (snapshot === null) return '';
  return `${manifest.catalog.version} ${effectiveAccess(identity, snapshot, manifest.catalog).signature}`;
}

/** The time zone that `text` names, as Postgres shows it; null where there is none. @throws QueryError E0510, E0523 */
export function timeZoneNamed(service: Service, text: string): Promise<string | null> {
  const engine = service.engines.get(service.defaultConnector);
  if (engine === undefined) throw new InternalError(`connector ${service.defaultConnector} is not open`);
  return engine.timeZone(text);
}

/**
 * Records, and counts against the limits, a statement that touches no data: SET, SHOW, BEGIN and their like, and
 * questions about the catalog.
 *
 * @throws QueryError E4290, E5030
 */
export async function sessionCommand(service: Service, call: Call, action = 'session'): Promise<void> {
  await settled(service, call, await admitted(service, call, action));
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
    await counted(service, call, ledger, 'catalog');
    return ledger;
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
}
