/** Authorization: token verification, policy snapshot, effective access, rate limits. */

export {
  accessUntil,
  attributesToReadFor,
  breakGlassLimitsOf,
  type EffectiveAccess,
  effectiveAccess,
  isEmpty,
  purposeOf,
  roleAccess,
} from './access.js';
export {
  ALL_APPROVED,
  type Approval,
  type ApprovalCheck,
  type ApprovalRule,
  Approvals,
  type FollowedApprovals,
  NOTHING_APPROVED,
} from './approvals.js';
export { attributesOf, comparedColumns, type ReadAttributes, type TableAttribute } from './attributes.js';
export { conditionsIn, withoutConditions } from './compile-conditions.js';
export { compileSnapshot, compileSnapshotInSteps } from './compile-snapshot.js';
export { type Circumstances, type Emergency, NO_CIRCUMSTANCES } from './conditions.js';
export type * from './document.js';
export { LIMIT_BUCKETS, type LimitBucket } from './document.js';
export {
  type ApprovedExchange,
  EXCHANGE_ISSUER,
  type ExchangeParts,
  type ExchangeRequest,
  exchange,
  type PresentedToken,
  withDirectTokens,
} from './exchange/exchange.js';
export type { IdentityIssuer } from './exchange/identity-token.js';
export { tokenIdIn } from './exchange/identity-token.js';
export { Identity, type IdentityClaims } from './identity.js';
export { type Lease, monotonicMs } from './limits/leases.js';
export {
  addressGroup,
  createLeasedLimiter,
  createLimitBooks,
  createLimiter,
  createPasswordGuesses,
  type GuessOptions,
  type LeasedLimiter,
  LIMIT_COUNTERS,
  type LimitCounter,
  type Limiter,
  type LimitShare,
  type PasswordGuesses,
  PER_ADDRESS,
} from './limits/limit.js';
export {
  type Charge,
  EntitySetBook,
  QuotaBook,
  type QuotaCount,
  type QuotaResult,
  type SetAddition,
  type SetResult,
} from './limits/quota-counts.js';
export {
  DEFAULT_LIMITS,
  ownersText,
  type Quota,
  type QuotaRule,
  type QuotaUnit,
  type QuotaUser,
  quotaOf,
  quotasOf,
  type RateLimits,
} from './limits/quotas.js';
export type { LimitResult } from './limits/window.js';
export { type PolicyProblem, PolicyProblems } from './problems.js';
export {
  type GrantReason,
  grantIndex,
  type HypotheticalCaller,
  hypotheticalClaims,
  type Reasons,
  reasonsFor,
} from './reasons.js';
export { accountIdentity, type ServiceAccount } from './service-account.js';
export { roleIn, type SessionRights, sessionRights } from './session-rights.js';
export type { PolicySnapshot, SubjectPolicy } from './snapshot.js';
export { subjectsOf, withReadAttributes } from './subjects.js';
export { accessForReading } from './table-attributes.js';
export {
  type CertificateRule,
  type ClientCertificate,
  readClientCertificate,
  ruleFor,
} from './tokens/certificate.js';
export { isExpired } from './tokens/claims.js';
export {
  configuredKeys,
  type KeySource,
  keyRing,
  keysFor,
  PUBLIC_ALGORITHMS,
  type PublicAlgorithm,
  pemKey,
  readKeySet,
  type TokenAlgorithm,
  type VerificationKey,
} from './tokens/keys.js';
export { mintToken } from './tokens/mint.js';
export {
  REVOKED,
  type Revocation,
  type RevocationCheck,
  type RevocationKey,
  type RevocationResult,
  RevokedTokens,
} from './tokens/revocation.js';
export { endOfString, type JsonTextFault, jsonTextFault } from './tokens/strict-json.js';
export { createVerifier, type TokenVerifier, type TrustedIssuer } from './tokens/token.js';
export {
  CLOCK_SKEW_SECONDS,
  DEFAULT_ISSUER,
  MAX_CHAIN,
  MAX_LIFETIME_SECONDS,
} from './tokens/token-fault.js';
export { UsedTokens } from './tokens/used-tokens.js';
