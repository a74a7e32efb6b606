/** Who may do what: token verification, policy snapshot, effective access, rate limits. */

export {
  accessUntil,
  attributeValues,
  type EffectiveAccess,
  effectiveAccess,
  isEmpty,
  mayBreakGlass,
  roleAccess,
} from './access.js';
export { addressGroup } from './address.js';
export { type AttributeValue, attributesOf } from './attributes.js';
export { LIMIT_BUCKETS, type LimitBucket } from './buckets.js';
export {
  type CertificateRule,
  type ClientCertificate,
  readClientCertificate,
  ruleFor,
} from './certificate.js';
export { type Circumstances, type Emergency, NOWHERE } from './circumstances.js';
export { type ClaimRules, type Claims, checkTime, isExpired, readClaims, type Validity } from './claims.js';
export { compileSnapshot, compilingSnapshot } from './compile-snapshot.js';
export type * from './document.js';
export { withDirectTokens } from './exchange/direct.js';
export {
  EXCHANGE_ISSUER,
  type ExchangeParts,
  type ExchangeRequest,
  type Exchanging,
  exchange,
  type GivenToken,
} from './exchange/exchange.js';
export type { IdentityIssuer } from './exchange/identity-token.js';
export { tokenIdIn } from './exchange/token-id.js';
export { createGuesses, type Guesses, type GuessOptions } from './guesses.js';
export type { Identity } from './identity.js';
export { readKeySet } from './key-set.js';
export {
  configuredKeys,
  isKeyId,
  type KeyConfiguration,
  type KeyRing,
  type KeySource,
  keyRing,
  keysFor,
  PUBLIC_ALGORITHMS,
  type PublicAlgorithm,
  pemKey,
  type TokenAlgorithm,
  type VerificationKey,
} from './keys.js';
export { type Lease, LeaseBook, LeasedCounter, monotonicMs } from './leases.js';
export {
  createLeasedLimiter,
  createLimitBooks,
  createLimiter,
  DEFAULT_LIMITS,
  type LeasedLimiter,
  LIMIT_COUNTERS,
  type LimitCounter,
  type Limiter,
  type LimiterOptions,
  type LimitShare,
  type Limits,
  type OwnLimiter,
  PER_ADDRESS,
} from './limit.js';
export { type MintClaims, mintToken, type SigningKey } from './mint.js';
export { type DocumentPath, type PolicyProblem, PolicyProblems, PROBLEM_CODES } from './problems.js';

export { PURPOSE_CLAIM, purposeOf } from './purpose.js';
export { type Charge, type Count, createQuotas, QuotaBook, type Quotas } from './quota-counts.js';
export { type Quota, type QuotaRule, type QuotaUnit, quotaOf, quotasOf } from './quotas.js';
export { type DenyReason, type GrantReason, type Reasons, type RoleReason, reasonsFor } from './reasons.js';

export {
  NOTHING_REVOKED,
  REVOKED,
  type Revocation,
  type RevocationMade,
  type Revoked,
  RevokedTokens,
  type Revoking,
} from './revocation.js';

export { accountIdentity, type ServiceAccount } from './service-account.js';
export { type RightsValue, roleIn, type SessionRights, sessionRights } from './session-rights.js';
export type {
  Denied,
  PolicyGrant,
  PolicySnapshot,
  RolePolicy,
  SubjectPolicy,
} from './snapshot.js';
export { type JsonTextFault, jsonTextFault } from './strict-json.js';
export { type Supposed, supposedIdentity } from './supposed.js';
export { createVerifier, type TokenVerifier, type TrustedIssuer, type VerifierOptions } from './token.js';
export {
  CLOCK_SKEW_SECONDS,
  DEFAULT_ISSUER,
  MAX_CHAIN,
  MAX_LIFETIME_SECONDS,
  MAX_TOKEN_BYTES,
  TOKEN_FAULTS,
  TOKEN_TYPE,
  TOKEN_VERSION,
  type TokenFault,
} from './token-fault.js';

export { UsedTokens } from './used-tokens.js';
export type { Limited } from './window.js';
