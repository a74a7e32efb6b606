import { emit, type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import type { GovernedEngine } from '../../../engine/index.js';
import { Sealed } from '../../request/sealed.js';
import { timeCharge } from '../charging.js';
import { type CollectLimits, collect } from '../collect.js';
import type { RunningParts, StepInput } from '../parts.js';
import { settingsFor } from '../row-rights.js';
import { slotValues } from './slot-values.js';

/**
 * Runs one step under the caller's rights, with the values that earlier steps give: all its rows, or none.
 *
 * @throws QueryError E0511 where the parts's caps hold some of them back, which no step could know by itself
 */
export async function step(
  plan: GovernedPlan,
  given: ReadonlyMap<string, string>,
  input: StepInput,
  maxRows: number,
  maxBytes = input.parts.caps.bytes,
) {
  const { parts, caller, signal, snapshots, memory } = input;
  const engine = engineOf(parts, plan);
  const limits: CollectLimits = {
    subject: caller.identity.subject,
    maxRows,
    maxBytes: Math.min(maxBytes, parts.caps.bytes),
    timeoutMs: parts.caps.timeoutMs,
    signal,
    memory,
    settings: settingsFor(parts, caller, plan, undefined),
    snapshot: snapshots?.of(engine) ?? null,
    ...timeCharge(parts, caller),
  };
  const { rows, truncated } = await collect(engine, plan, slotValues(emit(plan).slots, given, input), limits);
  if (truncated)
    throw queryError('tooLarge', { what: 'what a step of the question reads', limit: limits.maxBytes });
  return { rows };
}

export function engineOf(
  parts: Pick<RunningParts, 'runners' | 'defaultConnector'>,
  plan: GovernedPlan,
): GovernedEngine {
  const name = plan.connector ?? parts.defaultConnector;
  const engine = Sealed.open(parts.runners).get(name);
  if (engine === undefined) throw new InternalError(`connector ${name} is not open`);
  return engine;
}
