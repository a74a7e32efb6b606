import { QueryError, queryError } from 'osl-compiler';
import {
  accessUntil,
  accountIdentity,
  type CertificateRule,
  type Circumstances,
  type ClientCertificate,
  type EffectiveAccess,
  effectiveAccess,
  type Identity,
  isExpired,
  type PolicySnapshot,
  purposeOf,
  REVOKED,
  ruleFor,
  type ServiceAccount,
} from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { ServedModel } from '../../model/served-model.js';
import { circumstancesOf, type PresentedCertificate, type RequestCall } from './call.js';
import type { DecidingParts } from './parts.js';

/** Who asks, what they may see, and under which versions: settled before anything is compiled. */
export interface Caller {
  readonly identity: Identity;
  readonly access: EffectiveAccess;
  /** What served when it was decided who calls; another object once anything of it is another. */
  readonly model: ServedModel;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
  /** What the request is for, where policy and token allow it to be for that. */
  readonly purpose: string | null;
  readonly circumstances: Circumstances;
  /** ms since the epoch: until then `access` is what it is in such circumstances. */
  readonly until: number;
}

/** Who is told who calls, and under which versions. */
interface CallerObserver {
  knows(identity: Identity, model: ServedModel): void;
  /** What the records are to say of the caller beside who it is. */
  says(of: string | null): void;
}

/** What an answer rests on. */
export interface ServedVersions {
  readonly manifest: string;
  readonly policy: string;
}

/** What an answer to `caller` rests on. */
export function versionsOf({ manifest, snapshot }: Pick<Caller, 'manifest' | 'snapshot'>): ServedVersions {
  return { manifest: manifest.version, policy: snapshot.version };
}

/** Whose rights nobody needs to look at anew: they are those of this caller, in these circumstances, at this moment. */
export function stands({ circumstances, until }: Caller, now = Date.now()): boolean {
  // A clock that was set back proves nothing either.
  return until === Number.POSITIVE_INFINITY || (now >= circumstances.now && now < until);
}

/** What the records of a caller's requests say of it beside who it is, as JSON; null where there is nothing. */
export function saidOf({ purpose, circumstances: { emergency } }: Pick<Caller, 'purpose' | 'circumstances'>) {
  if (purpose === null && emergency === null) return null;
  return JSON.stringify({
    ...(purpose !== null && { purpose }),
    ...(emergency !== null && { break_glass: emergency.id }),
  });
}

/**
 * Who calls, and with what access. No token, a bad token, no policy are told in this order.
 *
 * @throws QueryError E2102, E3001, E2001, E2101
 */
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

/** As `callerAs`, of who asked before; null where that refuses: then the one way refuses it too, and records that. */
export function callerAgain(
  parts: Pick<DecidingParts, 'model' | 'revoked'>,
  identity: Identity,
  call: RequestCall,
): Caller | null {
  try {
    return callerAs(parts, identity, NOBODY_LISTENS, call);
  } catch (refusal) {
    if (refusal instanceof QueryError) return null;
    throw refusal;
  }
}

const NOBODY_LISTENS: CallerObserver = Object.freeze({ knows: () => undefined, says: () => undefined });

/** Refuses who comes by a token that was revoked. @throws QueryError E3001 */
export function requireNotRevoked({ revoked }: Pick<DecidingParts, 'revoked'>, identity: Identity): void {
  if (revoked.has(identity)) throw queryError('invalidToken', { reason: REVOKED });
}

/** Who was identified, under what is served now. @throws QueryError E3001, E2001, E2101 */
export function callerAs(
  parts: Pick<DecidingParts, 'model' | 'revoked'>,
  identity: Identity,
  ledger: CallerObserver,
  call: RequestCall,
): Caller {
  const model = parts.model();
  const { manifest, snapshot } = model;
  ledger.knows(identity, model);
  requireNotRevoked(parts, identity);
  if (snapshot === null) throw queryError('noSnapshot', {});
  const circumstances = circumstancesOf(call);
  const purpose = purposeOf(identity, snapshot, circumstances.purpose);
  if (purpose === null && circumstances.purpose !== null) throw queryError('purposeDenied', {});
  const caller = Object.freeze({
    identity,
    access: effectiveAccess(identity, snapshot, manifest.catalog, circumstances),
    model,
    manifest,
    snapshot,
    purpose,
    circumstances,
    until: accessUntil(identity, snapshot, circumstances),
  });
  ledger.says(saidOf(caller));
  return caller;
}

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
