import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/**
 * What a run tries of cases that are too many for each run: another part for each commit, all of them at night.
 *
 * The part follows from a text: the commit's hash, or `OSL_TEST_PART`, which repeats the run of another commit.
 * `OSL_TEST_PART=all` leaves nothing out.
 */
export const PART: string = process.env['OSL_TEST_PART'] ?? commit();

/** True if nothing is left out. */
export const IS_WHOLE: boolean = PART === 'all';

function commit(): string {
  const { status, stdout } = spawnSync('git', ['-c', 'safe.directory=*', 'rev-parse', 'HEAD'], {
    encoding: 'utf8',
  }); // whoever owns the checkout
  return status === 0 ? stdout.trim() : 'no commit';
}

/**
 * @param suite a name, so that two suites do not always come to the same turn
 * @returns 0 to `turns` − 1
 */
export function turnOf(suite: string, turns: number): number {
  return createHash('sha256').update(`${PART} ${suite}`).digest().readUInt32BE() % turns;
}

/**
 * One in `turns` of the cases, each of which has its turn at some commit; and those that run each time.
 *
 * @param always true of cases that run each time, such as those that found a fault before
 */
export function partOf<T>(
  suite: string,
  cases: readonly T[],
  turns: number,
  always: (one: T) => boolean = () => false,
): readonly T[] {
  if (IS_WHOLE) return cases;
  const turn = turnOf(suite, turns);
  const others = cases.filter((one) => !always(one));
  const chosen = new Set(others.filter((_, i) => i % turns === turn));
  return cases.filter((one) => always(one) || chosen.has(one));
}

/**
 * The seed of a run's random cases: one of `turns`, each of which has been tried; the given one at night, which brings
 * its own.
 */
export function seedOf(suite: string, seed: number, turns = 3): number {
  return IS_WHOLE ? seed : seed + turnOf(suite, turns);
}

/** The integers from `from` to `to` − 1. */
export const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);
