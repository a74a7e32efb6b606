import { type Counterexample, comparisons, type ProvenPolicy } from '../../policy/proof/index.js';
import { decide, type Trial, type Verdict } from '../policy-proof/decide.js';
import type { Solver } from '../policy-proof/solver.js';

/** Difference between what members of a role see of an entity under a proposed policy and under the one that serves. */
export interface RoleDifference {
  readonly role: string;
  readonly entity: string;
  readonly change: 'equal' | 'narrower' | 'wider' | 'incomparable' | 'unknown';
  /** A row and a caller that gain access; null unless it is wider or incomparable. */
  readonly gain: Counterexample | null;
  /** Why it is unknown; null if it is not. */
  readonly because: string | null;
}

/** Compares each role of either policy on each entity that it is granted. */
export function roleDifferences(
  before: ProvenPolicy,
  after: ProvenPolicy,
  solver: Solver,
  trial: Trial,
): Promise<readonly RoleDifference[]> {
  const roles = [...new Set([...before.snapshot.roles.keys(), ...after.snapshot.roles.keys()])];
  const compared = roles.flatMap((role) => {
    const gains = new Map(comparisons([role, role], after, before).map((o) => [o.relation.name, [o]]));
    const losses = new Map(comparisons([role, role], before, after).map((o) => [o.relation.name, [o]]));
    return [...new Set([...gains.keys(), ...losses.keys()])].map(async (entity) => {
      const [gained, lost] = await Promise.all(
        [gains, losses].map((of) => decide(of.get(entity) ?? [], solver, trial)),
      );
      return differenceOf(role, entity, gained ?? PROVED, lost ?? PROVED);
    });
  });
  return Promise.all(compared);
}

const PROVED: Verdict = { kind: 'proved' };

function differenceOf(role: string, entity: string, gained: Verdict, lost: Verdict): RoleDifference {
  const unknown = [gained, lost].find((verdict) => verdict.kind === 'unknown');
  const gain = gained.kind === 'refuted' ? gained.counterexample : null;
  if (unknown?.kind === 'unknown') return { role, entity, change: 'unknown', gain, because: unknown.because };
  const isLost = lost.kind === 'refuted';
  const change = gain === null ? (isLost ? 'narrower' : 'equal') : isLost ? 'incomparable' : 'wider';
  return { role, entity, change, gain, because: null };
}
