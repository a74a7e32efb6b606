import { type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import { stopAfter, TimeLimitError } from '../../base/threads/main-thread-time.js';
import type { Caller } from '../request/caller.js';
import { quotasFor } from '../request/limit.js';
import type { RecordingParts } from '../request/parts.js';
import type { PlanningCaller, RunningParts } from './parts.js';
import { chargeUse, explainLines } from './runtime/step.js';

/** Lifetime of a cost estimate in ms. */
const ESTIMATE_TTL_MS = 60_000;

interface Estimate {
  readonly at: number;
  readonly cost: number;
}

/** Estimates by statement. Queries that differ only in values share an estimate, since it is for the generic plan. */
const ESTIMATES = new WeakMap<GovernedPlan['query'], Estimate>();

/** Returns the lowest cost cap among the caller's data roles; null if none of them has a cap. */
function costCapOf({ access, snapshot }: Caller): number | null {
  let cap: number | null = null;
  for (const role of access.dataRoles) {
    const roleCap = snapshot.roles.get(role)?.maxCost ?? null;
    if (roleCap !== null) cap = Math.min(cap ?? roleCap, roleCap);
  }
  return cap;
}

/**
 * Checks the database's generic cost estimate against the lowest cap of the caller's roles. Returns undefined if there
 * is no cap.
 *
 * @throws QueryError E0527 beyond the cap, and errors of `GovernedEngine.explain`
 */
export function withinCost(
  parts: RunningParts,
  caller: Caller,
  plan: GovernedPlan,
): Promise<void> | undefined {
  const cap = costCapOf(caller);
  if (cap === null) return undefined;
  return estimateOf(parts, caller, plan).then((cost) => {
    if (cost > cap) throw queryError('costCap', {});
  });
}

/** Charges a statement's estimated cost to the caller's quotas. Returns undefined if no quota counts cost. */
export function costCharge(
  parts: RunningParts,
  caller: Caller,
  plan: GovernedPlan,
): Promise<void> | undefined {
  if (!countsCost(caller)) return undefined;
  return estimateOf(parts, caller, plan).then((cost) => chargeUse(parts, caller, 'cost', Math.ceil(cost)));
}

/** True if a quota of the caller counts cost, so that the cost of each statement is estimated before it runs. */
export function countsCost(caller: Caller): boolean {
  return quotasFor(caller, 'query').some(({ unit }) => unit === 'cost');
}

async function estimateOf(parts: RunningParts, caller: Caller, plan: GovernedPlan): Promise<number> {
  const estimate = ESTIMATES.get(plan.query);
  if (estimate !== undefined && performance.now() - estimate.at < ESTIMATE_TTL_MS) return estimate.cost;
  const { lines } = await explainLines(parts, caller, plan, { maxRows: 0, signal: null, charged: true });
  // The first line has the total: `Sort  (cost=1.10..2.20 rows=3 width=4)`.
  const cost = Number(/\(cost=[\d.]+?\.\.([\d.]+) /.exec(lines[0] ?? '')?.[1] ?? Number.NaN);
  if (Number.isNaN(cost)) throw new InternalError('the database gave no estimate');
  ESTIMATES.set(plan.query, { at: performance.now(), cost });
  return cost;
}

export interface QuestionTime {
  /** The deadline on the clock of `performance.now()`; `Infinity` if there is none. */
  readonly until: number;
  readonly signal: AbortSignal | null;
  end(): void;
}

/** Returns a deadline with a signal that aborts then, or when `signal` does; a `timeoutMs` of 0 means no timeout. */
export function questionTime(timeoutMs: number, signal: AbortSignal | null): QuestionTime {
  if (timeoutMs <= 0) return { until: Number.POSITIVE_INFINITY, signal, end: () => undefined };
  const timeout = new AbortController();
  const onTimeout = (): void => timeout.abort(queryError('timedOut', { seconds: timeoutMs / 1_000 }));
  const timer = setTimeout(onTimeout, timeoutMs);
  return {
    until: performance.now() + timeoutMs,
    signal: signal === null ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
    end: () => clearTimeout(timer),
  };
}

/** Length in UTF-16 code units below which a text always compiles quickly. */
const SMALL_TEXT = 256;

/** Compile deadline in ms: a hundred times longer than any text within the compiler's limits takes. */
const DEADLINE_MS = 2_000;

/**
 * Runs `compile` with a deadline, which bounds how long the thread is blocked. Texts within the compiler's limits never
 * take that long.
 *
 * @throws QueryError E0511, 54001
 */
export function withinDeadline<T>(
  { log }: Pick<RecordingParts, 'log'>,
  { identity }: PlanningCaller,
  size: number,
  compile: () => T,
): T {
  if (size <= SMALL_TEXT) return compile();
  try {
    return stopAfter(DEADLINE_MS, compile);
  } catch (error) {
    if (!(error instanceof TimeLimitError)) throw error;
    log.error('a text was not compiled', { caller: identity.subject, size, reason: error.message });
    throw queryError('tooComplex', { what: 'the milliseconds to compile it', limit: DEADLINE_MS });
  }
}
