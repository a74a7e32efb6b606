import { queryError } from 'osl-compiler/errors';

export const MAX_TOKEN_BYTES = 8_192;
export const MAX_CHAIN = 16;
export const MAX_ROLES = 256;
/** Maximum length of a subject, role, token id, issuer or audience in UTF-16 code units. */
const MAX_NAME_LENGTH = 256;
export const MAX_LIFETIME_SECONDS = 300;
export const CLOCK_SKEW_SECONDS = 30;
export const TOKEN_TYPE = 'service-actor+jwt';
export const TOKEN_VERSION = 2;
export const DEFAULT_ISSUER = 'service';

/** The reasons for refusing a token. They name the rule and contain nothing from the token. */
export const TOKEN_FAULTS = Object.freeze({
  size: `it is larger than ${MAX_TOKEN_BYTES} bytes`,
  parts:
    'it is not a JWT (header.payload.signature, each in base64url); HTTP carries it in one header, `Authorization: Bearer <token>`',
  header: 'its header is not a JSON object in UTF-8',
  payload: 'its payload is not a JSON object in UTF-8',
  duplicateKey: 'it names a JSON key twice',
  type: `header \`typ\` must be \`${TOKEN_TYPE}\``,
  algorithm: 'header `alg` must be HS256, RS256, ES256 or EdDSA',
  headerParameter: 'its header has a parameter that is not accepted',
  keyId: 'header `kid` does not have the form of a key id',
  otherAlgorithm: 'header `alg` names an algorithm that no key here signs with',
  unknownKey: 'no key is configured for its `kid` and `alg`',
  signature: 'its signature does not verify',
  version: `claim \`version\` must be the number ${TOKEN_VERSION}`,
  tenant: 'claim `tenant_id` is not this tenant',
  chain: `claim \`chain\` must hold 1 to ${MAX_CHAIN} distinct names`,
  subject: 'claim `sub` must be the last element of `chain`',
  roles: `claim \`roles\` must be an array of at most ${MAX_ROLES} names`,
  aclRoles: `claim \`acl_roles\` must be an array of at most ${MAX_ROLES} names`,
  tokenId: 'claim `jti` must be a name',
  issuedAt: 'claim `iat` must be a whole number of seconds',
  expiry: 'claim `exp` must be a whole number of seconds',
  notBeforeForm: 'claim `nbf` must be a whole number of seconds',
  order: 'claim `exp` must be later than `iat`',
  lifetime: `it lives longer than ${MAX_LIFETIME_SECONDS} s`,
  exchange: 'claim `exchange` must hold an entry for each of `chain`',
  issuer: 'claim `iss` is not the issuer that this service trusts',
  audience: 'claim `aud` does not name this service',
  expired: 'it has expired',
  notYet: 'it is not valid yet',
});

export type TokenFault = keyof typeof TOKEN_FAULTS;

/** Refuses a token with an algorithm that none of its issuer's keys uses. */
export function refuseAlgorithm(accepted: readonly string[]): never {
  throw queryError('invalidToken', {
    reason: `${TOKEN_FAULTS.otherAlgorithm}; accepted here: ${accepted.join(', ') || 'none'}`,
  });
}

/** Refuses a token, always with E3001. A refused token never falls back to anonymous access. */
export function refuse(fault: TokenFault): never {
  throw queryError('invalidToken', { reason: TOKEN_FAULTS[fault] });
}

/** Control characters and lone surrogates: names with them could look the same in logs and databases. */
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u;

/** True for a valid name of a tenant, subject, role or token: 1–256 UTF-16 code units. */
export function isName(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME_LENGTH && !FORBIDDEN.test(value)
  );
}
