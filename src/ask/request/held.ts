import { queryError } from 'osl-compiler';
import {
  accountIdentity,
  type CertificateRule,
  type ClientCertificate,
  type Identity,
  isExpired,
  type PolicySnapshot,
  ruleFor,
  type ServiceAccount,
} from '../../../policy/index.js';
import type { PresentedCertificate } from './call.js';
import type { DecidingParts } from './parts.js';

/** Who calls without a token, as the policy knew it when it was last asked. */
export type TokenlessSession = AccountSession | CertificateSession;

/** A session of a service account. */
export interface AccountSession {
  readonly kind: 'account';
  readonly account: ServiceAccount;
  readonly identity: Identity;
}

/** The holder of a client certificate. */
export interface CertificateSession {
  readonly kind: 'certificate';
  readonly certificate: ClientCertificate;
  readonly rule: CertificateRule;
  /** By which the rule was found. */
  readonly snapshot: PolicySnapshot | null;
  readonly identity: Identity;
}

type SessionCheckParts = Pick<DecidingParts, 'model' | 'tenant' | 'revoked'>;

/**
 * As the policy of now has it: `held` itself while nothing changed and its identity is good, a new one where only rights
 * or time did, null where the account is gone or has another password, or the certificate is nobody's any more.
 */
export function heldNow(parts: SessionCheckParts, held: TokenlessSession): TokenlessSession | null {
  switch (held.kind) {
    case 'account':
      return accountNow(parts, held.account.login, held);
    case 'certificate':
      return certificateNow(parts, held.certificate, held);
  }
}

/** As `heldNow`, of the service account `login`. */
export function accountNow(
  parts: SessionCheckParts,
  login: string,
  held: AccountSession | null,
): AccountSession | null {
  const { snapshot } = parts.model();
  // Without a policy a session goes on to hear so at its next question.
  const account = snapshot === null ? held?.account : snapshot.serviceAccounts.get(login);
  if (account === undefined || (held !== null && held.account.scram !== account.scram)) return null;
  if (held?.account === account && !isExpired(held.identity, Date.now())) return held;
  const identity = accountIdentity(account, parts.tenant, Date.now());
  return Object.freeze({ kind: 'account', account, identity });
}

/** As `heldNow`, of a certificate that may not have been seen before. */
export function certificateNow(
  parts: SessionCheckParts,
  certificate: ClientCertificate,
  held: CertificateSession | null,
): CertificateSession | null {
  const now = Date.now();
  if (!(now < certificate.endsAt)) return null;
  const { snapshot } = parts.model();
  const stays = held?.snapshot === snapshot && !isExpired(held.identity, now);
  // Who shows a certificate again proves anew who it is.
  if (stays && !parts.revoked.has(held.identity)) return held;
  const rule = snapshot === null ? (held?.rule ?? null) : ruleFor(snapshot.certificates, certificate);
  if (rule === null || (held !== null && held.rule.subject !== rule.subject)) return null;
  const identity = accountIdentity(rule, parts.tenant, now);
  return Object.freeze({ kind: 'certificate', certificate, rule, snapshot, identity });
}

/** What is known of certificates that connections of REST have shown. */
const shown = new WeakMap<ClientCertificate, CertificateSession>();

/** Who the holder of a certificate is. @throws QueryError E2001, E3001 */
export function certificateIdentity(parts: SessionCheckParts, certificate: PresentedCertificate): Identity {
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
