import type { GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { ApprovalCheck, Limiter, RevocationCheck, TokenVerifier } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { ServedModel } from '../../model/served-model.js';
import type { RequestCall } from './call.js';
import type { TableAttributeReader } from './caller.js';
import type { RequestObserver } from './meters.js';
import type { SealedValue } from './sealed.js';

/** Dependencies for authenticating callers. */
export interface DecidingParts {
  readonly tenant: string;
  /** Returns the served model. Called once per request, so that each request sees one consistent model. */
  model(): ServedModel;
  readonly verifier: Pick<TokenVerifier, 'verify' | 'cached'>;
  /** Revocations, which are checked for every request. */
  readonly revoked: RevocationCheck;
  /** Approvals in force, which are checked for every request. */
  readonly approvals: ApprovalCheck;
  readonly refusals: FirstRefusals;
  readonly tableAttributes: TableAttributeReader;
}

/** Limits how many refused unauthenticated calls are recorded. */
export interface FirstRefusals {
  /** Counts a refused call. Returns true for the first in a window, which must be recorded. */
  isFirst(call: RequestCall, address: string): boolean;
}

/** Dependencies for recording requests. */
export interface RecordingParts {
  readonly tenant: string;
  readonly audit: Pick<
    AuditLog,
    'append' | 'appendForm' | 'fingerprint' | 'fingerprintOf' | 'form' | 'appendProven'
  >;
  readonly lineage: PlanNotes | null;
  readonly log: ServiceLog;
  readonly observing: RequestObserver;
}

/** Registers plans for lineage. Returns the reference for the audit record; null if that failed. */
export interface PlanNotes {
  note(plan: GovernedPlan, requestId: string): string | null;
}

/** The audit log and rate limits; used only through `respond`. */
export interface RequestControls {
  readonly recording: RecordingParts;
  readonly limiter: Pick<Limiter, 'take' | 'takeIfLeft' | 'takeAddress' | 'quotas' | 'entities' | 'guesses'>;
}

/** Dependencies of every request. */
export interface RequestParts extends DecidingParts, Pick<RecordingParts, 'log' | 'observing'> {
  readonly controls: SealedValue<RequestControls>;
}
