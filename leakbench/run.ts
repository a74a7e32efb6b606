import { type Attack, type AttackClass, CLASSES } from './attacks/index.js';
import { type Endpoint, type EndpointKind, NotExpressible } from './endpoint.js';
import { judge, type Outcome, type Verdict } from './judge.js';
import { QUESTIONS, type Question } from './questions.js';
import { createWorlds, dropWorlds } from './world.js';

export interface Run {
  readonly name: string;
  readonly what: string;
  readonly seconds: number;
  readonly verdicts: readonly Verdict[];
  /** By class: legitimate questions that were answered, of how many. */
  readonly usable: ReadonlyMap<AttackClass, { readonly answered: number; readonly of: number }>;
}

/** Tries attacks on endpoints one after another, in worlds that are made for them and dropped afterwards. */
export async function runEndpoints(
  kinds: readonly EndpointKind[],
  url: string,
  attacks: readonly Attack[],
  onRun: (run: Run) => void = () => undefined,
): Promise<readonly Run[]> {
  const runs: Run[] = [];
  const done = (run: Run): void => {
    runs.push(run);
    onRun(run);
  };
  const groups = new Map<string, EndpointKind[]>();
  for (const kind of kinds) {
    const name = kind.shares ?? kind.name;
    groups.set(name, [...(groups.get(name) ?? []), kind]);
  }
  for (const [name, group] of groups) await runGroup(name, group, url, attacks, done);
  return runs;
}

async function runGroup(
  name: string,
  kinds: readonly EndpointKind[],
  url: string,
  attacks: readonly Attack[],
  done: (run: Run) => void,
): Promise<void> {
  const prefix = `leakbench_${name.replace(/\W+/g, '_').toLowerCase()}`;
  const worlds = await createWorlds(url, prefix, kinds[0]?.data ?? 'everything');
  const endpoints: Endpoint[] = [];
  try {
    for (const kind of kinds) {
      const start = performance.now();
      const endpoint = await kind.start(worlds);
      endpoints.push(endpoint);
      const verdicts: Verdict[] = [];
      for (const attack of coldFirst(attacks)) verdicts.push(await judge(endpoint, attack));
      const usable = await usability(endpoint, QUESTIONS);
      const seconds = (performance.now() - start) / 1_000;
      done({ name: kind.name, what: endpoint.what, seconds, verdicts, usable });
    }
  } finally {
    for (const endpoint of endpoints) await endpoint.close();
    await dropWorlds(url, prefix);
  }
}

/** The attacks that others warm caches for come first: the clerk has then filled none. */
export function coldFirst(attacks: readonly Attack[]): readonly Attack[] {
  const isWarm = ({ before }: Attack): boolean => before !== undefined;
  return [...attacks.filter(isWarm), ...attacks.filter((attack) => !isWarm(attack))];
}

async function usability(endpoint: Endpoint, questions: readonly Question[]): Promise<Run['usable']> {
  const usable = new Map<AttackClass, { answered: number; of: number }>();
  for (const question of questions) {
    const known = usable.get(question.class) ?? { answered: 0, of: 0 };
    const isAnswered = await answers(endpoint, question);
    usable.set(question.class, { answered: known.answered + (isAnswered ? 1 : 0), of: known.of + 1 });
  }
  return usable;
}

async function answers(endpoint: Endpoint, { steps, first }: Question): Promise<boolean> {
  const session = await endpoint.open('a');
  try {
    let cell: string | null = null;
    for (const step of steps) {
      const { rows, error } = await session.ask(step);
      if (error !== null) return false;
      cell = rows[0]?.[0] ?? null;
    }
    return plain(cell) === first;
  } catch (error) {
    if (error instanceof NotExpressible) return false;
    throw error;
  } finally {
    await session.close();
  }
}

/** A cell without the quotes of JSON, and truth values as words. */
function plain(cell: string | null): string | null {
  const text = cell?.replace(/^"(.*)"$/, '$1') ?? null;
  return text === 't' ? 'true' : text === 'f' ? 'false' : text;
}

/** Verdicts of a run by class and outcome. */
export function countsOf(
  run: Pick<Run, 'verdicts'>,
): ReadonlyMap<AttackClass, Readonly<Record<Outcome, number>>> {
  return new Map(
    CLASSES.map((of) => {
      const own = run.verdicts.filter((v) => v.attack.class === of);
      const count = (outcome: Outcome): number => own.filter((v) => v.outcome === outcome).length;
      return [
        of,
        {
          leak: count('leak'),
          answered: count('answered'),
          refused: count('refused'),
          'not expressible': count('not expressible'),
          noise: count('noise'),
        },
      ];
    }),
  );
}
