import { Random } from './random.js';
import { CALLERS, DEALS, KINDS, type Kind, type Question, ZONES } from './world.js';

/** One act of a session. */
export type Act =
  | { readonly do: 'ask'; readonly question: Question }
  /** By a prepared statement that the session keeps. */
  | { readonly do: 'prepared'; readonly question: Question; readonly binary: boolean }
  /** Several in one write. */
  | { readonly do: 'pipeline'; readonly questions: readonly Question[] }
  /** Within BEGIN and COMMIT. */
  | { readonly do: 'block'; readonly questions: readonly Question[] }
  | { readonly do: 'cancel'; readonly question: Question; readonly afterUs: number }
  /** Reads nothing for a while. */
  | { readonly do: 'slowly'; readonly question: Question; readonly us: number }
  /** Sends a question and breaks the connection. */
  | { readonly do: 'vanish'; readonly question: Question; readonly afterUs: number }
  /** Sends a question and ends its side. */
  | { readonly do: 'halfClose'; readonly question: Question }
  | { readonly do: 'zone'; readonly zone: number }
  | { readonly do: 'rest'; readonly us: number };

export interface SessionPlan {
  readonly caller: number;
  readonly gateway: number;
  readonly surface: 'wire' | 'rest';
  readonly atUs: number;
  readonly acts: readonly Act[];
}

/** Change or trouble of the gateways, their disks or the database. */
export type Event =
  | { readonly do: 'reload'; readonly gateway: number; readonly atUs: number }
  | { readonly do: 'revoke'; readonly gateway: number; readonly caller: number; readonly atUs: number }
  | { readonly do: 'kill' | 'power' | 'restart'; readonly gateway: number; readonly atUs: number }
  | {
      readonly do: 'disk full' | 'disk slow' | 'disk broken';
      readonly gateway: number;
      readonly atUs: number;
      readonly forUs: number;
    }
  | { readonly do: 'end sessions' | 'reset sessions'; readonly atUs: number }
  | {
      readonly do:
        | 'database down'
        | 'database full'
        | 'database breaks'
        | 'database slow'
        | 'control down'
        | 'control resets'
        | 'control slow';
      readonly atUs: number;
      readonly forUs: number;
    };

/** All that is decided before a run begins. The scheduler decides the rest, by the same seed. */
export interface Plan {
  readonly seed: number;
  readonly gateways: number;
  /** True if the gateways share a control database, which has their policy. */
  readonly isShared: boolean;
  readonly sync: 'disk' | 'kernel';
  readonly poolSize: number;
  readonly sessions: readonly SessionPlan[];
  readonly events: readonly Event[];
}

export interface PlanSize {
  readonly sessions: number;
}

/** Time over which sessions begin, for each of them, in µs: close together, or over as long as gateways take to follow. */
const CLOSE_US = 3_000;
const WIDE_US = 200_000;

export function planOf(seed: number, { sessions }: PlanSize): Plan {
  const random = new Random(seed ^ 0x5eed);
  const gateways = random.of([1, 1, 2, 3] as const);
  const isShared = gateways > 1 && random.chance(0.7);
  const spanUs = sessions * (isShared && random.chance(0.6) ? WIDE_US : CLOSE_US);
  const bold = random.of(['calm', 'model', 'database', 'disk', 'death', 'all'] as const);
  // Few callers and few questions, so that they meet in caches and on shared sessions.
  const isNarrow = random.chance(0.5);
  const callers = random.between(2, isNarrow ? 4 : CALLERS);
  const kinds: readonly [Kind, ...Kind[]] = isNarrow
    ? random.of<[Kind, ...Kind[]]>([
        ['point'],
        ['dated'],
        ['tariff'],
        ['point', 'division'],
        ['point', 'upTo'],
        ['dated', 'tariff'],
      ])
    : [...KINDS, 'point', 'point', 'point', 'dated', 'tariff'];
  const favourites = Array.from({ length: random.between(1, 4) }, () => questionOf(random, kinds));
  const question = (): Question =>
    random.chance(0.6) ? random.of([questionOf(random, kinds), ...favourites]) : questionOf(random, kinds);
  const all: SessionPlan[] = [];
  for (let n = 0; n < sessions; n++) {
    const surface = random.chance(0.65) ? 'wire' : 'rest';
    const acts = Array.from({ length: isNarrow ? random.between(4, 24) : random.between(2, 9) }, () =>
      actOf(random, surface, question),
    );
    all.push({
      caller: random.below(callers),
      gateway: random.below(gateways),
      surface,
      atUs: random.below(spanUs),
      acts,
    });
  }
  const sync = random.chance(0.5) ? 'disk' : 'kernel';
  return {
    seed,
    gateways,
    isShared,
    sync,
    poolSize: random.between(2, 6),
    sessions: all.sort((a, b) => a.atUs - b.atUs),
    events: eventsOf(random, { bold, gateways, spanUs, callers, sync, isShared }),
  };
}

function questionOf(random: Random, kinds: readonly [Kind, ...Kind[]]): Question {
  const kind = random.of(kinds);
  const most = kind === 'upTo' ? random.of([30, 200, DEALS]) : random.of([24, DEALS]);
  return { kind, id: random.between(1, most) };
}

function actOf(random: Random, surface: 'wire' | 'rest', question: () => Question): Act {
  const ask: Act = { do: 'ask', question: question() };
  const afterUs = random.of([0, random.below(500), random.below(4_000)]);
  if (surface === 'rest') {
    if (random.chance(0.08)) return { do: 'vanish', question: question(), afterUs };
    if (random.chance(0.06)) return { do: 'slowly', question: question(), us: random.between(1_000, 60_000) };
    return random.chance(0.08) ? { do: 'rest', us: random.between(100, 30_000) } : ask;
  }
  const several = (): Question[] => Array.from({ length: random.between(2, 5) }, question);
  const dice = random.next();
  if (dice < 0.32) return ask;
  if (dice < 0.5) return { do: 'prepared', question: question(), binary: random.chance(0.5) };
  if (dice < 0.62) return { do: 'pipeline', questions: several() };
  if (dice < 0.68) return { do: 'block', questions: several() };
  if (dice < 0.76) return { do: 'cancel', question: question(), afterUs };
  if (dice < 0.81) return { do: 'slowly', question: question(), us: random.between(1_000, 60_000) };
  if (dice < 0.85) return { do: 'vanish', question: question(), afterUs };
  if (dice < 0.87) return { do: 'halfClose', question: question() };
  if (dice < 0.95) return { do: 'zone', zone: random.below(ZONES.length) };
  return { do: 'rest', us: random.between(100, 30_000) };
}

interface EventScope {
  readonly bold: 'calm' | 'model' | 'database' | 'disk' | 'death' | 'all';
  readonly gateways: number;
  readonly spanUs: number;
  readonly callers: number;
  readonly sync: 'disk' | 'kernel';
  readonly isShared: boolean;
}

function eventsOf(
  random: Random,
  { bold, gateways, spanUs, callers, sync, isShared }: EventScope,
): readonly Event[] {
  const events: Event[] = [];
  const at = (): { readonly atUs: number; readonly gateway: number } => ({
    atUs: random.below(spanUs),
    gateway: random.below(gateways),
  });
  const some = (of: EventScope['bold'], most: number, add: () => void): void => {
    if (bold !== of && bold !== 'all') return;
    for (let n = random.between(0, bold === 'all' ? Math.ceil(most / 2) : most); n > 0; n--) add();
  };
  some('model', 8, () => events.push({ do: 'reload', ...at() }));
  some('model', 2, () => events.push({ do: 'revoke', caller: random.below(callers), ...at() }));
  some('database', 3, () => events.push({ do: random.of(['end sessions', 'reset sessions']), ...at() }));
  some('database', 3, () => {
    const what = random.of(['database down', 'database full', 'database breaks', 'database slow'] as const);
    events.push({ do: what, ...at(), forUs: random.between(10_000, 600_000) });
  });
  if (isShared) {
    some('database', 2, () => events.push({ do: 'reload', ...at() }));
    some('database', 2, () => {
      const what = random.of(['control down', 'control resets', 'control slow'] as const);
      events.push({ do: what, ...at(), forUs: random.between(10_000, 9_000_000) });
    });
  }
  some('disk', 4, () => {
    const what = random.of(['disk full', 'disk slow', 'disk broken'] as const);
    events.push({ do: what, ...at(), forUs: random.between(5_000, 400_000) });
  });
  const deaths = sync === 'disk' ? (['kill', 'power', 'restart'] as const) : (['kill', 'restart'] as const);
  some('death', 2, () => events.push({ do: random.of([...deaths]), ...at() }));
  return events.sort((a, b) => a.atUs - b.atUs);
}
