import type { Form, GovernedPlan, QueryError } from 'osl-compiler';
import {
  type AuditDecision,
  type AuditEntry,
  type AuditOutcome,
  undeclaredObject,
} from '../../../audit/index.js';
import type { Identity } from '../../../policy/index.js';
import type { ServedModel } from '../../model/served-model.js';
import type { CompileMark } from '../parsing/marks.js';
import { mentionedBy, type RequestTarget, statementOf, wasRead } from './asked.js';
import type { RequestCall } from './call.js';
import type { Caller } from './caller.js';
import { type Meter, type RequestStage, StageTimes } from './meters.js';
import type { RecordingParts } from './parts.js';
import { type Permit, Recorder, type RequestLabels } from './recorder.js';
import { type ForeignFault, verdictOf } from './told.js';
import { toldShape } from './told-shape.js';

/** Objects that a call reads; for a question, those of its plan. */
export interface AccessedObjects {
  /** Null if no query was asked. */
  readonly form: Form | null;
  readonly objects: readonly string[];
}

/** Contents of a decision record, apart from the caller. */
export interface DecisionRecord {
  touches(touched: AccessedObjects): void;
  /** Further details of the caller, as JSON. */
  says(of: string): void;
  /** Mark of the call for the time in which its `text` is compiled. */
  mark(text: string): CompileMark;
}

/**
 * Facts about one request, from which its two records are made. The decision is durable before a byte of an answer
 * leaves. Created only by `respond.ts`.
 */
export class Ledger implements DecisionRecord {
  readonly #parts: RecordingParts;
  readonly #recorder: Recorder;
  readonly #call: RequestCall;
  #action: string;
  #started = performance.now();
  #ended: number | null = null;
  readonly #asked: RequestTarget | null;
  readonly #statement: string | null;
  #fingerprint: string | null = null;
  #identity: Identity | null = null;
  #model: ServedModel | null = null;
  #touched: AccessedObjects | null = null;
  #plan: string | null = null;
  #said: string | null = null;
  readonly #times = new StageTimes();
  #stageAt = this.#started;
  /** The decision is not in the log, so an outcome would be of nothing. */
  #unrecorded = false;

  /** `asked`: target of the call, if it has one. */
  constructor(parts: RecordingParts, call: RequestCall, action: string, asked: RequestTarget | null) {
    this.#parts = parts;
    this.#recorder = new Recorder(parts);
    this.#call = call;
    this.#action = action;
    this.#asked = asked;
    this.#statement = asked === null ? null : statementOf(asked);
  }

  /** True once the caller is authenticated. */
  get identified(): boolean {
    return this.#identity !== null;
  }

  knows(identity: Identity, model: ServedModel): void {
    this.#identity = identity;
    this.#model = model;
  }

  says(of: string | null): void {
    this.#said = of;
  }

  /** The request has gone through this stage of its way, from the end of the one before. */
  passed(stage: RequestStage): void {
    const now = performance.now();
    this.#times.set(stage, 1_000 * (now - this.#stageAt));
    this.#stageAt = now;
  }

  touches(touched: AccessedObjects): void {
    this.#touched = touched;
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

  /** Says that `plan` is going to run; `allow` follows at once, so that both are on disk together. */
  reads(plan: GovernedPlan): void {
    this.#plan = this.#parts.lineage?.note(plan, this.#call.requestId) ?? null;
  }

  /** Continues a prepared request as `action`; its times start again now. */
  resumes(action: string): void {
    this.#action = action;
    this.#started = performance.now();
    this.#stageAt = this.#started;
    this.#ended = null;
  }

  /** Stops the clock of the request, whenever its outcome is recorded. */
  done(): void {
    this.#ended = performance.now();
  }

  /** Records that the question is answered. @throws AuditUnavailable */
  async allow(): Promise<void> {
    const began = performance.now();
    this.#stageAt = began;
    try {
      await this.#recorder.decision(this.#entry('decision', { decision: 'allow' }));
      this.#times.set('record', 1_000 * (performance.now() - began));
    } catch (error) {
      this.#unrecorded = true;
      throw error;
    }
  }

  /** Records a refusal. @throws AuditUnavailable */
  async refuse(error: QueryError | ForeignFault): Promise<void> {
    const verdict = verdictOf(error);
    this.#touched ??= this.#named(error);
    this.#clock();
    this.#recorder.observe(this, this.#meter(verdict.decision), this.#times, verdict.decision, null, error);
    await this.#recorder.decision(this.#entry('decision', verdict));
  }

  /**
   * Objects that a refused call asked for, so that the log shows who tried to read what: declared objects by name,
   * others as a keyed fingerprint, so that no typing error and no pasted secret gets into the log. Null for
   * unauthenticated callers, and for calls that were refused before their text was read.
   */
  #named(error: unknown): AccessedObjects | null {
    if (this.#identity === null || this.#model === null || this.#asked === null || !wasRead(error))
      return null;
    const { declared, undeclared } = mentionedBy(this.#asked, this.#model.manifest.catalog);
    const hidden = withLastParts(undeclared).map((name) =>
      undeclaredObject(this.#parts.audit.fingerprint(name)),
    );
    return { form: null, objects: [...declared, ...hidden] };
  }

  /** Records how it ended. */
  outcome(
    outcome: AuditOutcome,
    rows: number,
    error: QueryError | ForeignFault | null = null,
    detail: string | null = null,
  ): void {
    if (this.#unrecorded) return;
    this.#times.set('answer', 1_000 * (this.#clock() - this.#stageAt));
    const end = { outcome, rows, error };
    const us = this.#recorder.observe(this, this.#meter('allow'), this.#times, 'allow', end, error);
    this.#recorder.outcome(this.#entry('outcome', {}), end, us, detail);
  }

  /** Record templates for further requests like this one, which was authorized to run `plan` for `caller`. */
  permit(caller: Caller, plan: GovernedPlan): Permit {
    const { audit, lineage } = this.#parts;
    return Object.freeze({
      caller,
      plan: lineage === null ? null : plan,
      decision: audit.form(this.#entry('decision', { decision: 'allow' })),
      ok: audit.form(this.#entry('outcome', { outcome: 'ok' })),
      outcome: this.#entry('outcome', {}),
      meter: this.#meter('allow'),
      fingerprint: this.#fingerprintOfShape(),
    });
  }

  /** As the operator's log and traces name it. */
  labels(): RequestLabels {
    const { requestId, surface, traceparent = null } = this.#call;
    return {
      requestId,
      surface,
      action: this.#action,
      form: this.#touched?.form ?? null,
      objects: this.#touched?.objects ?? [],
      traceparent,
      fingerprint: () => this.#fingerprintOfShape(),
      stages: this.#times.asMap(),
    };
  }

  #meter(decision: AuditDecision): Meter {
    const { surface } = this.#call;
    return this.#parts.observing.meters.of({ surface, form: this.#touched?.form ?? 'other', decision });
  }

  /** Stops the clock; gives the time that it shows. */
  #clock(): number {
    const now = this.#ended ?? performance.now();
    this.#times.set('total', 1_000 * (now - this.#started));
    return now;
  }

  /** Null if there was no question, or if the manifest is unknown. */
  #fingerprintOfShape(): string | null {
    const asked = this.#asked;
    if (asked === null || this.#model === null) return null;
    switch (asked.kind) {
      case 'osql':
      case 'sql':
      case 'wire':
        return toldShape(asked.text, this.#model.manifest.catalog).fingerprint;
      case 'metrics':
        return toldShape(JSON.stringify(asked.request), this.#model.manifest.catalog).fingerprint;
      case 'table':
      case 'facet':
      case 'term':
      case 'draft':
        return null;
      default: {
        const unknown: never = asked;
        return unknown;
      }
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
      form: this.#touched?.form ?? null,
      objects: this.#touched?.objects ?? [],
      versions:
        model === null ? null : { manifest: model.manifest.version, policy: model.snapshot?.version ?? null },
      statement_hmac: this.#statementHmac(),
      ...(this.#plan !== null && { plan: this.#plan }),
      ...(kind === 'decision' && this.#said !== null && { detail: this.#said }),
      ...fields,
    };
  }

  /** One for both records, though a segment may end in between. */
  #statementHmac(): string | null {
    if (this.#statement === null) return null;
    this.#fingerprint ??= this.#parts.audit.fingerprint(this.#statement);
    return this.#fingerprint;
  }
}

/** Names, and the last part of qualified ones: a search for a table need not know its schema. */
function withLastParts(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name, name.slice(name.lastIndexOf('.') + 1)]))];
}
