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
  knows(identity: Identity, model: ServedModel): void;
  says(of: string | null): void;
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

/** Like `callerAs` without an observer, but null on refusal; `respond` then refuses the call again and records that. */
export function callerIfAllowed(
  parts: Pick<DecidingParts, 'model' | 'revoked' | 'approvals'>,
  identity: Identity,
  call: RequestCall,
): Caller | null {
  try {
    return callerAs(parts, identity, NO_OBSERVER, call);
  } catch (refusal) {
    if (refusal instanceof QueryError) return null;
    throw refusal;
  }
}

/** Like `callerIfAllowed`, but also returns null if attributes must be read from entities first, on the full path. */
export function callerAtOnce(
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

const NO_OBSERVER: CallerObserver = Object.freeze({ knows: () => undefined, says: () => undefined });

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
  ledger.knows(identity, model);
  requireNotRevoked(parts, identity);
  if (snapshot === null) throw queryError('noSnapshot', {});
  const stated = circumstancesOf(call);
  const purpose = purposeOf(identity, snapshot, stated.purpose);
  if (purpose === null && stated.purpose !== null) throw queryError('purposeDenied', {});
  const task = taskOf(identity, call);
  const circumstances = { ...stated, approved: parts.approvals.of(identity, purpose, task) };
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
  ledger.says(auditDetailOf(caller));
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
 * Checks a session against the current policy. Returns `held` if nothing changed, and a new session if only rights or
 * time changed. Returns null if the account is gone or its password changed, or if the certificate has expired or no
 * longer maps to this subject.
 */
export function currentSession(parts: SessionCheckParts, held: TokenlessSession): TokenlessSession | null {
  switch (held.kind) {
    case 'account':
      return accountNow(parts, held.account.login, held);
    case 'certificate':
      return certificateNow(parts, held.certificate, held);
  }
}

export function accountNow(
  parts: SessionCheckParts,
  login: string,
  held: AccountSession | null,
): AccountSession | null {
  const { snapshot } = parts.model();
  // Without a policy the session stays open, but its requests are refused.
  const account = snapshot === null ? held?.account : snapshot.serviceAccounts.get(login);
  if (account === undefined || (held !== null && held.account.scram !== account.scram)) return null;
  if (held?.account === account && !isExpired(held.identity, Date.now())) return held;
  const identity = accountIdentity(account, parts.tenant, Date.now());
  return Object.freeze({ kind: 'account', account, identity });
}

export function certificateNow(
  parts: SessionCheckParts,
  certificate: ClientCertificate,
  held: CertificateSession | null,
): CertificateSession | null {
  const now = Date.now();
  if (!(now < certificate.endsAt)) return null;
  const { snapshot } = parts.model();
  const stays = held?.snapshot === snapshot && !isExpired(held.identity, now);
  // Presenting the certificate again is a new authentication, so an earlier revocation does not apply.
  if (stays && !parts.revoked.has(held.identity)) return held;
  const rule = snapshot === null ? (held?.rule ?? null) : ruleFor(snapshot.certificates, certificate);
  if (rule === null || (held !== null && held.rule.subject !== rule.subject)) return null;
  const identity = accountIdentity(rule, parts.tenant, now);
  return Object.freeze({ kind: 'certificate', certificate, rule, snapshot, identity });
}

/** Sessions of REST connections, by certificate. */
const shown = new WeakMap<ClientCertificate, CertificateSession>();

/** Returns the identity that the policy assigns to a client certificate. @throws QueryError E2001, E3001 */
function certificateIdentity(parts: SessionCheckParts, certificate: PresentedCertificate): Identity {
  if (certificate === null)
    throw queryError('invalidCertificate', { reason: 'no authority that is trusted vouches for it' });
  if (parts.model().snapshot === null) throw queryError('noSnapshot', {});
  const known = certificateNow(parts, certificate, shown.get(certificate) ?? null);
  if (known === null) {
    shown.delete(certificate);
    const ended = !(Date.now() < certificate.endsAt);
    throw queryError('invalidCertificate', {
      reason: ended ? 'it has ended' : 'no rule of the policy is for it alone',
    });
  }
  shown.set(certificate, known);
  return known.identity;
}
