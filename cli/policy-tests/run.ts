import { isDeepStrictEqual } from 'node:util';
import { mayBeRedacted, type Relation } from 'osl-compiler';
import {
  compileSnapshot,
  conditionsIn,
  type GrantDocument,
  hypotheticalClaims,
  type PolicyDocument,
  PolicyProblems,
  type PolicySnapshot,
  type RoleDocument,
  withoutConditions,
} from '../../policy/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { Expectation, JsonRow, PolicyTest, PolicyTests } from './document.js';
import { observe, type TestOutcome } from './observe.js';
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

/** Yields mutants of the policy: for each rule, one without it; for each restriction, one that lifts it. */
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
  if (conditionsIn(grant) !== null)
    yield ['its conditions taken away: it counts always', withoutConditions(grant)];
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

function judge({ expect }: PolicyTest, observed: TestOutcome): readonly string[] {
  switch (observed.kind) {
    case 'visibility':
      return differing('sees', expect.sees, observed.sees);
    case 'refusal': {
      const wanted = expect.decision ?? 'allow';
      return wanted === observed.code
        ? []
        : [`decision: expected ${wanted}, got ${observed.code}: ${observed.message}`];
    }
    case 'answer':
      return judgeAnswer(expect, observed);
  }
}

function judgeAnswer(
  expect: Expectation,
  { plan, sql, rows }: Extract<TestOutcome, { kind: 'answer' }>,
): readonly string[] {
  const wanted = expect.decision ?? 'allow';
  if (wanted !== 'allow') return [`decision: expected ${wanted}, got allow`];
  const names = plan.outputs.map((o) => o.name);
  const masked = plan.outputs.filter(mayBeRedacted).map((o) => o.name);
  return [
    ...differing('columns', expect.columns, names),
    ...differing('masked', expect.masked && [...expect.masked].sort(), masked.sort()),
    ...differing('sql', expect.sql && oneSpaced(expect.sql), oneSpaced(sql)),
    ...differing('row_count', expect.row_count, rows.length),
    ...(expect.rows === undefined ? [] : judgeRows(expect.rows, rows, expect.in_order === true)),
  ];
}

function differing(what: string, wanted: unknown, got: unknown): readonly string[] {
  if (wanted === undefined || isDeepStrictEqual(wanted, got)) return [];
  return [`${what}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`];
}

function oneSpaced(sql: string): string {
  return sql.trim().replace(/\s+/g, ' ');
}

const TOLD = 3;

function judgeRows(wanted: readonly JsonRow[], got: readonly JsonRow[], inOrder: boolean): readonly string[] {
  if (inOrder) {
    const at = Array.from({ length: Math.max(wanted.length, got.length) }, (_, i) => i).find(
      (i) => canonical(wanted[i]) !== canonical(got[i]),
    );
    if (at === undefined) return [];
    return [`rows: row ${at + 1}: expected ${canonical(wanted[at])}, got ${canonical(got[at])}`];
  }
  const missing = without(wanted, got);
  const surplus = without(got, wanted);
  return [
    ...missing.slice(0, TOLD).map((row) => `rows: expected, and not there: ${row}`),
    ...surplus.slice(0, TOLD).map((row) => `rows: unexpected row: ${row}`),
  ];
}

function without(some: readonly JsonRow[], others: readonly JsonRow[]): readonly string[] {
  const left = new Map<string, number>();
  for (const row of others) left.set(canonical(row), (left.get(canonical(row)) ?? 0) + 1);
  return some.map(canonical).filter((row) => {
    const count = left.get(row) ?? 0;
    if (count > 0) left.set(row, count - 1);
    return count === 0;
  });
}

function canonical(value: unknown): string {
  if (value === undefined) return 'no row';
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
