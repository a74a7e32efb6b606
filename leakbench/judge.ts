import type { Attack } from './attacks/index.js';
import {
  type BenchCaller,
  type Endpoint,
  type EndpointAnswer,
  type EndpointSession,
  NotExpressible,
  WORLDS,
  type WorldName,
} from './endpoint.js';

/**
 * Outcome of an attack.
 *
 * - `leak`: hidden data changes the answer.
 * - `answered`, `refused`: the answer is the same, and its last statement succeeded or not.
 * - `not expressible`: the endpoint has no form for it.
 * - `noise`: answers of equal worlds differ, so the attack cannot be judged.
 */
export type AttackOutcome = 'leak' | 'answered' | 'refused' | 'not expressible' | 'noise';

export interface AttackVerdict {
  readonly attack: Attack;
  readonly outcome: AttackOutcome;
  /** Answers of the worlds that differ: `a` and `b`, or for noise `a` and its copy; for `timing` the medians in ms. */
  readonly seen: { readonly a: string; readonly b: string } | null;
}

/** IDs of requests, which are random. */
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** Rounds in which a difference must show, between worlds that differ or between equal ones. */
const ROUNDS = 3;

/** Judges an attack by whether worlds that differ only in hidden data answer differently, and equal ones do not. */
export async function judge(endpoint: Endpoint, attack: Attack): Promise<AttackVerdict> {
  if (attack.class === 'timing') return judgeTime(endpoint, attack);
  for (let [leaks, noises] = [0, 0]; ; ) {
    const seen = await Promise.all(WORLDS.map((world) => observed(endpoint, world, attack)));
    const [a = null, copy = null, b = null] = seen;
    if (a === null || copy === null || b === null) return { attack, outcome: 'not expressible', seen: null };
    const [textA = '', textCopy = '', textB = ''] = [a, copy, b].map((answers) =>
      JSON.stringify(answers).replace(UUID, 'uuid'),
    );
    if (textA === textB && textA === textCopy)
      return { attack, outcome: a.at(-1)?.error == null ? 'answered' : 'refused', seen: null };
    if (textA !== textCopy) noises++;
    else leaks++;
    if (noises === ROUNDS) return { attack, outcome: 'noise', seen: { a: textA, b: textCopy } };
    if (leaks === ROUNDS) return { attack, outcome: 'leak', seen: { a: textA, b: textB } };
  }
}

/** Answers of a world to each step; null if the endpoint has no form for one of them. */
async function observed(
  endpoint: Endpoint,
  world: WorldName,
  attack: Attack,
): Promise<readonly EndpointAnswer[] | null> {
  const { steps, values, login, before, first = [], language = 'sql' } = attack;
  if (language !== 'sql' && endpoint.languages?.includes(language) !== true) return null;
  if (before !== undefined && endpoint.others === undefined) return null;
  const open: EndpointSession[] = [];
  try {
    const start = async (caller: BenchCaller, questions: readonly string[]): Promise<EndpointSession> => {
      const session = await endpoint.open(world, caller === 'clerk' ? login : undefined, caller);
      open.push(session);
      for (const question of questions) await session.ask(question);
      return session;
    };
    const early = first.length > 0 ? await start('clerk', first) : null;
    if (before !== undefined) for (const caller of endpoint.others ?? []) await start(caller, before);
    const clerk = early ?? (await start('clerk', []));
    const answers: EndpointAnswer[] = [];
    for (const [i, step] of steps.entries())
      answers.push(await clerk.ask(step, i === steps.length - 1 ? values : undefined));
    return answers;
  } catch (error) {
    if (error instanceof NotExpressible) return null;
    throw error;
  } finally {
    for (const session of open) await session.close();
  }
}

/** Answers of each world that are timed in a round. */
const SAMPLES = 40;
/** Standard scores of a rank-sum test: a difference is sure above the first; equal worlds stay below the second. */
const [SURE, EQUAL] = [5.5, 3];

async function judgeTime(endpoint: Endpoint, attack: Attack): Promise<AttackVerdict> {
  let medians = { a: 0, b: 0 };
  for (let round = 0; round < 3; round++) {
    const times = await timed(endpoint, attack);
    if (times === null) return { attack, outcome: 'not expressible', seen: null };
    medians = { a: median(times.a), b: median(times.b) };
    if (Math.abs(rankScore(times.a, times.copy)) > EQUAL) return { attack, outcome: 'noise', seen: null };
    if (Math.abs(rankScore(times.a, times.b)) < SURE) return { attack, outcome: 'answered', seen: null };
  }
  return {
    attack,
    outcome: 'leak',
    seen: { a: `${medians.a.toFixed(3)} ms`, b: `${medians.b.toFixed(3)} ms` },
  };
}

type TimesByWorld = Readonly<Record<WorldName, readonly number[]>>;

async function timed(endpoint: Endpoint, { steps }: Attack): Promise<TimesByWorld | null> {
  const [text = ''] = steps;
  const sessions = await Promise.all(
    WORLDS.map(async (world) => ({ world, session: await endpoint.open(world) })),
  );
  const times: Record<WorldName, number[]> = { a: [], copy: [], b: [] };
  try {
    for (const { session } of sessions) for (let i = 0; i < 3; i++) await session.ask(text);
    for (let i = 0; i < SAMPLES; i++)
      // Another order each time, so that none is always the one after a pause.
      for (let n = 0; n < WORLDS.length; n++) {
        const next = sessions[(n + i) % WORLDS.length];
        if (next === undefined) continue;
        const start = performance.now();
        await next.session.ask(text);
        times[next.world].push(performance.now() - start);
      }
    return times;
  } catch (error) {
    if (error instanceof NotExpressible) return null;
    throw error;
  } finally {
    for (const { session } of sessions) await session.close();
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((x, y) => x - y)[Math.floor(values.length / 2)] ?? 0;
}

/** Standard score of the rank-sum test (Mann and Whitney): 0 if neither is larger. */
export function rankScore(x: readonly number[], y: readonly number[]): number {
  let sum = 0;
  for (const a of x) for (const b of y) sum += a > b ? 1 : a === b ? 0.5 : 0;
  const [n, m] = [x.length, y.length];
  return (sum - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
}
