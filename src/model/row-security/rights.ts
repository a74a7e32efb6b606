import { createHmac } from 'node:crypto';
import {
  type EffectiveAccess,
  type IdentityClaims,
  type PolicySnapshot,
  type SessionRights,
  sessionRights,
} from '../../../policy/index.js';
import type { Manifest } from '../manifest/index.js';

/** Lifetime of signed rights, in ms; they are renewed after half of it. */
const RIGHTS_MS = 900_000;
const BLOCK_BYTES = 64;

/** Derives the key that signs rights for one connector. Its holder can impersonate any caller there, but only there. */
export function rightsKey(secret: Uint8Array, connector: string): Buffer {
  return createHmac('sha256', secret).update(`osl row security\0${connector}`).digest();
}

/** Returns the two pads of HMAC-SHA-256 for `key`, each one block long. */
export function padsOf(key: Uint8Array): { readonly inner: Buffer; readonly outer: Buffer } {
  const padded = Buffer.alloc(BLOCK_BYTES);
  padded.set(key);
  const pad = (byte: number): Buffer => Buffer.from(padded.map((b) => b ^ byte));
  return { inner: pad(0x36), outer: pad(0x5c) };
}

/** Signs `rights` for the statements of a caller. Returns the signature in hex, followed by the signed JSON text. */
export function signedRights(rights: SessionRights, version: string, key: Uint8Array, now: number): string {
  const chain = rights.chain.map((attributes) => Object.fromEntries(attributes));
  const body = JSON.stringify({
    version,
    roles: rights.roles,
    denying: rights.denyingRoles,
    chain,
    ends: Math.floor((now + RIGHTS_MS) / 1_000),
  });
  return createHmac('sha256', key).update(body).digest('hex') + body;
}

export interface RightsSource {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** A caller, and the inputs from which its rights are computed. */
interface RightsHolder extends RightsSource {
  readonly identity: IdentityClaims;
  readonly access: Pick<EffectiveAccess, 'metConditions' | 'signature' | 'readAttributes'>;
}

/** Signs callers' rights for one connector, and reuses each signature for half of its lifetime. */
export class RightsSigner {
  readonly #key: Uint8Array;
  /** Version of the row security policies that manifest and policy require in the database. */
  readonly version: (source: RightsSource) => string;
  readonly #signed = new WeakMap<IdentityClaims, SignedRights>();

  constructor(key: Uint8Array, version: (source: RightsSource) => string) {
    this.#key = key;
    this.version = version;
  }

  /** @param now time in ms since the epoch */
  rightsOf(holder: RightsHolder, now: number): string {
    const { identity, snapshot, access } = holder;
    const known = this.#signed.get(identity);
    if (
      known !== undefined &&
      known.snapshot === snapshot &&
      known.signature === access.signature &&
      known.read === access.readAttributes &&
      now < known.until
    )
      return known.text;
    const text = signedRights(
      sessionRights(identity, snapshot, access.metConditions, access.readAttributes),
      this.version(holder),
      this.#key,
      now,
    );
    const { signature, readAttributes: read } = access;
    this.#signed.set(identity, { snapshot, signature, read, text, until: now + RIGHTS_MS / 2 });
    return text;
  }
}

interface SignedRights {
  readonly snapshot: PolicySnapshot;
  readonly signature: string;
  readonly read: EffectiveAccess['readAttributes'];
  readonly text: string;
  readonly until: number;
}
