import { arrayText, assertNever, emit, type GovernedPlan, type Slot } from 'osl-compiler';
import type { Caller } from '../request/caller.js';
import { adminsOnly } from '../request/refusals.js';
import { respond } from '../request/respond.js';
import { decisionOf } from './ask.js';
import type { AnswerParts } from './parts.js';
import type { DataQuestion } from './question.js';
import { explainLines } from './runtime/step.js';

/** Detail requested: only the SQL statement, or also the database's plan for it. */
export type UpstreamDetail = 'statement' | 'plan';

/** Possible origins of a statement parameter's value. */
export const PARAMETER_ORIGINS = [
  'literal',
  'parameter',
  'gateway',
  'attribute',
  'step',
  'mask_key',
] as const;

/** `value` is set only for literals in the caller's text; `number` is the `n` of the caller's `$n`. */
interface UpstreamParameter {
  readonly type: string;
  readonly from: (typeof PARAMETER_ORIGINS)[number];
  readonly value?: string;
  readonly number?: number;
}

interface UpstreamView {
  readonly sql: string;
  readonly parameters: readonly UpstreamParameter[];
  readonly plan?: string;
  readonly truncated?: true;
}

export interface ExplainResult {
  readonly plan: GovernedPlan;
  readonly caller: Caller;
  readonly upstream: UpstreamView | null;
}

/**
 * Compiles a query without running it. The database's plan is requested once the decision is durable.
 *
 * @param detail not null: also shows the statement sent to the database, for which the caller needs an admin role
 * @throws QueryError E2101 if `detail` is set and the caller has no admin role, and the errors of `respond`
 */
export function explainPlan(
  parts: AnswerParts,
  question: DataQuestion,
  detail: UpstreamDetail | null,
  signal: AbortSignal,
): Promise<ExplainResult> {
  const action = detail === 'plan' ? 'explain_plan' : 'explain';
  return respond<GovernedPlan, ExplainResult>(parts, question, {
    ...decisionOf(parts, question, action),
    ...(detail !== null && { requireAllowed: adminsOnly('upstreamForAdmins') }),
    answer: async (plan, caller) => {
      const statement = detail === null ? null : statementOf(plan);
      const explained = detail === 'plan' ? await upstreamPlan(parts, caller, plan, signal) : {};
      return { plan, caller, upstream: statement === null ? null : { ...statement, ...explained } };
    },
  });
}

function statementOf(plan: GovernedPlan): UpstreamView {
  const { sql, slots } = emit(plan);
  return { sql, parameters: slots.map(parameterOf) };
}

/** INVARIANT: only the caller's own literals are shown, never an attribute, a key or a literal of the policy. */
function parameterOf(slot: Slot): UpstreamParameter {
  const { type } = slot;
  switch (slot.kind) {
    case 'literal': {
      if (!slot.written) return { type, from: 'gateway' };
      const { value } = slot;
      return { type, from: 'literal', value: typeof value === 'string' ? value : arrayText(value) };
    }
    case 'client':
      return { type, from: 'parameter', number: slot.index + 1 };
    case 'attribute':
      return { type, from: 'attribute' };
    case 'runtime':
    case 'keys':
    case 'given':
      return { type, from: 'step' };
    case 'pad':
      return { type, from: 'mask_key' };
    default:
      return assertNever(slot);
  }
}

async function upstreamPlan(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  signal: AbortSignal,
): Promise<Pick<UpstreamView, 'plan' | 'truncated'>> {
  const limits = { maxRows: parts.caps.rows, signal, charged: false };
  const { lines, truncated } = await explainLines(parts, caller, plan, limits);
  return { plan: lines.join('\n'), ...(truncated && { truncated: true }) };
}
