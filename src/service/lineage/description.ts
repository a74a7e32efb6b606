import { createHash } from 'node:crypto';
import {
  columnLineage,
  emit,
  fullName,
  type GovernedPlan,
  type GovernedRuntime,
  type Influence,
} from 'osl-compiler';

/** Description of a statement for receivers: declared names only, nothing that its caller wrote. */
export interface PlanDescription {
  readonly form: string;
  /** Names as in the audit log. */
  readonly objects: readonly string[];
  /** `<entity>.<column>` of masked columns in use. */
  readonly masked: readonly string[];
  /** Null if too long. */
  readonly columns: {
    readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
    readonly rows: readonly Influence[];
  } | null;
}

/** Bytes as JSON, leaving room for the rest of an audit record. */
const LONGEST = 48 * 1024;

/**
 * Fingerprint of a plan without values, 22 characters of base64url: the same for queries that differ only in literals.
 */
export function planFingerprint(plan: GovernedPlan): string {
  const parts = [plan.form, emit(plan).sql, ...plan.runtime.map(shapeOf), JSON.stringify(namesOf(plan))];
  return createHash('sha256').update(parts.join('\u0000')).digest().subarray(0, 16).toString('base64url');
}

function shapeOf(runtime: GovernedRuntime): string {
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
    default: {
      const unknown: never = runtime;
      return unknown;
    }
  }
}

function sqlOf(plan: GovernedPlan | null | undefined): string {
  return plan === null || plan === undefined ? '' : emit(plan).sql;
}

export function describePlan(plan: GovernedPlan): PlanDescription {
  const { outputs, rows } = columnLineage(plan);
  const names = namesOf(plan);
  const base = { form: plan.form, objects: plan.objects, masked: plan.maskedColumns };
  const columns = {
    outputs: outputs.map(({ inputs }, i) => ({ name: names[i] ?? `c${i + 1}`, inputs })),
    rows,
  };
  const whole: PlanDescription = { ...base, columns };
  if (Buffer.byteLength(JSON.stringify(whole)) <= LONGEST) return whole;
  return { ...base, objects: base.objects.slice(0, 200), masked: base.masked.slice(0, 200), columns: null };
}

/**
 * Output names. Aliases are chosen by the caller and may be sensitive, so only declared names are used, and `c3`
 * otherwise.
 */
function namesOf(plan: GovernedPlan): readonly string[] {
  const taken = new Set<string>();
  return plan.outputs.map(({ name, source }, i) => {
    const declared =
      source?.endsWith(`.${name}`) === true || plan.objects.includes(fullName('metrics', name));
    const shown = declared && !taken.has(name) && !PLACE.test(name) ? name : `c${i + 1}`;
    taken.add(shown);
    return shown;
  });
}

const PLACE = /^c\d+$/;
