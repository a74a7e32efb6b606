import { type ObjectIdentity, policyObject } from './catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, listed } from './database.js';

/**
 * Most severe first. `error`: rows are wrongly shown or changed; `warning`: they probably are; `note`: slow, or worth
 * knowing.
 */
export const SEVERITIES = ['error', 'warning', 'note'] as const;

export type RlsSeverity = (typeof SEVERITIES)[number];

/** One kind of fault, with its entry in the documentation. */
export interface RlsRule {
  /** Stable identifier, such as `RLS001`. */
  readonly code: string;
  readonly severity: RlsSeverity;
  readonly title: string;
  /** One sentence on the harm that the fault does. */
  readonly consequence: string;
  readonly mend: string;
  readonly check: (database: CheckedDatabase) => readonly Violation[];
}

/** An object that violates a rule. */
export interface Violation {
  readonly object: ObjectIdentity;
  /** Details of this object, such as the roles; null if the rule itself says everything. */
  readonly detail: string | null;
  /** Statements that fix the violation; empty if somebody has to make a decision first. */
  readonly sql: readonly string[];
}

export interface RlsFinding extends Violation {
  readonly code: string;
  readonly severity: RlsSeverity;
  readonly title: string;
  readonly consequence: string;
  readonly mend: string;
}

export function violation(
  object: ObjectIdentity,
  detail: string | null = null,
  sql: readonly string[] = [],
): Violation {
  return { object, detail, sql };
}

/** Reports each policy for which `find` returns names, with `about` before them; the others are in order. */
export function policiesWith(
  { policies }: CheckedDatabase,
  about: string,
  find: (analysed: AnalysedPolicy) => Iterable<string>,
): readonly Violation[] {
  return policies.flatMap((analysed) => {
    const names = [...new Set(find(analysed))];
    if (names.length === 0) return [];
    return [violation(policyObject(analysed.table, analysed.policy), `${about}${listed(names)}`)];
  });
}
