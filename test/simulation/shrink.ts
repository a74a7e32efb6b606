import type { GatewayCode } from './bundle.js';
import type { Act, Plan, SessionPlan } from './plan.js';
import { type RunResult, run } from './run.js';

export interface ShrunkPlan {
  readonly plan: Plan;
  readonly result: RunResult;
  readonly runs: number;
}

/**
 * Removes sessions, acts and events from a plan as long as the same kind of violation shows, for at most `seconds`.
 * Fewer acts change what the scheduler does, so each attempt is a run of its own.
 */
export async function shrink(
  plan: Plan,
  code: GatewayCode,
  found: RunResult,
  seconds: number,
): Promise<ShrunkPlan> {
  const what = found.violations[0]?.what;
  const until = performance.now() + 1_000 * seconds;
  let best = { plan, result: found, runs: 0 };
  const isSmaller = async (candidate: Plan): Promise<boolean> => {
    if (performance.now() > until) return false;
    const result = await run(candidate, code);
    const isSame = result.violations[0]?.what === what;
    best = { ...(isSame ? { plan: candidate, result } : best), runs: best.runs + 1 };
    return isSame;
  };
  await smallest(best.plan.sessions, (sessions) => isSmaller({ ...best.plan, sessions }));
  await smallest(best.plan.events, (events) => isSmaller({ ...best.plan, events }));
  for (let n = 0; n < best.plan.sessions.length; n++) {
    const acts = best.plan.sessions[n]?.acts ?? [];
    await smallest(acts, (fewer) =>
      isSmaller({ ...best.plan, sessions: withActs(best.plan.sessions, n, fewer) }),
    );
  }
  await smallest(best.plan.sessions, (sessions) => isSmaller({ ...best.plan, sessions }));
  return best;
}

function withActs(sessions: readonly SessionPlan[], n: number, acts: readonly Act[]): readonly SessionPlan[] {
  return sessions.map((session, i) => (i === n ? { ...session, acts } : session));
}

/** Leaves out ever smaller parts of a list, as long as `keeps` says that the rest is enough. */
async function smallest<T>(
  items: readonly T[],
  keeps: (fewer: readonly T[]) => Promise<boolean>,
): Promise<void> {
  let left = items;
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < left.length; ) {
      const fewer = [...left.slice(0, at), ...left.slice(at + size)];
      if (await keeps(fewer)) left = fewer;
      else at += size;
    }
  }
}
