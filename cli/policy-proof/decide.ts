import {
  type Counterexample,
  counterexampleOf,
  type Encoder,
  type Formula,
  type Obligation,
  or,
  scriptOf,
  softConstraintsOf,
} from '../../policy/proof/index.js';
import type { PolicyTests } from '../policy-tests/document.js';
import type { TestService } from '../policy-tests/test-service.js';
import type { Solver } from './solver.js';

export type ProofResult =
  | { readonly kind: 'proved' }
  | { readonly kind: 'refuted'; readonly counterexample: Counterexample }
  | { readonly kind: 'unknown'; readonly because: string };

/** Runs a counterexample in the gateway's code. Returns null if the run confirms it, otherwise the reason why not. */
export type Trial = (counterexample: Counterexample) => Promise<string | null>;

/** Tries to prove that all obligations are impossible. A counterexample counts only if a run confirms it. */
export async function decide(
  obligations: readonly Obligation[],
  solver: Solver,
  trial: Trial,
): Promise<ProofResult> {
  let unknown: ProofResult | null = null;
  for (const obligation of obligations) {
    const verdict = await decideOne(obligation, solver, trial);
    if (verdict.kind === 'refuted') return verdict;
    if (verdict.kind === 'unknown') unknown ??= verdict;
  }
  return unknown ?? { kind: 'proved' };
}

async function decideOne(obligation: Obligation, solver: Solver, trial: Trial): Promise<ProofResult> {
  const search = await counterexample(obligation, solver);
  switch (search.kind) {
    case 'impossible':
      return { kind: 'proved' };
    case 'unknown':
      return search;
    case 'possible': {
      const against = await trial(search.counterexample);
      if (against === null) return { kind: 'refuted', counterexample: search.counterexample };
      const { unknowns } = search.counterexample;
      const because = unknowns.length > 0 ? `it depends on ${unknowns.join(', ')}` : against;
      return { kind: 'unknown', because };
    }
  }
}

/** Returns a boolean for each formula: true if it is proved that no row and caller satisfy the formula. */
export async function areImpossible(
  { facts }: Encoder,
  formulas: readonly Formula[],
  solver: Solver,
): Promise<readonly boolean[]> {
  const open = formulas.filter(({ kind }) => kind !== 'boolean');
  const answers =
    open.length === 0
      ? []
      : await solver.check(
          scriptOf(
            facts,
            open.map((f) => [f]),
          ),
        );
  const impossible = new Set(open.filter((_, i) => answers[i]?.kind === 'unsat'));
  return formulas.map((f) => (f.kind === 'boolean' ? !f.value : impossible.has(f)));
}

type Search =
  | { readonly kind: 'impossible' }
  | { readonly kind: 'possible'; readonly counterexample: Counterexample }
  | { readonly kind: 'unknown'; readonly because: string };

async function counterexample(obligation: Obligation, solver: Solver): Promise<Search> {
  const formulas = obligation.parts.map((p) => p.formula);
  const refuted = or(...formulas);
  if (refuted.kind === 'boolean' && !refuted.value) return { kind: 'impossible' };
  const wished = [refuted, ...softConstraintsOf(obligation)];
  const script = scriptOf(obligation.facts, [[refuted], wished], formulas);
  const [found, readable] = await solver.check(script, { wantsValues: true });
  if (found === undefined || found.kind === 'unsat') return { kind: 'impossible' };
  if (found.kind === 'unknown') return { kind: 'unknown', because: `the solver gave up: ${found.reason}` };
  const { constants } = readable?.kind === 'sat' ? readable : found;
  const values = counterexampleOf(obligation, script.model(new Map(constants)));
  return values === null
    ? { kind: 'unknown', because: 'the solver found values that the database does not have' }
    : { kind: 'possible', counterexample: values };
}

/** Formats a counterexample for users: what it shows, the row, the callers, and the conditions that hold. */
export function* counterexampleLines({
  part,
  relation,
  row,
  callers,
  conditions,
}: Counterexample): Generator<string> {
  yield `           ${part.description}`;
  const cells = [...row].map(([column, value]) => `${column} = ${value ?? 'NULL'}`);
  yield `           row of ${relation.name}: ${cells.length === 0 ? 'any' : cells.join(', ')}`;
  for (const caller of new Set(part.checks.map((c) => c.caller))) {
    const { roles = [], attributes = new Map() } = callers[caller] ?? {};
    const has = [...attributes].map(
      ([name, value]) => `${name} = ${value === 'any' ? 'any' : `[${value.join(', ')}]`}`,
    );
    yield `           caller with ${roles.join(', ')}${has.length === 0 ? '' : `, ${has.join(', ')}`}`;
  }
  for (const key of conditions) yield `           while ${key}`;
}

/** Runs counterexamples one at a time, on an embedded database that is opened for the first one. */
export function openTrials(files: Pick<PolicyTests, 'manifestFile' | 'policyFile'>): {
  readonly run: Trial;
  close(): Promise<void>;
} {
  let opened: Promise<TestService> | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return {
    run: (counterexample) => {
      opened ??= open(files);
      const stand = opened;
      const result = last.then(async () => {
        const { trial } = await import('./replay.js');
        return trial(counterexample, await stand);
      });
      last = result.catch(() => undefined);
      return result;
    },
    close: async () => (await opened)?.close(),
  };
}

async function open(files: Pick<PolicyTests, 'manifestFile' | 'policyFile'>): Promise<TestService> {
  const { openTestService } = await import('../policy-tests/test-service.js');
  return openTestService({ ...files, data: new Map() });
}
