import { assertNever, type Form, type GovernedPlan, type QueryError } from 'osl-compiler';
import {
  type AuditDecision,
  type AuditEntry,
  type ReceiptDigests,
  undeclaredObject,
} from '../../../audit/index.js';
import type { Identity } from '../../../policy/index.js';
import type { ServedModel } from '../../model/served-model.js';
import type { CompileMark } from '../parsing/marks.js';
import type { RequestCall } from './call.js';
import type { Caller } from './caller.js';
import { type Meter, type RequestStage, StageTimes } from './meters.js';
import type { RecordingParts } from './parts.js';
import { type ForeignFault, verdictOf } from './public-error.js';
import { type Permit, Recorder, type RequestEnd, type RequestLabels } from './recorder.js';
import { type RedactedStatement, redactStatement } from './redacted-statement.js';
import { mentionedBy, type RequestTarget, statementOf, wasRead } from './request-target.js';

/** Objects that a request accesses, for its audit records. */
export interface AccessedObjects {
  /** The form of the query; null if it is not a query. */
  readonly form: Form | null;
  readonly objects: readonly string[];
  readonly connector?: string | null;
}

/** Receives the contents of the decision record. */
export interface DecisionRecord {
  setObjects(accessed: AccessedObjects): void;
  setDetail(detail: string): void;
  /** Creates the mark that is on disk while `text` is being compiled; see `Marks`. */
  mark(text: string): CompileMark;
}

/** Collects the content of the two audit records of a request. Created only by `refusals.ts`. */
export class Ledger implements DecisionRecord {
  readonly #parts: RecordingParts;
  readonly #recorder: Recorder;
  readonly #call: RequestCall;
  #action: string;
  #startedAt = performance.now();
  #endedAt: number | null = null;
  readonly #target: RequestTarget | null;
  readonly #statement: string | null;
  #fingerprint: string | null = null;
  #identity: Identity | null = null;
  #model: ServedModel | null = null;
  #accessed: AccessedObjects | null = null;
  #plan: string | null = null;
  #detail: string | null = null;
  readonly #times = new StageTimes();
  #stageStartedAt = this.#startedAt;
  /** True if the decision could not be recorded; then no outcome is recorded either. */
  #recordingFailed = false;

  constructor(parts: RecordingParts, call: RequestCall, action: string, target: RequestTarget | null) {
    this.#parts = parts;
    this.#recorder = new Recorder(parts);
    this.#call = call;
    this.#action = action;
    this.#target = target;
    this.#statement = target === null ? null : statementOf(target);
  }

  get identified(): boolean {
    return this.#identity !== null;
  }

  setIdentity(identity: Identity, model: ServedModel): void {
    this.#identity = identity;
    this.#model = model;
  }

  setDetail(detail: string | null): void {
    this.#detail = detail;
  }

  /** Records the duration of a stage, measured from the end of the previous one. */
  endStage(stage: RequestStage): void {
    const now = performance.now();
    this.#times.set(stage, 1_000 * (now - this.#stageStartedAt));
    this.#stageStartedAt = now;
  }

  setObjects(accessed: AccessedObjects): void {
    this.#accessed = accessed;
  }

  mark(text: string): CompileMark {
    const { requestId: request_id, surface } = this.#call;
    return {
      request_id,
      surface,
      action: this.#action,
      subject: this.#identity?.subject ?? null,
      chain: this.#identity?.chain ?? [],
      statement_hmac: this.#statementHmac(),
      size: text.length,
    };
  }

  /** Registers `plan` with lineage. Call `allow` right after, so that plan and decision are written together. */
  registerPlan(plan: GovernedPlan): void {
    this.#plan = this.#parts.lineage?.note(plan, this.#call.requestId) ?? null;
  }

  /** Continues a prepared request as `action` and restarts its clock. */
  resume(action: string): void {
    this.#action = action;
    this.#startedAt = performance.now();
    this.#stageStartedAt = this.#startedAt;
    this.#endedAt = null;
  }

  pauseClock(): void {
    this.#endedAt = performance.now();
  }

  /** Records the decision to answer. @throws AuditUnavailable */
  async allow(): Promise<void> {
    const startedAt = performance.now();
    this.#stageStartedAt = startedAt;
    try {
      await this.#recorder.decision(this.#entry('decision', { decision: 'allow' }));
      this.#times.set('record', 1_000 * (performance.now() - startedAt));
    } catch (error) {
      this.#recordingFailed = true;
      throw error;
    }
  }

  /** Records a refusal. @throws AuditUnavailable */
  async refuse(error: QueryError | ForeignFault): Promise<void> {
    const verdict = verdictOf(error);
    this.#accessed ??= this.#objectsNamedIn(error);
    this.#stopClock();
    this.#recorder.observe(this, this.#meter(verdict.decision), this.#times, verdict.decision, null, error);
    await this.#recorder.decision(this.#entry('decision', verdict));
  }

  /**
   * Returns the objects named by a refused request, so that the log shows access attempts: declared objects by name,
   * others as keyed fingerprints, which keep typos and pasted secrets out of the log. Returns null for unauthenticated
   * callers, and for requests refused before they were read.
   */
  #objectsNamedIn(error: unknown): AccessedObjects | null {
    if (this.#identity === null || this.#model === null || this.#target === null || !wasRead(error))
      return null;
    const { declared, undeclared } = mentionedBy(this.#target, this.#model.manifest.catalog);
    const hidden = withLastParts(undeclared).map((name) =>
      undeclaredObject(this.#parts.audit.fingerprint(name)),
    );
    return { form: null, objects: [...declared, ...hidden] };
  }

  outcome(end: RequestEnd): void {
    if (this.#recordingFailed) return;
    this.#recorder.outcome(this.#entry('outcome', {}), end, this.#finish(end));
  }

  /**
   * Records the outcome of an answer for which a receipt was requested, and returns its proof. @throws AuditUnavailable
   */
  provenOutcome(end: RequestEnd, receipt: ReceiptDigests): Promise<string> {
    return this.#recorder.provenOutcome(this.#entry('outcome', {}), end, this.#finish(end), receipt);
  }

  /** Stops the clock and updates the metrics. Returns the duration in µs. */
  #finish(end: RequestEnd): number {
    this.#times.set('answer', 1_000 * (this.#stopClock() - this.#stageStartedAt));
    return this.#recorder.observe(this, this.#meter('allow'), this.#times, 'allow', end, end.error);
  }

  /** Creates the permit of this request: record templates for later requests that differ only in values. */
  permit(caller: Caller, plan: GovernedPlan): Permit {
    const { audit, lineage } = this.#parts;
    return Object.freeze({
      caller,
      plan: lineage === null ? null : plan,
      decision: audit.form(this.#entry('decision', { decision: 'allow' })),
      ok: audit.form(this.#entry('outcome', { outcome: 'ok' })),
      outcome: this.#entry('outcome', {}),
      meter: this.#meter('allow'),
      statement: this.#redacted(),
    });
  }

  labels(): RequestLabels {
    const { requestId, surface, traceparent = null } = this.#call;
    return {
      requestId,
      surface,
      action: this.#action,
      form: this.#accessed?.form ?? null,
      objects: this.#accessed?.objects ?? [],
      traceparent,
      statement: () => this.#redacted(),
      stages: this.#times.asMap(),
    };
  }

  #meter(decision: AuditDecision): Meter {
    const { surface } = this.#call;
    const { form, connector = null } = this.#accessed ?? { form: null };
    return this.#parts.observing.meters.meterFor({ surface, form: form ?? 'other', decision, connector });
  }

  /** Stores the total duration. Returns the end time, on the clock of `performance.now()`. */
  #stopClock(): number {
    const now = this.#endedAt ?? performance.now();
    this.#times.set('total', 1_000 * (now - this.#startedAt));
    return now;
  }

  /**
   * Returns the redacted statement, for operators; null if the request has no text or the caller is not authenticated.
   */
  #redacted(): RedactedStatement | null {
    const target = this.#target;
    if (target === null || this.#model === null) return null;
    switch (target.kind) {
      case 'osql':
      case 'sql':
      case 'wire':
        return redactStatement(target.text, this.#model.manifest.catalog);
      case 'metrics':
        return redactStatement(JSON.stringify(target.request), this.#model.manifest.catalog);
      case 'table':
      case 'facet':
      case 'term':
      case 'draft':
        return null;
      default:
        return assertNever(target);
    }
  }

  #entry(kind: 'decision' | 'outcome', fields: Partial<AuditEntry>): AuditEntry {
    const { requestId, surface } = this.#call;
    const model = this.#model;
    return {
      kind,
      request_id: requestId,
      tenant: this.#parts.tenant,
      surface,
      action: this.#action,
      subject: this.#identity?.subject ?? null,
      chain: this.#identity?.chain ?? [],
      form: this.#accessed?.form ?? null,
      objects: this.#accessed?.objects ?? [],
      versions:
        model === null ? null : { manifest: model.manifest.version, policy: model.snapshot?.version ?? null },
      statement_hmac: this.#statementHmac(),
      ...(this.#plan !== null && { plan: this.#plan }),
      ...(kind === 'decision' && this.#detail !== null && { detail: this.#detail }),
      ...fields,
    };
  }

  /** Returns the statement's HMAC: the same in both records, even if a new log segment begins between them. */
  #statementHmac(): string | null {
    if (this.#statement === null) return null;
    this.#fingerprint ??= this.#parts.audit.fingerprint(this.#statement);
    return this.#fingerprint;
  }
}

/** Adds the last part of each qualified name, so that a table can be found without knowing its schema. */
function withLastParts(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name, name.slice(name.lastIndexOf('.') + 1)]))];
}
