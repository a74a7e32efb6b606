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

/** An open service, assembled once at start. */
export interface Service
  extends AnswerParts,
    PublishingParts,
    AccessRequestParts,
    Pick<SystemReads, 'readCatalog' | 'readRollupStates'> {
  /** Null while the newest policy is in force, or none. */
  keptPolicy(): KeptPolicy | null;
  /** Fault in the newest policy, for operators: it names files. Null if it is in force. */
  policyFault(): string | null;
  readonly probes: Probes;
  /** Activation number in the control database; null if the gateway has its own policy. */
  activation(): number | null;
  reached(): PartsReached;
  /** True if the server accepts requests. */
  steady(): boolean;
  /** Stops or resumes accepting sessions and being ready. */
  drain(on: boolean): void;
  draining(): boolean;
  readonly revocations: Revocations;
  readonly strangers: Strangers;
  readonly audit: Pick<AuditLog, 'stats'>;
  readonly verifier: TokenVerifier;
  readonly exchange: TokenExchange;
  /** Audiences by which issuers call this service. */
  readonly resources: () => readonly string[];
  /** Issuers of identity tokens, and the OAuth client to log in with. */
  readonly logins: TokenTrust['logins'];
  readonly lineage: Lineage | null;
  /** Null if spooling is off. */
  readonly spool: SpoolRoom | null;
}

/** Replaces the rate limiter of a service, for policy tests. */
export function limitedBy(means: RequestMeans, limiter: Limiter): Pick<Service, 'means'> {
  return { means: new SealedValue({ ...means, limiter }) };
}
