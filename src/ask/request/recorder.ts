import { type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import type {
  AppendDone,
  AuditDecision,
  AuditEntry,
  AuditOutcome,
  AuditUnavailable,
  ReceiptDigests,
  RecordTemplate,
} from '../../../audit/index.js';
import type { Caller } from './caller.js';
import type { EndedRequest, Meter, StageTimes } from './meters.js';
import type { RecordingParts } from './parts.js';
import { type ForeignFault, verdictOf } from './public-error.js';
import type { RedactedStatement } from './redacted-statement.js';

/**
 * Templates for audit records, made from an authorized request. They are used for later requests by the same caller,
 * under the same versions, whose plans differ only in values. A permit does not authorize anything.
 */
export interface Permit {
  readonly caller: Caller;
  readonly plan: GovernedPlan | null;
  /** The encoded decision record without the fields that differ between requests. */
  readonly decision: RecordTemplate;
  /** The encoded record of a successful outcome without the fields that differ between requests. */
  readonly ok: RecordTemplate;
  readonly outcome: AuditEntry;
  readonly meter: Meter;
  /** The redacted statement, for operators; null if the request has no text. */
  readonly statement: RedactedStatement | null;
}

/** Labels of a request in the operator's log and traces. */
export type RequestLabels = Pick<
  EndedRequest,
  'requestId' | 'surface' | 'action' | 'form' | 'objects' | 'traceparent' | 'statement' | 'stages'
>;

/** The standby that answered a request. */
export interface AnsweringStandby {
  readonly name: string;
  /** Time in ms since the epoch; the answer includes everything committed before it. */
  readonly asOf: number;
}

export interface RequestEnd {
  readonly outcome: AuditOutcome;
  readonly rows: number;
  readonly error: QueryError | ForeignFault | null;
  /** Details as JSON; null if there are none. */
  readonly detail: string | null;
  /** The standby that answered; null for the primary. */
  readonly standby: AnsweringStandby | null;
}

/**
 * The only code that writes decisions and outcomes to the audit log, metrics, slow query log and traces. Used only by
 * `respond.ts` and `permitted-request.ts`.
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

  /** Appends a decision from the template in `permit`, without allocating a promise. */
  decisionUnder(permit: Permit, requestId: string, statementHmac: string, done: AppendDone): void {
    this.#parts.audit.appendForm(permit.decision, requestId, statementHmac, null, null, done);
  }

  /**
   * Appends an outcome. While the disk fails, the log keeps outcomes in memory to write them later, and refuses all
   * other records. A lost outcome is reported in the operator's log.
   */
  outcome(common: AuditEntry, end: RequestEnd, us: number): void {
    this.#parts.audit.append(outcomeOf(common, end, us), this.#lossHandler(common.request_id));
  }

  /**
   * Appends an outcome from which a receipt is made. Returns the proof that the outcome is in the log.
   *
   * @throws AuditUnavailable
   */
  async provenOutcome(
    common: AuditEntry,
    end: RequestEnd,
    us: number,
    receipt: ReceiptDigests,
  ): Promise<string> {
    const { audit, log } = this.#parts;
    // The proof contains the record as it was encoded, so its time must be known.
    const entry = { ...outcomeOf(common, end, us), receipt, ts: new Date().toISOString() };
    return audit.appendProven(entry).catch((failure: AuditUnavailable) => {
      log.error('no receipt: the audit log could not prove its record', { request_id: common.request_id });
      throw failure;
    });
  }

  outcomeUnder(
    permit: Permit,
    requestId: string,
    statementHmac: string,
    rows: number,
    us: number,
    standby: AnsweringStandby | null,
  ): void {
    const standbyRecord = standby === null ? undefined : standbyFields(standby);
    const onLoss = this.#lossHandler(requestId);
    this.#parts.audit.appendForm(permit.ok, requestId, statementHmac, rows, us, onLoss, standbyRecord);
  }

  /** Updates metrics, slow query log and traces. @param end null if the request was refused @returns duration in µs */
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
    if (observing.needsReport(total))
      observing.report({
        ...subject.labels(),
        decision,
        outcome: end?.outcome ?? null,
        code,
        rows: end?.rows ?? 0,
      });
    return Math.round(total);
  }

  #lossHandler(requestId: string): AppendDone {
    return (failure) => {
      if (failure !== null) this.#parts.log.error('audit outcome lost', { request_id: requestId });
    };
  }
}

function outcomeOf(
  common: AuditEntry,
  { outcome, rows, error, detail, standby }: RequestEnd,
  us: number,
): AuditEntry {
  return {
    ...common,
    outcome,
    rows,
    duration_us: us,
    ...(error !== null && failureFields(error)),
    ...(detail !== null && { detail }),
    ...(standby !== null && { standby: standbyFields(standby) }),
  };
}

function standbyFields({ name, asOf }: AnsweringStandby): NonNullable<AuditEntry['standby']> {
  return { as_of: new Date(asOf).toISOString(), name };
}

/**
 * Returns the fields that an error adds to an outcome record. If the caller lost a right during the request, the
 * outcome is a denial, so that a search for denials finds it.
 */
function failureFields(error: QueryError | ForeignFault): Pick<AuditEntry, 'decision' | 'code'> {
  const { decision, code } = verdictOf(error);
  return decision === 'deny' ? { decision, code } : { code };
}

/**
 * Returns the code that labels an error in metrics. SQLSTATEs are mapped to error-catalogue codes, to keep the number
 * of labels small.
 */
function metricCodeOf(error: QueryError | ForeignFault): string {
  if (error instanceof QueryError) return error.code;
  const { code } = error;
  if (/^E\d{4}$/.test(code)) return code;
  return (code === CANCELLED ? queryError('cancelled', {}) : queryError('execution', { sqlstate: code }))
    .code;
}

const CANCELLED = '57014';
