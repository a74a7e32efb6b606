import type { Test } from 'tap';
import type { Deed, Direction, FaultProxy } from '../../support/fault-proxy.js';
import { type Dice, diceFrom } from '../oracle/dice.js';
import { judge } from './judge.js';
import { play, unsettled } from './play.js';
import type { Login, Trace } from './traces.js';
import type { World } from './world.js';

/** OSL_FAULT_OFFSETS: at how many places each trace is broken in each way; where it has fewer, at every one. */
export const OFFSETS = Number(process.env['OSL_FAULT_OFFSETS'] ?? 2);
export const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_122);
const DIRECTIONS: readonly Direction[] = ['up', 'down'];

/** What is broken, and how. */
export interface Plan {
  readonly name: string;
  readonly login: Login;
  readonly trace: Trace;
  /** Each with the share of the places at which it is tried. */
  readonly deeds: Readonly<Record<string, readonly [deed: Deed, share: number]>>;
  readonly proxy: FaultProxy;
  /** Where the client connects. */
  readonly port: number;
  /** SQLSTATEs that its statements may fail with. */
  readonly codes: readonly string[];
  /** Where the next client asks. */
  readonly next: number;
  /** Before each run. */
  readonly prepare?: () => Promise<void>;
}

/** Plays the trace once whole, and then with one fault after another. Gives how many, and what was wrong with them. */
export async function breakEverywhere(
  t: Test,
  world: World,
  plan: Plan,
): Promise<{ readonly cases: number; readonly wrong: readonly string[] }> {
  const { proxy, login, trace, port } = plan;
  const dice = diceFrom(SEED + plan.name.length);
  await plan.prepare?.();
  proxy.arm(null);
  const whole = await play(world, port, login, trace);
  if (!whole.whole || whole.fault !== null) throw new Error(`${plan.name}: untroubled, it is ${whole.fault}`);
  const totals = { up: proxy.passed('up'), down: proxy.passed('down') };
  const wrong: string[] = [];
  let cases = 0;
  for (const [what, [deed, share]] of Object.entries(plan.deeds)) {
    for (const direction of DIRECTIONS) {
      for (const after of places(dice, totals[direction], share)) {
        cases++;
        await plan.prepare?.();
        proxy.arm({ direction, after, deed });
        const label = `${plan.name}: ${what} ${direction} after ${after} of ${totals[direction]} bytes`;
        const found = await verdict(world, plan, whole.heard, deed).catch((cause: unknown) => String(cause));
        if (found !== null) wrong.push(`${label}: ${found}`);
        if (wrong.length >= 5) return { cases, wrong };
      }
    }
  }
  t.comment(`${plan.name}: ${cases} faults within ${totals.up} bytes up and ${totals.down} down`);
  return { cases, wrong };
}

async function verdict(
  world: World,
  plan: Plan,
  whole: Parameters<typeof judge>[1],
  deed: Deed,
): Promise<string | null> {
  const played = await play(world, plan.port, plan.login, plan.trace);
  plan.proxy.arm(null);
  return (
    played.fault ??
    judge(played.heard, whole, plan.codes) ??
    (deed === 'delay' && played.heard.length < whole.length
      ? 'it stops short, though nothing was lost'
      : null) ??
    (await unsettled(world, plan.codes, plan.next))
  );
}

/** Answers beyond so many bytes are broken at `MOST` places at most. */
const LARGE = 10_000;
const MOST = 200;

/** Seeded, or all of them where so many are wanted. */
function places(dice: Dice, total: number, share: number): readonly number[] {
  const offsets = total > LARGE ? Math.min(MOST, OFFSETS) : OFFSETS;
  const wanted = Math.max(1, Math.round(offsets * share));
  if (wanted > total) return Array.from({ length: total + 1 }, (_, i) => i);
  return [...new Set(Array.from({ length: wanted }, () => dice.upTo(total)))];
}
