import { arrayText, emit, type GovernedPlan, InternalError, queryError, type Slot } from 'osl-compiler';
import { eachDataRow, textValuesOf } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import { respond } from '../request/respond.js';
import { decisionOf } from './ask.js';
import type { AnswerParts } from './parts.js';
import type { DataQuestion } from './question.js';
import { engineOf } from './runtime/index.js';
import { settingsFor } from './runtime/step.js';

/** Detail of the upstream view: the statement alone, or also the plan that the database would use for it. */
export type UpstreamDetail = 'statement' | 'plan';

/** Origins of a statement parameter's value. */
export const ORIGINS = ['literal', 'parameter', 'gateway', 'attribute', 'step', 'mask_key'] as const;

/** `$n` of the statement. `value`: only if it is from the caller's text. `number`: `n` of the caller's own `$n`. */
interface UpstreamParameter {
  readonly type: string;
  readonly from: (typeof ORIGINS)[number];
  readonly value?: string;
  readonly number?: number;
}

/** The statement that would be sent to the database. */
interface UpstreamView {
  readonly sql: string;
  readonly parameters: readonly UpstreamParameter[];
  /** Lines of EXPLAIN, for a generic plan that does not depend on the values. */
  readonly plan?: string;
  /** True if lines were cut off by a cap. */
  readonly truncated?: true;
}

export interface ExplainResult {
  readonly plan: GovernedPlan;
  readonly caller: Caller;
  /** Null if it was not requested. */
  readonly upstream: UpstreamView | null;
}

/**
 * Validates and lowers a question without running it. Reads no data. `wanted` needs an admin role; a `plan` is
 * requested from the database by the governed engine, once the decision is on disk.
 *
 * @throws QueryError E2101 where `wanted` and the asker is no admin, and what `ask` throws before it executes
 */
export function explainPlan(
  parts: AnswerParts,
  question: DataQuestion,
  wanted: UpstreamDetail | null,
  signal: AbortSignal,
): Promise<ExplainResult> {
  const action = wanted === 'plan' ? 'explain_plan' : 'explain';
  return respond<GovernedPlan, ExplainResult>(parts, question, {
    ...decisionOf(parts, question, action),
    ...(wanted !== null && { permits: adminsOnly }),
    answer: async (plan, caller) => {
      const statement = wanted === null ? null : statementOf(plan);
      const explained = wanted === 'plan' ? await upstreamPlan(parts, caller, plan, signal) : {};
      return { plan, caller, upstream: statement === null ? null : { ...statement, ...explained } };
    },
  });
}

function adminsOnly({ access }: Caller): void {
  if (access.adminRoles.size === 0) throw queryError('upstreamForAdmins', {});
}

function statementOf(plan: GovernedPlan): UpstreamView {
  const { sql, slots } = emit(plan);
  return { sql, parameters: slots.map(parameterOf) };
}

/** INVARIANT: of all values only the caller's own literals are shown: no attribute, no key, no literal of policy. */
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
    default: {
      const unknown: never = slot;
      throw new InternalError(`unexpected slot ${String(unknown)}`);
    }
  }
}

async function upstreamPlan(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  signal: AbortSignal,
): Promise<Pick<UpstreamView, 'plan' | 'truncated'>> {
  const { rows, bytes, timeoutMs } = parts.caps;
  const lines: string[] = [];
  const sink = {
    write: (messages: Uint8Array): void => {
      for (const row of eachDataRow(messages)) lines.push(textValuesOf(row)[0] ?? '');
    },
  };
  const options = {
    subject: caller.identity.subject,
    maxRows: rows,
    maxBytes: bytes,
    timeoutMs,
    signal,
    settings: settingsFor(parts, caller, plan, undefined),
  };
  const { truncated } = await engineOf(parts, plan).explain(plan, options, sink);
  return { plan: lines.join('\n'), ...(truncated && { truncated: true }) };
}
