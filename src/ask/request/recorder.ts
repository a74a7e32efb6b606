import { type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import type {
  AppendDone,
  AuditDecision,
  AuditEntry,
  AuditOutcome,
  RecordForm,
} from '../../../audit/index.js';
import type { Caller } from './caller.js';
import type { EndedRequest, Meter, StageTimes } from './meters.js';
import type { RecordingParts } from './parts.js';
import { type ForeignFault, verdictOf } from './told.js';

/**
 * Record templates of an authorized request, for later ones like it: of the same caller, under the same versions, with
 * the same plan except for its values. They determine the contents of records; they authorize nobody.
 */
export interface Permit {
  readonly caller: Caller;
  /** Plan for lineage; null if lineage is off. */
  readonly plan: GovernedPlan | null;
  /** Record of the decision, encoded but for what differs between requests. */
  readonly decision: RecordForm;
  /** Record of an outcome that went well, encoded likewise. */
  readonly ok: RecordForm;
  /** Fields that any other outcome has in common. */
  readonly outcome: AuditEntry;
  readonly meter: Meter;
  /** Fingerprint of the statement's shape; null if nothing was asked that has one. */
  readonly fingerprint: string | null;
}

/** Request as the operator's log and traces name it. */
export type RequestLabels = Pick<
  EndedRequest,
  'requestId' | 'surface' | 'action' | 'form' | 'objects' | 'traceparent' | 'fingerprint' | 'stages'
>;

/** End of an allowed request. */
export interface RequestEnd {
  readonly outcome: AuditOutcome;
  readonly rows: number;
  /** Error that its caller got; null if it went well. */
  readonly error: QueryError | ForeignFault | null;
}

/**
 * Writer of the decision and the outcome of every request: to the audit log, and to the operator's figures, log and
 * traces. Used by the one way (`respond.ts`) and by requests under its permits alone.
 */
export class Recorder {
  readonly #parts: RecordingParts;

  constructor(parts: RecordingParts) {
    this.#parts = parts;
  }

  /** Appends a decision; resolves once it is durable. @throws AuditUnavailable */
  async decision(entry: AuditEntry): Promise<void> {
    await this.#parts.audit.append(entry);
  }

  /** Appends the decision to let in a request under `permit`; `done` hears of it without a promise. */
  decisionUnder(permit: Permit, requestId: string, statementHmac: string, done: AppendDone): void {
    this.#parts.audit.appendForm(permit.decision, requestId, statementHmac, null, null, done);
  }

  /** Appends an outcome, whose other fields are `common`. If the disk fails the log keeps it, and refuses all else. */
  outcome(common: AuditEntry, { outcome, rows, error }: RequestEnd, us: number, detail: string | null): void {
    const entry = {
      ...common,
      outcome,
      rows,
      duration_us: us,
      ...(error !== null && failureFields(error)),
      ...(detail !== null && { detail }),
    };
    this.#parts.audit.append(entry, this.#lossOf(common.request_id));
  }

  /** Appends the outcome of a request under `permit` that went well. */
  outcomeUnder(permit: Permit, requestId: string, statementHmac: string, rows: number, us: number): void {
    this.#parts.audit.appendForm(permit.ok, requestId, statementHmac, rows, us, this.#lossOf(requestId));
  }

  /**
   * Counts the end of a request, and tells the operator of one that is slow or traced. Gives its duration in µs.
   *
   * @param end null if it was refused
   */
  observe(
    subject: { labels(): RequestLabels },
    meter: Meter,
    times: StageTimes,
    decision: AuditDecision,
    end: Pick<RequestEnd, 'outcome' | 'rows'> | null,
    error: QueryError | ForeignFault | null,
  ): number {
    const { observing } = this.#parts;
    const total = times.get('total') ?? 0;
    const code = error === null ? null : metricCodeOf(error);
    meter.add(times);
    meter.count(end?.outcome ?? 'none');
    if (code !== null) observing.meters.countCode(code);
    if (observing.wants(total))
      observing.tell({
        ...subject.labels(),
        decision,
        outcome: end?.outcome ?? null,
        code,
        rows: end?.rows ?? 0,
      });
    return Math.round(total);
  }

  #lossOf(requestId: string): AppendDone {
    return (failure) => {
      if (failure !== null) this.#parts.log.error('audit outcome lost', { request_id: requestId });
    };
  }
}

/** Only a right that was lost on the way is a decision: `deny`, so that a search for denials finds it. */
function failureFields(error: QueryError | ForeignFault): Pick<AuditEntry, 'decision' | 'code'> {
  const { decision, code } = verdictOf(error);
  return decision === 'deny' ? { decision, code } : { code };
}

/** Code of the catalogue under which metrics count `error`: of SQLSTATEs there are too many for labels. */
function metricCodeOf(error: QueryError | ForeignFault): string {
  if (error instanceof QueryError) return error.code;
  const { code } = error;
  if (/^E\d{4}$/.test(code)) return code;
  return (code === CANCELLED ? queryError('cancelled', {}) : queryError('execution', { sqlstate: code }))
    .code;
}

const CANCELLED = '57014';
