import { InternalError, QueryError, queryError } from 'osl-compiler';
import {
  accessUntil,
  accountIdentity,
  type CertificateRule,
  type ClientCertificate,
  effectiveAccess,
  Identity,
  isExpired,
  type PolicySnapshot,
  purposeOf,
  REVOKED,
  ruleFor,
  type ServiceAccount,
} from '../../../policy/index.js';
import type { ServedModel } from '../../model/served-model.js';
import { circumstancesOf, type PresentedCertificate, type RequestCall } from './call.js';
import { auditDetailOf, type Caller } from './caller.js';
import type { DecidingParts } from './parts.js';
import { taskOf } from './task.js';

/** Collects the caller's data for the audit records. */
interface CallerObserver {
  setIdentity(identity: Identity, model: ServedModel): void;
  setDetail(detail: string | null): void;
}

/** Authenticates the caller and evaluates its access. @throws QueryError E2102, E3001, E2001, E2101, in this order */
export function identify(
  parts: DecidingParts,
  call: RequestCall,
  ledger: CallerObserver,
): Caller | Promise<Caller> {
  const { credentials } = call;
  if (credentials.kind === 'session') return callerAs(parts, credentials.identity, ledger, call);
  const { token, certificate } = credentials;
  if (token === null && certificate !== undefined)
    return callerAs(parts, certificateIdentity(parts, certificate), ledger, call);
  if (token === null) throw queryError('missingToken', {});
  return parts.verifier.verify(token).then((identity) => callerAs(parts, identity, ledger, call));
}

/** Like `callerAs`, but returns null on refusal; `respond` then refuses the call again and records that. */
export function callerIfAllowed(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals'>,
  identity: Identity,
  call: RequestCall,
): Caller | null {
  try {
    return callerAs(parts, identity, NO_LEDGER, call);
  } catch (refusal) {
    if (refusal instanceof QueryError) return null;
    throw refusal;
  }
}

/** Like `callerIfAllowed`, but also returns null if attributes must first be read from entities (on the full path). */
export function callerWithoutReads(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals' | 'tableAttributes'>,
  identity: Identity,
  call: RequestCall,
): Caller | null {
  const caller = callerIfAllowed(parts, identity, call);
  return caller === null || parts.tableAttributes.needs(caller) ? null : caller;
}

/** Returns the caller with all attributes of its row filters. @throws QueryError if they cannot be read */
export function completeCaller(
  { tableAttributes }: Pick<DecidingParts, 'tableAttributes'>,
  caller: Caller,
): Caller | Promise<Caller> {
  return tableAttributes.needs(caller) ? tableAttributes.complete(caller) : caller;
}

const NO_LEDGER = Object.freeze({ setIdentity: () => undefined, setDetail: () => undefined });

/** @throws QueryError E3001 for a revoked token */
export function requireNotRevoked({ revoked }: Pick<DecidingParts, 'revoked'>, identity: Identity): void {
  if (revoked.has(identity)) throw queryError('invalidToken', { reason: REVOKED });
}

/** Evaluates the access of `identity` under the current model. @throws QueryError E3001, E2001, E2101, E0532 */
export function callerAs(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals'>,
  identity: Identity,
  ledger: CallerObserver,
  call: RequestCall,
): Caller {
  // INVARIANT: a cast can forge the type, but not the private field.
  if (!Identity.is(identity)) throw new InternalError('an identity that nobody verified');
  const model = parts.model();
  const { manifest, snapshot } = model;
  ledger.setIdentity(identity, model);
  requireNotRevoked(parts, identity);
  if (snapshot === null) throw queryError('noSnapshot', {});
  const stated = circumstancesOf(call);
  const purpose = purposeOf(identity, snapshot, stated.purpose);
  if (purpose === null && stated.purpose !== null) throw queryError('purposeDenied', {});
  const task = taskOf(identity, call);
  const circumstances = { ...stated, approved: parts.approvals.inForce(identity, purpose, task) };
  const caller = Object.freeze({
    identity,
    access: effectiveAccess(identity, snapshot, manifest.catalog, circumstances),
    model,
    manifest,
    snapshot,
    purpose,
    circumstances,
    task,
    until: accessUntil(identity, snapshot, circumstances),
  });
  ledger.setDetail(auditDetailOf(caller));
  return caller;
}

/** A session without a token, as of its last check. */
export type TokenlessSession = AccountSession | CertificateSession;

export interface AccountSession {
  readonly kind: 'account';
  readonly account: ServiceAccount;
  readonly identity: Identity;
}

export interface CertificateSession {
  readonly kind: 'certificate';
  readonly certificate: ClientCertificate;
  readonly rule: CertificateRule;
  readonly snapshot: PolicySnapshot | null;
  readonly identity: Identity;
}

type SessionCheckParts = Pick<DecidingParts, 'model' | 'tenant' | 'revoked'>;

/**
 * Checks a session against the current policy. Returns `session` itself if nothing changed, and a new session if only
 * rights or time changed. Returns null if the account is gone or its password changed, or if the certificate has
 * expired or no longer maps to this subject.
 */
export function currentSession(parts: SessionCheckParts, session: TokenlessSession): TokenlessSession | null {
  switch (session.kind) {
    case 'account':
      return currentAccountSession(parts, session.account.login, session);
    case 'certificate':
      return currentCertificateSession(parts, session.certificate, session);
  }
}

export function currentAccountSession(
  parts: SessionCheckParts,
  login: string,
  previous: AccountSession | null,
): AccountSession | null {
  const { snapshot } = parts.model();
  // Without a policy the session stays open, but its requests are refused.
  const account = snapshot === null ? previous?.account : snapshot.serviceAccounts.get(login);
  if (account === undefined || (previous !== null && previous.account.scram !== account.scram)) return null;
  if (previous?.account === account && !isExpired(previous.identity, Date.now())) return previous;
  const identity = accountIdentity(account, parts.tenant, Date.now());
  return Object.freeze({ kind: 'account', account, identity });
}

export function currentCertificateSession(
  parts: SessionCheckParts,
  certificate: ClientCertificate,
  previous: CertificateSession | null,
): CertificateSession | null {
  const now = Date.now();
  if (!(now < certificate.endsAt)) return null;
  const { snapshot } = parts.model();
  const isUnchanged = previous?.snapshot === snapshot && !isExpired(previous.identity, now);
  // Presenting the certificate again is a new authentication, so an earlier revocation does not apply.
  if (isUnchanged && !parts.revoked.has(previous.identity)) return previous;
  const rule = snapshot === null ? (previous?.rule ?? null) : ruleFor(snapshot.certificates, certificate);
  if (rule === null || (previous !== null && previous.rule.subject !== rule.subject)) return null;
  const identity = accountIdentity(rule, parts.tenant, now);
  return Object.freeze({ kind: 'certificate', certificate, rule, snapshot, identity });
}

/** Sessions of REST connections, by certificate. */
const certificateSessions = new WeakMap<ClientCertificate, CertificateSession>();

/** Returns the identity that the policy assigns to a client certificate. @throws QueryError E2001, E3001 */
function certificateIdentity(parts: SessionCheckParts, certificate: PresentedCertificate): Identity {
  if (certificate === null)
    throw queryError('invalidCertificate', { reason: 'expired, revoked, untrusted, or not for clients' });
  if (parts.model().snapshot === null) throw queryError('noSnapshot', {});
  const session = currentCertificateSession(parts, certificate, certificateSessions.get(certificate) ?? null);
  if (session === null) {
    certificateSessions.delete(certificate);
    const hasExpired = !(Date.now() < certificate.endsAt);
    throw queryError('invalidCertificate', {
      reason: hasExpired ? 'it has ended' : 'no rule of the policy is for it alone',
    });
  }
  certificateSessions.set(certificate, session);
  return session.identity;
}
