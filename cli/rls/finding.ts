import type { ObjectIdentity } from './catalog/catalog.js';
import type { CheckedDatabase } from './database.js';

/** From the gravest: rows are shown or changed that should not be; likely so; slow, or worth knowing. */
export const SEVERITIES = ['error', 'warning', 'note'] as const;

export type RlsSeverity = (typeof SEVERITIES)[number];

/** One kind of fault, as the documentation lists it. */
export interface RlsRule {
  /** Stable, such as `RLS001`. */
  readonly code: string;
  readonly severity: RlsSeverity;
  readonly title: string;
  /** One sentence on the harm that the fault does. */
  readonly consequence: string;
  readonly mend: string;
  readonly check: (database: CheckedDatabase) => readonly Violation[];
}

/** One object that violates a rule. */
export interface Violation {
  readonly object: ObjectIdentity;
  /** Details of this object, such as the roles; null if the rule says all. */
  readonly detail: string | null;
  /** Statements that mend it; empty if there is a choice to make first. */
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
