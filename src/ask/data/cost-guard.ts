import { type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import { eachDataRow, textValuesOf } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import type { RunningParts } from './parts.js';
import { engineOf } from './runtime/index.js';
import { settingsFor, timeCharge } from './runtime/step.js';

/** For so long an estimate holds for all questions that differ in values alone, ms. */
const HOLDS_MS = 60_000;

interface Estimate {
  readonly at: number;
  readonly cost: number;
}

/** By the statement: the estimate is one whatever the values. */
const ESTIMATES = new WeakMap<GovernedPlan['query'], Estimate>();

/** The lowest cost cap of the data roles of `caller`, for one question; null if none of them sets one. */
function costCapOf({ access, snapshot }: Caller): number | null {
  let least: number | null = null;
  for (const role of access.dataRoles) {
    const most = snapshot.roles.get(role)?.maxCost ?? null;
    if (most !== null) least = Math.min(least ?? most, most);
  }
  return least;
}

/**
 * Compares the database's cost estimate of `plan`, for any values, with the lowest cap of the caller's roles.
 * Undefined if none of them sets a cap.
 *
 * @throws QueryError E0527 beyond the cap, and what `GovernedEngine.explain` throws
 */
export function withinCost(
  parts: RunningParts,
  caller: Caller,
  plan: GovernedPlan,
): Promise<void> | undefined {
  const most = costCapOf(caller);
  if (most === null) return undefined;
  return estimateOf(parts, caller, plan).then((cost) => {
    if (cost > most) throw queryError('costCap', {});
  });
}

async function estimateOf(parts: RunningParts, caller: Caller, plan: GovernedPlan): Promise<number> {
  const known = ESTIMATES.get(plan.query);
  if (known !== undefined && performance.now() - known.at < HOLDS_MS) return known.cost;
  const cost = await ask(parts, caller, plan);
  ESTIMATES.set(plan.query, { at: performance.now(), cost });
  return cost;
}

/** The first line of EXPLAIN is of the whole: `Sort  (cost=1.10..2.20 rows=3 width=4)`. */
async function ask(parts: RunningParts, caller: Caller, plan: GovernedPlan): Promise<number> {
  let first: string | null = null;
  const sink = {
    write: (messages: Uint8Array): void => {
      if (first !== null) return;
      for (const row of eachDataRow(messages)) {
        first = textValuesOf(row)[0] ?? '';
        return;
      }
    },
  };
  const { bytes, timeoutMs } = parts.caps;
  const options = {
    subject: caller.identity.subject,
    maxRows: 0,
    maxBytes: bytes,
    timeoutMs,
    signal: null,
    settings: settingsFor(parts, caller, plan, undefined),
    ...timeCharge(parts, caller),
  };
  await engineOf(parts, plan).explain(plan, options, sink);
  const cost = /\(cost=[\d.]+?\.\.([\d.]+) /.exec(first ?? '')?.[1];
  if (cost === undefined) throw new InternalError('the database gave no estimate');
  return Number(cost);
}
