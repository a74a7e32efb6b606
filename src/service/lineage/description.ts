import { createHash } from 'node:crypto';
import {
  columnLineage,
  emit,
  fullName,
  type GovernedPlan,
  type GovernedRuntime,
  type Influence,
} from 'osl-compiler';

/** What receivers may know of a statement: declared names, and no word that its caller wrote. */
export interface PlanDescription {
  readonly form: string;
  /** As the audit log names them. */
  readonly objects: readonly string[];
  /** `<entity>.<column>` of everything masked that it uses. */
  readonly masked: readonly string[];
  /** Null where it is too long to be kept. */
  readonly columns: {
    readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
    readonly rows: readonly Influence[];
  } | null;
}

/** Bytes of a description as JSON: the rest of an audit record has room beside it. */
const LONGEST = 48 * 1024;

/**
 * What ran, whatever the values: the same for all questions that differ in literals only, 22 characters of base64url.
 * Nothing of the text goes in but what became part of the governed statement.
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
 * What the outputs are called. A caller may name a column as it likes, also by what it looks for; so an output goes by
 * its name only where that is declared, and by its place otherwise: `c3`.
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
