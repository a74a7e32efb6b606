import type { GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { stackOf } from '../../base/thrown.js';
import { describePlan, planFingerprint } from './description.js';

/** The action of the audit event that says what a plan reads. */
export const PLAN_EVENT = 'lineage.plan';

/** Descriptions per segment; beyond, those that come again are written again. */
const MOST_KNOWN = 2_000;

/**
 * Puts what a plan reads into the audit log, once a segment, in the group of the first decision that it is for: so what
 * is decided is known with it, or neither is. Whoever reads the log from two segments before a decision finds it.
 */
export class PlanRecorder {
  readonly #audit: AuditLog;
  readonly #tenant: string;
  readonly #log: ServiceLog;
  readonly #fingerprints = new WeakMap<object, string>();
  readonly #known = new Set<string>();
  #segment = 0;

  constructor(audit: AuditLog, tenant: string, log: ServiceLog) {
    this.#audit = audit;
    this.#tenant = tenant;
    this.#log = log;
  }

  /**
   * The fingerprint of `plan`, to be written with its decision in the same turn of the event loop. Null where it cannot
   * be told: that costs the receivers an event, and never the caller an answer.
   */
  note(plan: GovernedPlan, requestId: string): string | null {
    try {
      return this.#noted(plan, requestId);
    } catch (error) {
      this.#log.error('lineage of a plan cannot be told', {
        request_id: requestId,
        error: stackOf(error),
      });
      return null;
    }
  }

  #noted(plan: GovernedPlan, requestId: string): string {
    // Plans that differ in literals only share their query, except where they have steps of their own.
    const same = plan.runtime.length === 0 ? plan.query : plan;
    let fingerprint = this.#fingerprints.get(same);
    if (fingerprint === undefined) {
      fingerprint = planFingerprint(plan);
      this.#fingerprints.set(same, fingerprint);
    }
    const { segment } = this.#audit.stats();
    if (segment !== this.#segment || this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#segment = segment;
    const key = `${fingerprint} ${plan.catalogVersion} ${plan.policyVersion}`;
    if (!this.#known.has(key)) {
      this.#known.add(key);
      this.#describe(plan, fingerprint, requestId);
    }
    return fingerprint;
  }

  #describe(plan: GovernedPlan, fingerprint: string, requestId: string): void {
    const entry = {
      kind: 'event',
      request_id: requestId,
      tenant: this.#tenant,
      surface: 'system',
      action: PLAN_EVENT,
      versions: { manifest: plan.catalogVersion, policy: plan.policyVersion },
      plan: fingerprint,
      detail: JSON.stringify(describePlan(plan)),
    } as const;
    this.#audit.append(entry, (failure) => {
      if (failure !== null) this.#known.clear();
    });
  }
}
