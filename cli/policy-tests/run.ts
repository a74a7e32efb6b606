import type { Relation } from 'osl-compiler';
import {
  compileSnapshot,
  type GrantDocument,
  hypotheticalClaims,
  type PolicyDocument,
  PolicyProblems,
  type PolicySnapshot,
  type RoleDocument,
} from '../../policy/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { PolicyTest, PolicyTests } from './document.js';
import { judge } from './judge.js';
import { observe } from './observe.js';
import { openTestService, type TestService } from './test-service.js';

interface TestResult {
  readonly name: string;
  readonly ok: boolean;
  readonly faults: readonly string[];
}

type UnnoticedChange = Pick<Mutant, 'rule' | 'change'>;

/** Mutation coverage: each rule is changed on its own, and at least one test must then fail. */
export interface Coverage {
  readonly changes: number;
  readonly held: number;
  readonly unheld: readonly UnnoticedChange[];
}

export interface PolicyTestRun {
  readonly ok: boolean;
  readonly results: readonly TestResult[];
  /** Mutation coverage; null if it was not requested or a test failed. */
  readonly coverage: Coverage | null;
}

export type TestProgress = (tests: number, changes: number) => void;

/**
 * Runs policy tests on embedded tables filled from the file, through the same code as every request.
 *
 * @throws ManifestProblems, PolicyFault, UnfitRows, StartProblem
 */
export async function runPolicyTests(
  tests: PolicyTests,
  withCoverage: boolean,
  progress: TestProgress = () => undefined,
): Promise<PolicyTestRun> {
  const stand = await openTestService(tests);
  try {
    const { snapshot } = stand.service.model();
    if (snapshot === null) throw new Error('a policy that was loaded does not serve');
    const results: TestResult[] = [];
    for (const test of tests.tests) {
      const faults = await faultsOf(stand, snapshot, test);
      results.push({ name: test.name, ok: faults.length === 0, faults });
      progress(results.length, 0);
    }
    const ok = results.every((r) => r.ok);
    return {
      ok,
      results,
      coverage: ok && withCoverage ? await coverageOf(stand, snapshot, tests.tests, progress) : null,
    };
  } finally {
    await stand.close();
  }
}

async function faultsOf(
  stand: TestService,
  snapshot: PolicySnapshot,
  test: PolicyTest,
): Promise<readonly string[]> {
  return judge(test, await observe(stand, snapshot, test));
}

async function coverageOf(
  stand: TestService,
  snapshot: PolicySnapshot,
  tests: readonly PolicyTest[],
  progress: TestProgress,
): Promise<Coverage> {
  const unheld: UnnoticedChange[] = [];
  let changes = 0;
  const { manifest } = stand.service.model();
  for (const mutant of mutantsOf(snapshot.document, manifest)) {
    changes += 1;
    progress(tests.length, changes);
    const { rule, change } = mutant;
    if (!(await isNoticed(stand, snapshot, mutant, tests))) unheld.push({ rule, change });
  }
  return { changes, held: changes - unheld.length, unheld };
}

/** True if a test fails with the mutant, or if the mutant is not a valid policy. */
async function isNoticed(
  stand: TestService,
  snapshot: PolicySnapshot,
  { document, role }: Mutant,
  tests: readonly PolicyTest[],
): Promise<boolean> {
  const changed = compiled(stand, snapshot, document);
  if (changed === null) return true;
  for (const test of tests) {
    if (!hypotheticalClaims(test, snapshot).aclRoles.includes(role)) continue;
    if ((await faultsOf(stand, changed, test)).length > 0) return true;
  }
  return false;
}

function compiled(
  stand: TestService,
  { tenant }: PolicySnapshot,
  document: Mutant['document'],
): PolicySnapshot | null {
  try {
    return compileSnapshot(document, stand.service.model().manifest.catalog, tenant);
  } catch (error) {
    if (error instanceof PolicyProblems) return null;
    throw error;
  }
}

interface Mutant {
  readonly role: string;
  readonly rule: string;
  readonly change: string;
  readonly document: PolicyDocument;
}

/** Yields mutants: each rule of each role removed, and each restriction lifted. */
function* mutantsOf(document: PolicyDocument, manifest: Manifest): Generator<Mutant> {
  for (const [role, { grants, deny = [] }] of Object.entries(document.roles)) {
    const changed = (rule: string, change: string, next: Partial<RoleDocument>): Mutant => ({
      role,
      rule: `roles.${role}.${rule}`,
      change,
      document: withRole(document, role, next),
    });
    for (const [i, grant] of grants.entries()) {
      const rule = `grants[${i}]`;
      yield changed(rule, 'the grant taken away', { grants: grants.filter((_, n) => n !== i) });
      for (const [change, wider] of widened(grant, manifest))
        yield changed(rule, change, { grants: grants.map((g, n) => (n === i ? wider : g)) });
    }
    for (const i of deny.keys())
      yield changed(`deny[${i}]`, 'the deny rule taken away', { deny: deny.filter((_, n) => n !== i) });
  }
}

function* widened(grant: GrantDocument, { catalog }: Manifest): Generator<readonly [string, GrantDocument]> {
  const { rows: _rows, ...everyRow } = grant;
  if (grant.rows !== undefined) yield ['`rows` taken away: every row', everyRow];
  const { min_group_size: _size, metrics: _metrics, ...shown } = grant;
  if (grant.min_group_size !== undefined) yield ['`min_group_size` taken away: rows are shown', shown];
  const {
    starts: _starts,
    ends: _ends,
    when: _when,
    for: _for,
    break_glass: _glass,
    approval: _approval,
    ...always
  } = grant;
  if (Object.keys(always).length < Object.keys(grant).length)
    yield ['its conditions taken away: it counts always', always];
  const relation = catalog.relations.get(grant.on);
  if (relation === undefined) return;
  const unmask = grant.unmask ?? [];
  for (const label of hiddenLabels(relation, grant))
    yield [
      `\`unmask: [${label}]\` added: it is shown in the clear`,
      { ...grant, unmask: [...unmask, label] },
    ];
}

function hiddenLabels(relation: Relation, { columns, unmask = [] }: GrantDocument): readonly string[] {
  const covered = (name: string): boolean => columns === '*' || columns.includes(name);
  const labels = relation.columns.filter((c) => covered(c.name)).flatMap((c) => c.sensitivity ?? []);
  return [...new Set(labels)].filter((label) => !unmask.includes(label)).sort();
}

function withRole(document: PolicyDocument, role: string, next: Partial<RoleDocument>): PolicyDocument {
  const before = document.roles[role];
  if (before === undefined) return document;
  return { ...document, roles: { ...document.roles, [role]: { ...before, ...next } } };
}
