import type { AuditLog } from '../../audit/index.js';
import type { Limiter, TokenVerifier } from '../../policy/index.js';
import type { PublishingParts } from '../ask/authoring/author.js';
import type { AnswerParts } from '../ask/index.js';
import type { TokenExchange } from '../ask/request/exchange.js';
import type { RequestMeans } from '../ask/request/parts.js';
import type { Probes, Strangers } from '../ask/request/probes.js';
import { SealedValue } from '../ask/request/sealed.js';
import type { AccessRequestParts } from '../ask/why/request-access.js';
import type { SpoolRoom } from '../engine/index.js';
import type { KeptPolicy, PartsReached } from '../model/served-model.js';
import type { Lineage } from './lineage/index.js';
import type { Revocations } from './revocations.js';
import type { SystemReads } from './system-reads.js';
import type { TokenTrust } from './token-trust.js';

/** A service that is open, put together once at start: what answers, publishes, and tells of itself. */
export interface Service
  extends AnswerParts,
    PublishingParts,
    AccessRequestParts,
    Pick<SystemReads, 'readCatalog' | 'readRollupStates'> {
  /** Null while the policy that serves, if any does, is the newest. */
  keptPolicy(): KeptPolicy | null;
  /** The fault of the newest policy, for operators: it names files. Null while that one serves. */
  policyFault(): string | null;
  readonly probes: Probes;
  /** The activation of the policy that serves, by the control database; null where each gateway has its own. */
  activation(): number | null;
  reached(): PartsReached;
  /** Whether the server as a whole takes requests. */
  steady(): boolean;
  /** Takes no new sessions, and is not ready, or does and is again. */
  drain(on: boolean): void;
  draining(): boolean;
  readonly revocations: Revocations;
  readonly strangers: Strangers;
  readonly audit: Pick<AuditLog, 'stats'>;
  readonly verifier: TokenVerifier;
  readonly exchange: TokenExchange;
  /** What issuers call this service. */
  readonly resources: () => readonly string[];
  /** Issuers of identity tokens, and as which client people log in with each. */
  readonly logins: TokenTrust['logins'];
  readonly lineage: Lineage | null;
  /** Null where slow readers keep their sessions. */
  readonly spool: SpoolRoom | null;
}

/** Part of a copy of a service that counts requests against other limits, for tests of a policy. */
export function limitedBy(means: RequestMeans, limiter: Limiter): Pick<Service, 'means'> {
  return { means: new SealedValue({ ...means, limiter }) };
}
