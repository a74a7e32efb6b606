import { randomUUID } from 'node:crypto';
import { InternalError, type QueryError } from 'osl-compiler';
import type { AuditOutcome, AuditUnavailable } from '../../../audit/index.js';
import type { Identity } from '../../../policy/index.js';
import { chargeAnswer, takeAtOnce } from './limit.js';
import { StageTimes } from './meters.js';
import type { RequestMeans } from './parts.js';
import { type Permit, Recorder, type RequestLabels } from './recorder.js';

/** State of the decision about a request: not on disk yet, durable, or why it could not be recorded. */
export type DecisionState = 'waiting' | 'recorded' | AuditUnavailable;

/**
 * The one way (`respond`) for requests under a `Permit`, in the turn in which they come:
 *
 * limit → audit the decision → answer → audit the outcome
 *
 * Who calls and what they may see is what it was when the permit was made: whoever begins a request has seen to it that
 * the model and the caller are still those. One after the other; whoever began one goes on once it hears `onRecorded`.
 */
export class PermittedRequest {
  requestId = '';
  recorded: DecisionState = 'waiting';
  readonly #means: RequestMeans;
  readonly #recorder: Recorder;
  readonly #times = new StageTimes();
  readonly #onRecorded: () => void;
  #permit: Permit | null = null;
  #statementHmac = '';
  #startedAt = 0;

  constructor(means: RequestMeans, onRecorded: () => void) {
    this.#means = means;
    this.#recorder = new Recorder(means.recording);
    this.#onRecorded = onRecorded;
  }

  /**
   * Lets a request in whose statement is the UTF-8 of bytes [start, end): counts it and hands its decision to the log,
   * under this id or a new one.
   * False if it must wait for its limit, or lineage has to be told of it anew: then nothing is counted or recorded.
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
    } = this.#means;
    const requestId = id ?? randomUUID();
    const plan = permit.plan === null ? null : (lineage?.note(permit.plan, requestId) ?? null);
    if (plan !== (permit.outcome.plan ?? null)) return false;
    if (!takeAtOnce(limiter, permit.caller, 'query', identity)) return false;
    this.requestId = requestId;
    this.recorded = 'waiting';
    this.#permit = permit;
    this.#startedAt = performance.now();
    this.#statementHmac = audit.fingerprintOf(bytes, start, end);
    this.#recorder.decisionUnder(permit, requestId, this.#statementHmac, this.#onDecision);
    return true;
  }

  /** Records that it was answered with `rows` rows of so many bytes, and counts them. */
  answered(rows: number, bytes: number): void {
    const permit = this.#permit;
    if (permit === null) return;
    const us = this.#observe(permit, 'ok', rows, null);
    chargeAnswer(this.#means.limiter, permit.caller, 'query', { rows, bytes, ms: us / 1_000 });
    this.#recorder.outcomeUnder(permit, this.requestId, this.#statementHmac, rows, us);
  }

  /** Records any other end. If its decision is not in the log, nothing is recorded. */
  ended(outcome: AuditOutcome, rows: number, error: QueryError | null): void {
    const permit = this.#permit;
    if (permit === null || this.recorded !== 'recorded') return;
    const common = {
      ...permit.outcome,
      request_id: this.requestId,
      statement_hmac: this.#statementHmac,
    };
    const us = this.#observe(permit, outcome, rows, error);
    this.#recorder.outcome(common, { outcome, rows, error }, us, null);
  }

  /** As the operator's log and traces name it. */
  labels(): RequestLabels {
    const permit = this.#permit;
    if (permit === null) throw new InternalError('no request was begun');
    const { surface, action, form = null, objects = [] } = permit.outcome;
    const { fingerprint } = permit;
    const total = this.#times.get('total') ?? 0;
    return {
      requestId: this.requestId,
      surface,
      action,
      form,
      objects,
      traceparent: null,
      fingerprint: () => fingerprint,
      // The answer begins with the request.
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
