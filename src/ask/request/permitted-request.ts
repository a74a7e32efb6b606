import { randomUUID } from 'node:crypto';
import { InternalError, type QueryError } from 'osl-compiler';
import type { AuditOutcome, AuditUnavailable } from '../../../audit/index.js';
import type { Identity } from '../../../policy/index.js';
import { chargeAnswer, takeSynchronously } from './limit.js';
import { StageTimes } from './meters.js';
import type { RequestControls } from './parts.js';
import {
  type AnsweringStandby,
  type Permit,
  Recorder,
  type RequestEnd,
  type RequestLabels,
} from './recorder.js';

/** The state of the decision record: pending, durable or failed. */
export type DecisionState = 'waiting' | 'recorded' | AuditUnavailable;

interface PermittedEnd extends Omit<RequestEnd, 'detail'> {
  readonly error: QueryError | null;
}

/**
 * Fast path of `respond` for requests under a `Permit`, synchronous up to the answer: rate limit → record the decision
 * → answer → record the outcome. The calling code must have checked that the permit's model and caller are current. An
 * instance handles one request at a time; `onRecorded` is called when its decision record is durable or has failed.
 */
export class PermittedRequest {
  requestId = '';
  recorded: DecisionState = 'waiting';
  readonly #controls: RequestControls;
  readonly #recorder: Recorder;
  readonly #times = new StageTimes();
  readonly #onRecorded: () => void;
  #permit: Permit | null = null;
  #statementHmac = '';
  #startedAt = 0;

  constructor(controls: RequestControls, onRecorded: () => void) {
    this.#controls = controls;
    this.#recorder = new Recorder(controls.recording);
    this.#onRecorded = onRecorded;
  }

  /**
   * Counts a request and hands its decision to the log, using the given id or a new one. The statement is the UTF-8
   * text in bytes [start, end). Returns false, without counting the request, if it would have to wait for a limit or if
   * lineage needs the full path.
   */
  begin(
    permit: Permit,
    identity: Identity,
    id: string | null,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): boolean {
    const {
      recording: { audit, lineage },
      limiter,
    } = this.#controls;
    const requestId = id ?? randomUUID();
    const plan = permit.plan === null ? null : (lineage?.note(permit.plan, requestId) ?? null);
    if (plan !== (permit.outcome.plan ?? null)) return false;
    if (!takeSynchronously(limiter, permit.caller, 'query', identity)) return false;
    this.requestId = requestId;
    this.recorded = 'waiting';
    this.#permit = permit;
    this.#startedAt = performance.now();
    this.#statementHmac = audit.fingerprintOf(bytes, start, end);
    this.#recorder.decisionUnder(permit, requestId, this.#statementHmac, this.#onDecision);
    return true;
  }

  recordAnswer(rows: number, bytes: number, standby: AnsweringStandby | null): void {
    const permit = this.#permit;
    if (permit === null) return;
    const us = this.#observe(permit, 'ok', rows, null);
    chargeAnswer(this.#controls.limiter, permit.caller, 'query', { rows, bytes, ms: us / 1_000 });
    this.#recorder.outcomeUnder(permit, this.requestId, this.#statementHmac, rows, us, standby);
  }

  /** Like `recordOutcome`, for a statement that only the fast path has run: also charges its time. */
  recordFailure(end: PermittedEnd): void {
    const permit = this.#permit;
    const ms = performance.now() - this.#startedAt;
    if (permit !== null)
      chargeAnswer(this.#controls.limiter, permit.caller, 'query', { rows: 0, bytes: 0, ms });
    this.recordOutcome(end);
  }

  /** Records an outcome other than a complete answer, provided that the decision is in the log. */
  recordOutcome(end: PermittedEnd): void {
    const permit = this.#permit;
    if (permit === null || this.recorded !== 'recorded') return;
    const common = {
      ...permit.outcome,
      request_id: this.requestId,
      statement_hmac: this.#statementHmac,
    };
    const us = this.#observe(permit, end.outcome, end.rows, end.error);
    this.#recorder.outcome(common, { ...end, detail: null }, us);
  }

  labels(): RequestLabels {
    const permit = this.#permit;
    if (permit === null) throw new InternalError('no request was begun');
    const { surface, action, form = null, objects = [] } = permit.outcome;
    const { statement } = permit;
    const total = this.#times.get('total') ?? 0;
    return {
      requestId: this.requestId,
      surface,
      action,
      form,
      objects,
      traceparent: null,
      statement: () => statement,
      // On the fast path, the `answer` stage covers the entire request.
      stages: new Map([...this.#times.asMap(), ['answer', total]]),
    };
  }

  readonly #onDecision = (failure: AuditUnavailable | null): void => {
    this.#times.set('record', 1_000 * (performance.now() - this.#startedAt));
    this.recorded = failure ?? 'recorded';
    this.#onRecorded();
  };

  #observe(permit: Permit, outcome: AuditOutcome, rows: number, error: QueryError | null): number {
    this.#times.set('total', 1_000 * (performance.now() - this.#startedAt));
    return this.#recorder.observe(this, permit.meter, this.#times, 'allow', { outcome, rows }, error);
  }
}
