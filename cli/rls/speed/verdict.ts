import type { CheckedDatabase } from '../checked-database.js';
import type { StatementComparison } from './comparison.js';
import {
  attributesReason,
  type Leakproofness,
  type Reason,
  reasonsFor,
  type StatementTest,
  testsOf,
  untold,
} from './reasons.js';
import { type GivenStatement, selectIn } from './statements.js';

/** A comparison with its reasons. */
export interface ExplainedComparison {
  readonly compared: StatementComparison;
  /** `about equal` if neither takes much longer. */
  readonly faster: 'governed' | 'row security' | 'about equal';
  /** Time, or cost without ANALYZE, under row security over that of governed SQL; above 1 governed SQL is faster. */
  readonly ratio: number;
  readonly reasons: readonly Reason[];
}

/** Below this ratio, two times are about equal. */
const EQUAL = 1.3;

/** Says which side is faster, and why, as far as the plans tell. */
export function explained(
  compared: StatementComparison,
  database: CheckedDatabase,
  leakproofness: readonly Leakproofness[],
): ExplainedComparison {
  const { rowSecurity, governed } = compared;
  const [theirs, ours] = [rowSecurity.ms ?? rowSecurity.cost, governed.ms ?? governed.cost];
  const ratio = theirs / ours;
  if (ratio < EQUAL && ratio > 1 / EQUAL) return { compared, faster: 'about equal', ratio, reasons: [] };
  const context = {
    database,
    leakproofness,
    statement: testsIn(compared.statement),
    analyzed: rowSecurity.ms !== null,
  };
  const [under, through] = [rowSecurity.plan.root, governed.plan.root];
  if (ratio >= EQUAL)
    return { compared, faster: 'governed', ratio, reasons: reasonsFor(under, through, context) };
  const { attributesMs } = governed;
  const reading = attributesMs > 0 ? [attributesReason(figure(attributesMs))] : [];
  // If the statement alone takes no longer, its plan is no reason.
  const alone = ours - attributesMs > EQUAL * theirs ? reasonsFor(through, under, context) : null;
  const rest =
    alone?.length === 0 && reading.length > 0 ? [untold('the statement itself takes longer, too')] : [];
  return { compared, faster: 'row security', ratio, reasons: [...(alone ?? []), ...reading, ...rest] };
}

function testsIn({ text }: GivenStatement): readonly StatementTest[] {
  const parsed = selectIn(text);
  return parsed.kind === 'select' ? testsOf(parsed.node) : [];
}

/** Rounds to two or three digits. */
export function figure(value: number): string {
  if (value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}
