import { type Form, type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import {
  type AuditDecision,
  type AuditEntry,
  type AuditOutcome,
  undeclaredObject,
} from '../../../policy/audit/index.js';
import type { Identity } from '../../../policy/index.js';
import type { Model } from '../../model/model.js';
import type { Mark } from '../parsing/marks.js';
import { type Asked, mentionedBy, statementOf, wasRead } from './asked.js';
import type { Call } from './call.js';
import type { Caller } from './caller.js';
import type { Stage } from './meters.js';
import type { RecordingParts } from './parts.js';
import type { Permit } from './permit.js';
import { type ForeignFault, verdictOf } from './told.js';
import { toldShape } from './told-shape.js';

/** What a call reads: of a question its plan says so. */
export interface Touched {
  /** Null where no query was asked. */
  readonly form: Form | null;
  readonly objects: readonly string[];
}

/** What the decision about a request is to say, beside who asked. */
export interface DecisionRecord {
  touches(touched: Touched): void;
  /** More of the decision, as JSON, in the place of what is said of the caller. */
  says(of: string): void;
  /** What the call is known by while `text`, which it asks, is compiled. */
  mark(text: string): Mark;
}

/**
 * Writes the two records of one request. The decision is durable before a byte of an answer leaves. Made by the one way
 * of every request alone (`respond.ts`).
 */
export class Ledger implements DecisionRecord {
  readonly #parts: RecordingParts;
  readonly #call: Call;
  #action: string;
  #started = performance.now();
  #ended: number | null = null;
  readonly #asked: Asked | null;
  readonly #statement: string | null;
  #fingerprint: string | null = null;
  #identity: Identity | null = null;
  #model: Model | null = null;
  #touched: Touched | null = null;
  #plan: string | null = null;
  #said: string | null = null;
  /** µs that each stage took so far. */
  readonly #stages = new Map<Stage, number>();
  #stageAt = this.#started;
  /** The decision is not in the log, so an outcome would be of nothing. */
  #unrecorded = false;

  /** `asked` is what the call asks, where it asks something. */
  constructor(parts: RecordingParts, call: Call, action: string, asked: Asked | null) {
    this.#parts = parts;
    this.#call = call;
    this.#action = action;
    this.#asked = asked;
    this.#statement = asked === null ? null : statementOf(asked);
  }

  /** Whether the caller has proved who it is. */
  get identified(): boolean {
    return this.#identity !== null;
  }

  knows(identity: Identity, model: Model): void {
    this.#identity = identity;
    this.#model = model;
  }

  says(of: string | null): void {
    this.#said = of;
  }

  /** The request has gone through this stage of its way, from the end of the one before. */
  passed(stage: Stage): void {
    const now = performance.now();
    this.#stages.set(stage, 1_000 * (now - this.#stageAt));
    this.#stageAt = now;
  }

  touches(touched: Touched): void {
    this.#touched = touched;
  }

  mark(text: string): Mark {
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

  /** What was prepared goes on as `action`, from now. */
  resumes(action: string): void {
    this.#action = action;
    this.#started = performance.now();
    this.#stageAt = this.#started;
    this.#ended = null;
  }

  /** The work is done, whenever that is recorded. */
  done(): void {
    this.#ended = performance.now();
  }

  /** Records that the question is answered. @throws AuditUnavailable */
  async allow(): Promise<void> {
    const began = performance.now();
    this.#stageAt = began;
    try {
      await this.#parts.audit.append(this.#entry('decision', { decision: 'allow' }));
      this.#stages.set('record', 1_000 * (performance.now() - began));
    } catch (error) {
      this.#unrecorded = true;
      throw error;
    }
  }

  /** Records a refusal. @throws AuditUnavailable */
  async refuse(error: QueryError | ForeignFault): Promise<void> {
    const verdict = verdictOf(error);
    this.#touched ??= this.#named(error);
    this.#observe(verdict.decision, null, 0, metricCodeOf(error));
    await this.#parts.audit.append(this.#entry('decision', verdict));
  }

  /**
   * What a refused call asked for, so that the log answers who tried to read what: declared objects by their names,
   * all else as a keyed fingerprint, so that no slip of a hand or a pasted secret stands in the log. Nothing of
   * strangers, and of calls that were refused before their text was looked at.
   */
  #named(error: unknown): Touched | null {
    if (this.#identity === null || this.#model === null || this.#asked === null || !wasRead(error))
      return null;
    const { declared, undeclared } = mentionedBy(this.#asked, this.#model.manifest.catalog);
    const hidden = withLastParts(undeclared).map((name) =>
      undeclaredObject(this.#parts.audit.fingerprint(name)),
    );
    return { form: null, objects: [...declared, ...hidden] };
  }

  /** Records how it ended. While the disk fails the log keeps it, and refuses everything else. */
  outcome(
    outcome: AuditOutcome,
    rows: number,
    error: QueryError | ForeignFault | null = null,
    detail: string | null = null,
  ): void {
    if (this.#unrecorded) return;
    const duration = this.#observe('allow', outcome, rows, error === null ? null : metricCodeOf(error));
    const entry = this.#entry('outcome', {
      outcome,
      rows,
      duration_us: duration,
      ...(error !== null && failureFields(error)),
      ...(detail !== null && { detail }),
    });
    this.#parts.audit.append(entry, (failure) => {
      if (failure !== null) this.#parts.log.error('audit outcome lost', { request_id: entry.request_id });
    });
  }

  /** What the records of further requests like this one say, which was let in to run `plan` for `caller`. */
  permit(caller: Caller, plan: GovernedPlan): Permit {
    const { audit, lineage } = this.#parts;
    return Object.freeze({
      caller,
      plan: lineage === null ? null : plan,
      decision: audit.form(this.#entry('decision', { decision: 'allow' })),
      ok: audit.form(this.#entry('outcome', { outcome: 'ok' })),
      outcome: this.#entry('outcome', {}),
      meter: this.#parts.observing.meters.of({
        surface: this.#call.surface,
        form: plan.form,
        decision: 'allow',
      }),
      fingerprint: this.#fingerprintOfShape(),
    });
  }

  /** Counts how it ended, and tells of it where more is wanted; how long it took, in µs. */
  #observe(decision: AuditDecision, outcome: AuditOutcome | null, rows: number, code: string | null): number {
    const { observing } = this.#parts;
    const now = this.#ended ?? performance.now();
    const total = 1_000 * (now - this.#started);
    const { requestId, surface, traceparent = null } = this.#call;
    const form = this.#touched?.form ?? null;
    const meter = observing.meters.of({ surface, form: form ?? 'other', decision });
    if (outcome !== null) this.#stages.set('answer', Math.max(0, 1_000 * (now - this.#stageAt)));
    this.#stages.set('total', total);
    for (const [stage, us] of this.#stages) meter.add(stage, us);
    meter.count(outcome ?? 'none');
    if (code !== null) observing.meters.countCode(code);
    if (observing.wants(total))
      observing.tell({
        requestId,
        surface,
        action: this.#action,
        form,
        objects: this.#touched?.objects ?? [],
        decision,
        outcome,
        code,
        rows,
        fingerprint: () => this.#fingerprintOfShape(),
        stages: this.#stages,
        traceparent,
      });
    return Math.round(total);
  }

  /** Null where no question was asked, or nobody knows by which manifest. */
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

/** Names, and of a qualified one its last part too: whoever looks for a table need not know its schema. */
function withLastParts(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name, name.slice(name.lastIndexOf('.') + 1)]))];
}

/**
 * What an outcome says of the error that ended an allowed request. Only a right that was lost on the way is a decision:
 * `deny`, so that a search for denials finds it.
 */
export function failureFields(error: QueryError | ForeignFault): Pick<AuditEntry, 'decision' | 'code'> {
  const { decision, code } = verdictOf(error);
  return decision === 'deny' ? { decision, code } : { code };
}

/** Code of the catalogue under which metrics count `error`: of SQLSTATEs there are too many for labels. */
export function metricCodeOf(error: QueryError | ForeignFault): string {
  if (error instanceof QueryError) return error.code;
  const { code } = error;
  if (/^E\d{4}$/.test(code)) return code;
  return (code === CANCELLED ? queryError('cancelled', {}) : queryError('execution', { sqlstate: code }))
    .code;
}

const CANCELLED = '57014';
