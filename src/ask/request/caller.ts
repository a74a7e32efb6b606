import { QueryError, queryError } from 'osl-compiler';
import {
  type EffectiveAccess,
  effectiveAccess,
  type Identity,
  type PolicySnapshot,
} from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Model } from '../../model/model.js';
import type { Credentials } from './call.js';
import type { DecidingParts } from './parts.js';

/** Who asks, what they may see, and under which versions: settled before anything is compiled. */
export interface Caller {
  readonly identity: Identity;
  readonly access: EffectiveAccess;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** Who is told who calls, and under which versions. */
interface Knowing {
  knows(identity: Identity, model: Model): void;
}

/** What an answer rests on. */
export interface Versions {
  readonly manifest: string;
  readonly policy: string;
}

/** What an answer to `caller` rests on. */
export function versionsOf({ manifest, snapshot }: Pick<Caller, 'manifest' | 'snapshot'>): Versions {
  return { manifest: manifest.version, policy: snapshot.version };
}

/**
 * Who calls, and with what access. No token, a bad token, no policy are told in this order.
 *
 * @throws QueryError E2102, E3001, E2001
 */
export function identify(
  parts: DecidingParts,
  credentials: Credentials,
  ledger: Knowing,
): Caller | Promise<Caller> {
  if (credentials.kind === 'session') return callerAs(parts, credentials.identity, ledger);
  if (credentials.token === null) throw queryError('missingToken', {});
  return parts.verifier.verify(credentials.token).then((identity) => callerAs(parts, identity, ledger));
}

/** As `callerAs`, of who asked before; null where that refuses: then the one way refuses it too, and records that. */
export function callerAgain(parts: Pick<DecidingParts, 'model'>, identity: Identity): Caller | null {
  try {
    return callerAs(parts, identity, NOBODY_LISTENS);
  } catch (refusal) {
    if (refusal instanceof QueryError) return null;
    throw refusal;
  }
}

const NOBODY_LISTENS: Knowing = Object.freeze({ knows: () => undefined });

/** Who was identified, under what is served now. @throws QueryError E2001 */
export function callerAs(parts: Pick<DecidingParts, 'model'>, identity: Identity, ledger: Knowing): Caller {
  const { manifest, snapshot } = parts.model();
  ledger.knows(identity, { manifest, snapshot });
  if (snapshot === null) throw queryError('noSnapshot', {});
  return Object.freeze({
    identity,
    access: effectiveAccess(identity, snapshot, manifest.catalog),
    manifest,
    snapshot,
  });
}
