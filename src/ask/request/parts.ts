import type { GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { Limiter, RevocationCheck, TokenVerifier } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { ServedModel } from '../../model/served-model.js';
import type { RequestCall } from './call.js';
import type { RequestObserver } from './meters.js';
import type { SealedValue } from './sealed.js';

/** What tells who calls, and whether it may call once more. */
export interface DecidingParts {
  readonly tenant: string;
  /** Read once per request, so that a reload never shows half of itself. */
  model(): ServedModel;
  readonly verifier: Pick<TokenVerifier, 'verify' | 'known'>;
  /** Asked of every caller, after its token was verified or its session went on. */
  readonly revoked: RevocationCheck;
  readonly strangers: StrangerCounts;
}

/** Which refusals of callers without a valid token are recorded, beyond the limit of their address. */
export interface StrangerCounts {
  /** Counts one refused call. Whether it is the first, and so to be recorded; the others are only counted. */
  isFirst(call: RequestCall, address: string): boolean;
}

/** What keeps the records of a request. */
export interface RecordingParts {
  readonly tenant: string;
  readonly audit: Pick<AuditLog, 'append' | 'appendForm' | 'fingerprint' | 'fingerprintOf' | 'form'>;
  /** Null where nobody is told of lineage. */
  readonly lineage: PlanNotes | null;
  readonly log: ServiceLog;
  readonly observing: RequestObserver;
}

/** Takes note of a plan that is about to run, for lineage; gives what the record refers to it by. */
export interface PlanNotes {
  note(plan: GovernedPlan, requestId: string): string | null;
}

/** Means to record and to count requests, which the one way alone uses. */
export interface RequestMeans {
  readonly recording: RecordingParts;
  readonly limiter: Pick<Limiter, 'take' | 'takeIfLeft' | 'takeAddress' | 'quotas' | 'guesses'>;
}

/** What every request goes through: see `respond`. */
export interface RequestParts extends DecidingParts, Pick<RecordingParts, 'log' | 'observing'> {
  readonly means: SealedValue<RequestMeans>;
}
