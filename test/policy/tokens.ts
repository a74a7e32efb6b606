import { createHmac, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import * as identities from '../../policy/identity.js';
import type { Identity, IdentityClaims } from '../../policy/index.js';

/** The tests' clock: seconds since the epoch. */
export const NOW = 1_800_000_000;
export const SECRET = Buffer.from('a tenant secret of more than thirty-two bytes');
export const OTHER_SECRET = Buffer.from('another tenant has another secret of its own');
export const RSA = generateKeyPairSync('rsa', { modulusLength: 2_048 });
export const OTHER_RSA = generateKeyPairSync('rsa', { modulusLength: 2_048 });
export const PUBLIC_PEM = RSA.publicKey.export({ type: 'spki', format: 'pem' }).toString();

export const HEADER = { alg: 'HS256', typ: 'service-actor+jwt' };

export const PAYLOAD = {
  version: 2,
  tenant_id: 'acme',
  chain: ['alice', 'agent-7'],
  sub: 'agent-7',
  roles: ['TENANT_ADMIN'],
  acl_roles: ['analyst'],
  iss: 'service',
  iat: NOW - 10,
  exp: NOW + 290,
  jti: 'token-1',
};

export type Signer = (input: string) => Buffer;

export const hmac =
  (secret: Uint8Array | string, hash = 'sha256'): Signer =>
  (input) =>
    createHmac(hash, secret).update(input).digest();

export const rsa =
  (key: KeyObject, hash = 'RSA-SHA256'): Signer =>
  (input) =>
    createSign(hash).update(input).sign(key);

/** A compact JWS over exactly these texts, whatever they hold. */
export function seal(header: string, payload: string, signer: Signer = hmac(SECRET)): string {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${signer(input).toString('base64url')}`;
}

export function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** A token with these claims changed; `undefined` leaves a claim out. */
export function claims(changes: Readonly<Record<string, unknown>>, signer?: Signer): string {
  return seal(JSON.stringify(HEADER), JSON.stringify({ ...PAYLOAD, ...changes }), signer);
}

/** A token with these header parameters changed. */
export function header(changes: Readonly<Record<string, unknown>>, signer?: Signer): string {
  return seal(JSON.stringify({ ...HEADER, ...changes }), JSON.stringify(PAYLOAD), signer);
}

/** Verification's own maker of identities. The build hides it from other rooms; it is there at run time. */
export const { mintIdentity } = identities as unknown as { mintIdentity(claims: IdentityClaims): Identity };

/** An identity as if verified. */
export function identity(changes: Partial<IdentityClaims> & { readonly chain: readonly string[] }): Identity {
  return mintIdentity({
    tenant: 'acme',
    subject: changes.chain.at(-1) ?? '',
    roles: [],
    aclRoles: [],
    issuedAt: NOW - 10,
    expiresAt: NOW + 290,
    tokenId: 'token-1',
    ...changes,
  });
}
