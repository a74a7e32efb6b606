/** Who may do what: token verification, policy snapshot, effective access, rate limits. */

export {
  accessUntil,
  type EffectiveAccess,
  effectiveAccess,
  isEmpty,
  mayBreakGlass,
  roleAccess,
} from './access.js';
export { addressGroup } from './address.js';
export { attributesOf } from './attributes.js';
export { type Circumstances, type Emergency, NOWHERE } from './circumstances.js';
export { compileSnapshot, compilingSnapshot } from './compile-snapshot.js';
export type * from './document.js';
export { withDirectTokens } from './exchange/direct.js';
export {
  type ApprovedExchange,
  EXCHANGE_ISSUER,
  type ExchangeParts,
  type ExchangeRequest,
  exchange,
  type GivenToken,
} from './exchange/exchange.js';
export type { IdentityIssuer } from './exchange/identity-token.js';
export { tokenIdIn } from './exchange/token-id.js';
export type { Identity } from './identity.js';
export { LIMIT_BUCKETS, type LimitBucket } from './limits/buckets.js';
export { createGuesses, type Guesses, type GuessOptions } from './limits/guesses.js';
export { type Lease, monotonicMs } from './limits/leases.js';
export {
  createLeasedLimiter,
  createLimitBooks,
  createLimiter,
  DEFAULT_LIMITS,
  type LeasedLimiter,
  LIMIT_COUNTERS,
  type LimitCounter,
  type Limiter,
  type LimitShare,
  PER_ADDRESS,
  type RateLimits,
} from './limits/limit.js';
export { type Charge, QuotaBook, type QuotaCount } from './limits/quota-counts.js';
export { type Quota, type QuotaUnit, quotaOf, quotasOf } from './limits/quotas.js';
export type { LimitResult } from './limits/window.js';
export { type PolicyProblem, PolicyProblems } from './problems.js';
export { purposeOf } from './purpose.js';
export { type GrantReason, type Reasons, reasonsFor } from './reasons.js';
export { accountIdentity, type ServiceAccount } from './service-account.js';
export { roleIn, type SessionRights, sessionRights } from './session-rights.js';
export type { PolicySnapshot } from './snapshot.js';
export { type HypotheticalCaller, supposedIdentity } from './supposed.js';
export {
  type CertificateRule,
  type ClientCertificate,
  readClientCertificate,
  ruleFor,
} from './tokens/certificate.js';
export { isExpired } from './tokens/claims.js';
export { readKeySet } from './tokens/key-set.js';
export {
  configuredKeys,
  type KeySource,
  keyRing,
  keysFor,
  PUBLIC_ALGORITHMS,
  type PublicAlgorithm,
  pemKey,
  type TokenAlgorithm,
  type VerificationKey,
} from './tokens/keys.js';
export { mintToken } from './tokens/mint.js';
export {
  NOTHING_REVOKED,
  REVOKED,
  type Revocation,
  type RevocationCheck,
  type RevocationKey,
  type RevocationMade,
  RevokedTokens,
} from './tokens/revocation.js';
export { type JsonTextFault, jsonTextFault } from './tokens/strict-json.js';
export { createVerifier, type TokenVerifier, type TrustedIssuer } from './tokens/token.js';
export {
  CLOCK_SKEW_SECONDS,
  DEFAULT_ISSUER,
  MAX_CHAIN,
  MAX_LIFETIME_SECONDS,
} from './tokens/token-fault.js';
export { UsedTokens } from './tokens/used-tokens.js';
