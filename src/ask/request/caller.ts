import { queryError } from 'osl-compiler';
import {
  type EffectiveAccess,
  effectiveAccess,
  type Identity,
  type PolicySnapshot,
} from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Credentials } from './call.js';
import type { Ledger } from './ledger.js';
import type { DecidingParts } from './parts.js';

/** Who asks, what they may see, and under which versions: settled before anything is compiled. */
export interface Caller {
  readonly identity: Identity;
  readonly access: EffectiveAccess;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
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
  ledger: Pick<Ledger, 'knows'>,
): Caller | Promise<Caller> {
  if (credentials.kind === 'session') return callerAs(parts, credentials.identity, ledger);
  if (credentials.token === null) throw queryError('missingToken', {});
  return parts.verifier.verify(credentials.token).then((identity) => callerAs(parts, identity, ledger));
}

/** Who was identified, under what is served now. @throws QueryError E2001 */
export function callerAs(
  parts: Pick<DecidingParts, 'model'>,
  identity: Identity,
  ledger: Pick<Ledger, 'knows'>,
): Caller {
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
