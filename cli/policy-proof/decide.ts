import {
  type Counterexample,
  counterexampleOf,
  type Obligation,
  scriptOf,
  wishesOf,
} from '../../policy/proof/index.js';
import type { Solver } from './solver.js';

export type Verdict =
  | { readonly kind: 'proved' }
  | { readonly kind: 'refuted'; readonly counterexample: Counterexample }
  | { readonly kind: 'unknown'; readonly because: string };

/** Runs a counterexample through the product. Returns null if what it says is seen, or why not. */
export type Trial = (counterexample: Counterexample) => Promise<string | null>;

/** Decides whether all obligations are impossible. A counterexample counts only if the product agrees with it. */
export async function decide(
  obligations: readonly Obligation[],
  solver: Solver,
  trial: Trial,
): Promise<Verdict> {
  let unknown: Verdict | null = null;
  for (const obligation of obligations) {
    const verdict = await decideOne(obligation, solver, trial);
    if (verdict.kind === 'refuted') return verdict;
    if (verdict.kind === 'unknown') unknown ??= verdict;
  }
  return unknown ?? { kind: 'proved' };
}

async function decideOne(obligation: Obligation, solver: Solver, trial: Trial): Promise<Verdict> {
  const wished = wishesOf(obligation);
  const first = await counterexample(obligation, wished, solver);
  const found =
    first.kind === 'impossible' && wished.length > 0 ? await counterexample(obligation, [], solver) : first;
  switch (found.kind) {
    case 'impossible':
      return { kind: 'proved' };
    case 'unknown':
      return found;
    case 'possible': {
      const against = await trial(found.counterexample);
      if (against === null) return { kind: 'refuted', counterexample: found.counterexample };
      const { unknowns } = found.counterexample;
      const because = unknowns.length > 0 ? `it depends on ${unknowns.join(', ')}` : against;
      return { kind: 'unknown', because };
    }
    default: {
      const other: never = found;
      return other;
    }
  }
}

/** True if an obligation is proved impossible. */
export async function isImpossible(obligation: Obligation, solver: Solver): Promise<boolean> {
  if (obligation.parts.some(({ formula }) => formula.kind === 'boolean' && formula.value)) return false;
  return (await counterexample(obligation, [], solver)).kind === 'impossible';
}

type Search =
  | { readonly kind: 'impossible' }
  | { readonly kind: 'possible'; readonly counterexample: Counterexample }
  | { readonly kind: 'unknown'; readonly because: string };

async function counterexample(
  obligation: Obligation,
  wished: ReturnType<typeof wishesOf>,
  solver: Solver,
): Promise<Search> {
  if (obligation.parts.every(({ formula }) => formula.kind === 'boolean' && !formula.value))
    return { kind: 'impossible' };
  const script = scriptOf(obligation, wished);
  const answer = await solver.check(script.text);
  switch (answer.kind) {
    case 'unsat':
      return { kind: 'impossible' };
    case 'unknown':
      return { kind: 'unknown', because: `the solver gave up: ${answer.reason}` };
    case 'sat': {
      const found = counterexampleOf(obligation, script.model(new Map(answer.constants)));
      return found === null
        ? { kind: 'unknown', because: 'the solver found values that the database does not have' }
        : { kind: 'possible', counterexample: found };
    }
    default: {
      const other: never = answer;
      return other;
    }
  }
}
