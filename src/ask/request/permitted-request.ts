import { randomUUID } from 'node:crypto';
import type { QueryError } from 'osl-compiler';
import type { AuditOutcome, AuditUnavailable } from '../../../policy/audit/index.js';
import type { Identity } from '../../../policy/index.js';
import { failureFields, metricCodeOf } from './ledger.js';
import { quotasFor } from './limit.js';
import type { RequestParts } from './parts.js';
import type { Permit } from './permit.js';

/** How the decision about a request stands. */
export type Recorded = 'waiting' | 'recorded' | AuditUnavailable;

/**
 * The one way (`respond`) for requests that a `Permit` speaks for, in the turn in which they come:
 *
 * limit → audit the decision → answer → audit the outcome
 *
 * Who calls and what they may see is what it was when the permit was made: whoever begins a request has seen to it that
 * the model and the caller are still those. One after the other; whoever began one goes on once it hears `onRecorded`.
 */
export class PermittedRequest {
  requestId = '';
  recorded: Recorded = 'waiting';
  readonly #parts: RequestParts;
  readonly #onRecorded: () => void;
  #permit: Permit | null = null;
  #statementHmac = '';
  #startedAt = 0;
  #recordedAt = 0;

  constructor(parts: RequestParts, onRecorded: () => void) {
    this.#parts = parts;
    this.#onRecorded = onRecorded;
  }

  /**
   * Lets a request in whose statement is the UTF-8 of bytes [start, end): counts it and hands its decision to the log,
   * under this id or a new one.
   * False where the limit, or lineage, has more to say about it: then nothing is counted or recorded.
   */
  begin(
    permit: Permit,
    identity: Identity,
    id: string | null,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): boolean {
    const { audit, lineage, limiter } = this.#parts;
    const requestId = id ?? randomUUID();
    const plan = permit.plan === null ? null : (lineage?.note(permit.plan, requestId) ?? null);
    if (plan !== (permit.outcome.plan ?? null)) return false;
    const quotas = quotasFor(permit.caller, 'query');
    if (quotas.length > 0 && !limiter.quotas.mayTake(quotas)) return false;
    if (!limiter.takeIfLeft('query', identity)) return false;
    if (quotas.length > 0) limiter.quotas.charge(quotas, 'requests', 1);
    this.requestId = requestId;
    this.recorded = 'waiting';
    this.#permit = permit;
    this.#startedAt = performance.now();
    this.#statementHmac = audit.fingerprintOf(bytes, start, end);
    audit.appendForm(permit.decision, requestId, this.#statementHmac, null, null, this.#hear);
    return true;
  }

  /** Records that it was answered with `rows` rows of so many bytes, and counts them. */
  answered(rows: number, bytes: number): void {
    const permit = this.#permit;
    if (permit === null) return;
    const { requestId } = this;
    const us = this.#observe(permit, 'ok', rows, null);
    const quotas = quotasFor(permit.caller, 'query');
    if (quotas.length > 0) {
      const counts = this.#parts.limiter.quotas;
      counts.charge(quotas, 'rows', rows);
      counts.charge(quotas, 'bytes', bytes);
      counts.charge(quotas, 'ms', Math.ceil(us / 1_000));
    }
    this.#parts.audit.appendForm(permit.ok, requestId, this.#statementHmac, rows, us, (failure) =>
      this.#reportLost(failure, requestId),
    );
  }

  /** Records how it ended otherwise. Of one whose decision is not in the log, nothing. */
  ended(outcome: AuditOutcome, rows: number, error: QueryError | null): void {
    if (this.#permit === null || this.recorded !== 'recorded') return;
    const { requestId } = this;
    const code = error === null ? null : metricCodeOf(error);
    const us = this.#observe(this.#permit, outcome, rows, code);
    const entry = {
      ...this.#permit.outcome,
      request_id: requestId,
      statement_hmac: this.#statementHmac,
      outcome,
      rows,
      duration_us: us,
      ...(error !== null && failureFields(error)),
    };
    this.#parts.audit.append(entry, (failure) => this.#reportLost(failure, requestId));
  }

  readonly #hear = (failure: AuditUnavailable | null): void => {
    this.#recordedAt = performance.now();
    this.recorded = failure ?? 'recorded';
    this.#onRecorded();
  };

  /** Counts how it ended, and tells of it where more is wanted; how long it took, in µs. */
  #observe(permit: Permit, outcome: AuditOutcome, rows: number, code: string | null): number {
    const { meter } = permit;
    const { observing } = this.#parts;
    const total = 1_000 * (performance.now() - this.#startedAt);
    const record = 1_000 * (this.#recordedAt - this.#startedAt);
    meter.addFast(record, total);
    meter.count(outcome);
    if (code !== null) observing.meters.countCode(code);
    if (observing.wants(total)) this.#tell(permit, outcome, rows, code, total, record);
    return Math.round(total);
  }

  #tell(
    { outcome: entry, fingerprint }: Permit,
    outcome: AuditOutcome,
    rows: number,
    code: string | null,
    total: number,
    record: number,
  ): void {
    this.#parts.observing.tell({
      requestId: this.requestId,
      surface: entry.surface,
      action: entry.action,
      form: entry.form ?? null,
      objects: entry.objects ?? [],
      decision: 'allow',
      outcome,
      code,
      rows,
      fingerprint: () => fingerprint,
      stages: new Map([
        ['record', record],
        ['answer', total],
        ['total', total],
      ]),
      traceparent: null,
    });
  }

  #reportLost(failure: AuditUnavailable | null, requestId: string): void {
    if (failure !== null) this.#parts.log.error('audit outcome lost', { request_id: requestId });
  }
}
