import type { GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { Limiter, RevocationCheck, TokenVerifier } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { ServedModel } from '../../model/served-model.js';
import type { RequestCall } from './call.js';
import type { RequestObserver } from './meters.js';
import type { SealedValue } from './sealed.js';

/** Dependencies of authenticating a caller. */
export interface DecidingParts {
  readonly tenant: string;
  /** Read once per request, so that a reload never shows half of itself. */
  model(): ServedModel;
  readonly verifier: Pick<TokenVerifier, 'verify' | 'known'>;
  /** Checked for every caller, after its token was verified and whenever its session continues. */
  readonly revoked: RevocationCheck;
  readonly strangers: StrangerCounts;
}

/** Limits how many refusals of callers without a valid token are recorded, for addresses beyond their rate limit. */
export interface StrangerCounts {
  /** Counts one refused call. True if it is the first, which is to be recorded; others are only counted. */
  isFirst(call: RequestCall, address: string): boolean;
}

/** Dependencies of recording requests. */
export interface RecordingParts {
  readonly tenant: string;
  readonly audit: Pick<AuditLog, 'append' | 'appendForm' | 'fingerprint' | 'fingerprintOf' | 'form'>;
  /** Null if lineage is off. */
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

/** Dependencies of every request: see `respond`. */
export interface RequestParts extends DecidingParts, Pick<RecordingParts, 'log' | 'observing'> {
  readonly means: SealedValue<RequestMeans>;
}
