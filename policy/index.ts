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
export { LIMIT_BUCKETS, type LimitBucket } from './buckets.js';
export {
  type CertificateRule,
  type ClientCertificate,
  readClientCertificate,
  ruleFor,
} from './certificate.js';
export { type Circumstances, type Emergency, NOWHERE } from './circumstances.js';
export { isExpired } from './claims.js';
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
export { createGuesses, type Guesses, type GuessOptions } from './guesses.js';
export type { Identity } from './identity.js';
export { readKeySet } from './key-set.js';
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
} from './keys.js';
export { type Lease, monotonicMs } from './leases.js';
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
} from './limit.js';
export { mintToken } from './mint.js';
export { type PolicyProblem, PolicyProblems } from './problems.js';

export { purposeOf } from './purpose.js';
export { type Charge, QuotaBook, type QuotaCount } from './quota-counts.js';
export { type Quota, type QuotaUnit, quotaOf, quotasOf } from './quotas.js';
export { type GrantReason, type Reasons, reasonsFor } from './reasons.js';

export {
  NOTHING_REVOKED,
  REVOKED,
  type Revocation,
  type RevocationCheck,
  type RevocationKey,
  type RevocationMade,
  RevokedTokens,
} from './revocation.js';

export { accountIdentity, type ServiceAccount } from './service-account.js';
export { roleIn, type SessionRights, sessionRights } from './session-rights.js';
export type { PolicySnapshot } from './snapshot.js';
export { type JsonTextFault, jsonTextFault } from './strict-json.js';
export { type HypotheticalCaller, supposedIdentity } from './supposed.js';
export { createVerifier, type TokenVerifier, type TrustedIssuer } from './token.js';
export {
  CLOCK_SKEW_SECONDS,
  DEFAULT_ISSUER,
  MAX_CHAIN,
  MAX_LIFETIME_SECONDS,
} from './token-fault.js';

export { UsedTokens } from './used-tokens.js';
export type { LimitResult } from './window.js';
