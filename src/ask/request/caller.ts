import { QueryError, queryError } from 'osl-compiler';
import {
  accessUntil,
  type Circumstances,
  type EffectiveAccess,
  effectiveAccess,
  type Identity,
  type PolicySnapshot,
  purposeOf,
  REVOKED,
} from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { ServedModel } from '../../model/served-model.js';
import { circumstancesOf, type RequestCall } from './call.js';
import type { DecidingParts } from './parts.js';
import { certificateIdentity } from './session.js';

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
