import {
  compileSnapshot,
  PolicyProblems,
  type PolicySnapshot,
  supposedIdentity,
} from '../../policy/index.js';
import type { Service } from '../../src/service/service.js';
import type { PolicyTest, PolicyTests } from './document.js';
import { judge } from './judge.js';
import { type Mutant, mutantsOf } from './mutants.js';
import { observe } from './observe.js';
import { openStand } from './stand.js';

interface TestResult {
  readonly name: string;
  readonly ok: boolean;
  /** What did not come as expected. */
  readonly faults: readonly string[];
}

/** A change of one rule that no test noticed. */
type UnnoticedChange = Pick<Mutant, 'rule' | 'change'>;

/** How far the tests hold the policy: each rule is changed alone, and some test must fail. */
export interface Coverage {
  readonly changes: number;
  readonly held: number;
  readonly unheld: readonly UnnoticedChange[];
}

export interface PolicyTestRun {
  readonly ok: boolean;
  readonly results: readonly TestResult[];
  /** Null where it was not asked for, or a test fails. */
  readonly coverage: Coverage | null;
}

/** Hears how many tests ran, and how many changed rules they were held against. */
export type TestProgress = (tests: number, changes: number) => void;

/**
 * Runs policy tests: each question takes the one way of every question, over embedded tables with the rows of the file.
 *
 * @throws ManifestProblems, PolicyFault, UnfitRows, StartProblem
 */
export async function runPolicyTests(
  tests: PolicyTests,
  withCoverage: boolean,
  progress: TestProgress = () => undefined,
): Promise<PolicyTestRun> {
  const stand = await openStand(tests);
  try {
    const { service } = stand;
    const { snapshot } = service.model();
    if (snapshot === null) throw new Error('a policy that was loaded does not serve');
    const results: TestResult[] = [];
    for (const test of tests.tests) {
      const faults = await faultsOf(service, snapshot, test);
      results.push({ name: test.name, ok: faults.length === 0, faults });
      progress(results.length, 0);
    }
    const ok = results.every((r) => r.ok);
    return {
      ok,
      results,
      coverage: ok && withCoverage ? await coverageOf(service, snapshot, tests.tests, progress) : null,
    };
  } finally {
    await stand.close();
  }
}

async function faultsOf(
  service: Service,
  snapshot: PolicySnapshot,
  test: PolicyTest,
): Promise<readonly string[]> {
  return judge(test, await observe(service, snapshot, test));
}

async function coverageOf(
  service: Service,
  snapshot: PolicySnapshot,
  tests: readonly PolicyTest[],
  progress: TestProgress,
): Promise<Coverage> {
  const unheld: UnnoticedChange[] = [];
  let changes = 0;
  const { manifest } = service.model();
  for (const mutant of mutantsOf(snapshot.document, manifest)) {
    changes += 1;
    progress(tests.length, changes);
    const { rule, change } = mutant;
    if (!(await isNoticed(service, snapshot, mutant, tests))) unheld.push({ rule, change });
  }
  return { changes, held: changes - unheld.length, unheld };
}

/** Whether a test fails under the mutant, or the mutant is no policy at all. */
async function isNoticed(
  service: Service,
  snapshot: PolicySnapshot,
  { document, role }: Mutant,
  tests: readonly PolicyTest[],
): Promise<boolean> {
  const changed = compiled(service, snapshot, document);
  if (changed === null) return true;
  for (const test of tests) {
    if (!supposedIdentity(test, snapshot).aclRoles.includes(role)) continue;
    if ((await faultsOf(service, changed, test)).length > 0) return true;
  }
  return false;
}

function compiled(
  service: Service,
  { tenant }: PolicySnapshot,
  document: Mutant['document'],
): PolicySnapshot | null {
  try {
    return compileSnapshot(document, service.model().manifest.catalog, tenant);
  } catch (error) {
    if (error instanceof PolicyProblems) return null;
    throw error;
  }
}
