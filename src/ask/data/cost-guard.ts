import { type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import { eachDataRow, textValuesOf } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import type { RunningParts } from './parts.js';
import { engineOf } from './runtime/index.js';
import { settingsFor, timeCharge } from './runtime/step.js';

/** Lifetime of an estimate, ms; it is shared by queries that differ only in values. */
const HOLDS_MS = 60_000;

interface Estimate {
  readonly at: number;
  readonly cost: number;
}

/** By statement: generic estimates do not depend on values. */
const ESTIMATES = new WeakMap<GovernedPlan['query'], Estimate>();

/** Lowest cost cap among the caller's data roles; null if none sets one. */
function costCapOf({ access, snapshot }: Caller): number | null {
  let least: number | null = null;
  for (const role of access.dataRoles) {
    const most = snapshot.roles.get(role)?.maxCost ?? null;
    if (most !== null) least = Math.min(least ?? most, most);
  }
  return least;
}

/**
 * Checks the database's generic cost estimate against the lowest cap of the caller's roles; undefined if there is none.
 *
 * @throws QueryError E0527 beyond the cap, and errors of `GovernedEngine.explain`
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

/** The first line of EXPLAIN has the total: `Sort  (cost=1.10..2.20 rows=3 width=4)`. */
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
