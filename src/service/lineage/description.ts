import { createHash } from 'node:crypto';
import {
  assertNever,
  columnLineage,
  emit,
  fullName,
  type GovernedPlan,
  type GovernedRuntime,
  type Influence,
} from 'osl-compiler';
import type { AuditLog } from '../../../audit/index.js';
import {
  type EffectiveAccess,
  effectiveAccess,
  hypotheticalClaims,
  type PolicySnapshot,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { stackOf } from '../../base/thrown.js';
import type { Manifest } from '../../model/manifest/index.js';

/** Describes a statement to receivers using only declared names, nothing that its caller wrote. */
export interface PlanDescription {
  readonly form: string;
  /** The names of objects as in the audit log; only the first 200 if `columns` is null. */
  readonly objects: readonly string[];
  /** `<entity>.<column>` for each masked column in use; only the first 200 if `columns` is null. */
  readonly masked: readonly string[];
  /** The columns of the result; null if the description would exceed `MAX_DESCRIPTION_BYTES` with them. */
  readonly columns: {
    readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
    readonly rows: readonly Influence[];
  } | null;
}

/** Maximum size of a description as JSON in bytes, which leaves room for the rest of an audit record. */
const MAX_DESCRIPTION_BYTES = 48 * 1024;

/**
 * Returns a fingerprint of a plan without its values, 22 characters of base64url: equal for queries that differ only in
 * literals.
 */
function planFingerprint(plan: GovernedPlan): string {
  const parts = [
    plan.form,
    emit(plan).sql,
    ...plan.runtime.map(runtimeShape),
    JSON.stringify(outputNames(plan)),
  ];
  return createHash('sha256').update(parts.join('\u0000')).digest().subarray(0, 16).toString('base64url');
}

function runtimeShape(runtime: GovernedRuntime): string {
  switch (runtime.kind) {
    case 'retrieval': {
      const { facet, operators, columns } = runtime.relation;
      const named = [operators.map((o) => [o.operator, o.column]), columns.map((c) => c.name)];
      return JSON.stringify([
        facet.name,
        runtime.store?.version ?? null,
        sqlOf(runtime.store?.passages),
        named,
      ]);
    }
    case 'traversal':
      return JSON.stringify([runtime.relation.maxHops, sqlOf(runtime.start), runtime.hops.map(sqlOf)]);
    case 'hydration':
      return JSON.stringify(
        runtime.stores.map((s) => [s.facet.name, s.version, sqlOf(s.passages), sqlOf(s.derived)]),
      );
    case 'operated': {
      const { operators, columns } = runtime.relation;
      const named = [operators.map((o) => [o.operator, o.column, o.of]), columns.map((c) => c.name)];
      return JSON.stringify([sqlOf(runtime.rows), named]);
    }
    default:
      return assertNever(runtime);
  }
}

function sqlOf(plan: GovernedPlan | null | undefined): string {
  return plan === null || plan === undefined ? '' : emit(plan).sql;
}

function describePlan(plan: GovernedPlan): PlanDescription {
  const { outputs, rows } = columnLineage(plan);
  const names = outputNames(plan);
  const base = { form: plan.form, objects: plan.objects, masked: plan.maskedColumns };
  const columns = {
    outputs: outputs.map(({ inputs }, i) => ({ name: names[i] ?? `c${i + 1}`, inputs })),
    rows,
  };
  const complete: PlanDescription = { ...base, columns };
  if (Buffer.byteLength(JSON.stringify(complete)) <= MAX_DESCRIPTION_BYTES) return complete;
  return { ...base, objects: base.objects.slice(0, 200), masked: base.masked.slice(0, 200), columns: null };
}

/**
 * Returns the output names for receivers. Aliases are chosen by the caller and may be sensitive, so a name is kept only
 * if it is declared, and otherwise replaced by a name such as `c3`.
 */
function outputNames(plan: GovernedPlan): readonly string[] {
  const usedNames = new Set<string>();
  return plan.outputs.map(({ name, source }, i) => {
    const isDeclared =
      source?.endsWith(`.${name}`) === true || plan.objects.includes(fullName('metrics', name));
    const outputName = isDeclared && !usedNames.has(name) && !PLACEHOLDER.test(name) ? name : `c${i + 1}`;
    usedNames.add(outputName);
    return outputName;
  });
}

const PLACEHOLDER = /^c\d+$/;

/** The action of audit events that describe a plan. */
export const PLAN_EVENT = 'lineage.plan';

/** Number of descriptions remembered per segment. Beyond it, some descriptions are written more than once. */
const MAX_REMEMBERED = 2_000;

/**
 * Writes plan descriptions to the audit log. Each is written once per segment, with the first decision that needs it,
 * so that both are durable or neither. A reader that starts two segments before a decision finds its description.
 */
export class PlanRecorder {
  readonly #audit: AuditLog;
  readonly #tenant: string;
  readonly #log: ServiceLog;
  readonly #fingerprints = new WeakMap<object, string>();
  readonly #described = new Set<string>();
  #segment = 0;

  constructor(audit: AuditLog, tenant: string, log: ServiceLog) {
    this.#audit = audit;
    this.#tenant = tenant;
    this.#log = log;
  }

  /**
   * Returns the fingerprint of `plan`. The decision must be written in the same turn of the event loop. On failure,
   * returns null: receivers then miss an event, but the caller still gets the answer.
   */
  note(plan: GovernedPlan, requestId: string): string | null {
    try {
      return this.#fingerprintAndDescribe(plan, requestId);
    } catch (error) {
      this.#log.error('lineage of a plan cannot be told', {
        request_id: requestId,
        error: stackOf(error),
      });
      return null;
    }
  }

  #fingerprintAndDescribe(plan: GovernedPlan, requestId: string): string {
    // Plans that differ only in literals share one `query` object, unless they have runtime relations.
    const cacheKey = plan.runtime.length === 0 ? plan.query : plan;
    let fingerprint = this.#fingerprints.get(cacheKey);
    if (fingerprint === undefined) {
      fingerprint = planFingerprint(plan);
      this.#fingerprints.set(cacheKey, fingerprint);
    }
    const { segment } = this.#audit.stats();
    if (segment !== this.#segment || this.#described.size >= MAX_REMEMBERED) this.#described.clear();
    this.#segment = segment;
    const key = `${fingerprint} ${plan.catalogVersion} ${plan.policyVersion}`;
    if (!this.#described.has(key)) {
      this.#describe(plan, fingerprint, requestId);
      this.#described.add(key);
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
      if (failure !== null) this.#described.clear();
    });
  }
}

/**
 * Returns the access of a chain of subjects (root first) with all roles that the last subject can have. Used by tools
 * such as `osl lineage show`, never for requests.
 */
export function accessOfChain(
  chain: readonly string[],
  snapshot: PolicySnapshot,
  { catalog }: Manifest,
): EffectiveAccess {
  return effectiveAccess(hypotheticalClaims({ chain, roles: null }, snapshot), snapshot, catalog);
}
