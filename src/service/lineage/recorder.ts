import type { GovernedPlan } from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { stackOf } from '../../base/thrown.js';
import { describePlan, planFingerprint } from './description.js';

/** Action of the audit event that describes a plan. */
export const PLAN_EVENT = 'lineage.plan';

/** Remembered descriptions per segment; beyond that, some are written again. */
const MOST_KNOWN = 2_000;

/**
 * Writes plan descriptions to the audit log, once per segment, in the group of the first decision that needs it, so
 * that both are durable or neither. A reader that starts two segments before a decision finds its description.
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
   * Fingerprint of `plan`; write its decision in the same turn of the event loop. Null on failure: then receivers miss
   * an event, but the caller is answered.
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
    // Plans that differ only in literals share their query, unless they have runtime relations.
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
