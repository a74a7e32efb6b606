import { dirname, resolve } from 'node:path';
import type { Claim } from '../../policy/proof/index.js';
import type { Visibility } from '../../src/model/graph/index.js';
import { parseSource, readManifestText, throwProblems } from '../../src/model/manifest/index.js';
import { shapeCheck } from '../../src/model/manifest/schema/check.js';
import { POLICY_TESTS_SCHEMA } from './schema.js';

export type JsonRow = Readonly<Record<string, unknown>>;

export interface Expectation {
  readonly decision?: string;
  readonly columns?: readonly string[];
  readonly masked?: readonly string[];
  readonly rows?: readonly JsonRow[];
  readonly in_order?: boolean;
  readonly row_count?: number;
  readonly sql?: string;
  readonly sees?: Visibility;
}

export type TestQuestion =
  | { readonly kind: 'osql' | 'sql'; readonly text: string }
  | { readonly kind: 'metrics'; readonly body: JsonRow }
  | { readonly kind: 'object'; readonly name: string };

export interface TestCircumstances {
  readonly surface?: 'rest' | 'wire' | 'mcp';
  readonly address?: string;
  readonly purpose?: string;
  readonly claims?: Readonly<Record<string, readonly string[]>>;
  readonly at?: string;
}

export interface PolicyTest {
  readonly name: string;
  /** The caller's delegation chain, from root to leaf. */
  readonly chain: readonly string[];
  /** Roles of the caller; null for all that the caller can have. */
  readonly roles: readonly string[] | null;
  readonly from: TestCircumstances;
  readonly asked: TestQuestion;
  readonly expect: Expectation;
}

export interface PolicyTests {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Rows by table, in the notation of `source`. */
  readonly data: ReadonlyMap<string, readonly JsonRow[]>;
  readonly tests: readonly PolicyTest[];
  readonly claims: readonly NamedClaim[];
}

interface NamedClaim {
  readonly name: string;
  readonly claim: Claim;
}

interface TestDocument {
  readonly name: string;
  readonly as?: string;
  readonly chain?: readonly string[];
  readonly roles?: readonly string[];
  readonly from?: TestCircumstances;
  readonly ask?: string;
  readonly sql?: string;
  readonly metrics?: JsonRow;
  readonly object?: string;
  readonly expect: Expectation;
}

interface Sight {
  readonly role?: string;
  readonly roles?: readonly string[];
  readonly sees: string;
  readonly unless?: string;
  readonly when?: string;
}

interface ClaimDocument {
  readonly name?: string;
  readonly never?: Sight;
  readonly always?: Sight;
  readonly same?: { readonly roles: readonly [string, string] };
  readonly narrower?: { readonly role: string; readonly than: string };
  readonly disjoint?: { readonly attribute: string; readonly on?: readonly string[] };
}

interface PolicyTestsDocument {
  readonly manifest?: string;
  readonly policy?: string;
  readonly data?: Readonly<Record<string, readonly JsonRow[]>>;
  readonly tests?: readonly TestDocument[];
  readonly claims?: readonly ClaimDocument[];
}

class UnclearTest extends Error {
  override readonly name = 'UnclearTest';
}

const shape = shapeCheck(POLICY_TESTS_SCHEMA);

/** Reads a file of policy tests. @throws ManifestProblems with the locations of errors; UnclearTest */
export async function loadPolicyTests(file: string): Promise<PolicyTests> {
  const source = parseSource(await readManifestText(file), file);
  throwProblems(source, shape(source.value));
  const document = source.value as PolicyTestsDocument; // the schema has checked its shape
  const beside = (path: string): string => resolve(dirname(file), path);
  return Object.freeze({
    manifestFile: beside(document.manifest ?? 'manifest.yaml'),
    policyFile: beside(document.policy ?? 'policy.yaml'),
    data: new Map(Object.entries(document.data ?? {})),
    tests: (document.tests ?? []).map(testOf),
    claims: (document.claims ?? []).map(claimOf),
  });
}

function testOf({ name, as, chain, roles, from = {}, expect, ...questions }: TestDocument): PolicyTest {
  const fault = (message: string): UnclearTest => new UnclearTest(`test \`${name}\`: ${message}`);
  if ((as === undefined) === (chain === undefined))
    throw fault('name the caller, either in `as` or in `chain`');
  const asked = askedBy(questions);
  if (asked === null) throw fault('it needs exactly one of `ask`, `sql`, `metrics` and `object`');
  if ((asked.kind === 'object') !== (expect.sees !== undefined))
    throw fault('`sees` is expected of an `object`, and of nothing else');
  if (asked.kind === 'object' && Object.keys(expect).length > 1)
    throw fault('of an `object` nothing is expected but `sees`');
  if (from.at !== undefined && (asked.kind !== 'object' || Number.isNaN(Date.parse(from.at))))
    throw fault('`at` is a moment, such as 2026-01-31T09:00:00Z, in which an `object` is seen');
  return Object.freeze({ name, chain: chain ?? [as ?? ''], roles: roles ?? null, from, asked, expect });
}

function claimOf({ name, ...stated }: ClaimDocument): NamedClaim {
  const text = JSON.stringify(stated).slice(1, -1);
  const claims = [...claimsIn(stated)];
  const [claim] = claims;
  if (claim === undefined || claims.length > 1)
    throw new UnclearTest(
      `claim ${name ?? text}: it needs exactly one of \`never\`, \`always\`, \`same\`, \`narrower\` and \`disjoint\``,
    );
  return { name: name ?? text, claim };
}

function* claimsIn({ never, always, same, narrower, disjoint }: ClaimDocument): Generator<Claim> {
  if (never !== undefined)
    yield { kind: 'never', roles: rolesOf(never), sees: never.sees, where: never.unless ?? null };
  if (always !== undefined)
    yield { kind: 'always', roles: rolesOf(always), sees: always.sees, where: always.when ?? null };
  if (same !== undefined) yield { kind: 'same', roles: same.roles };
  if (narrower !== undefined) yield { kind: 'narrower', ...narrower };
  if (disjoint !== undefined)
    yield { kind: 'disjoint', attribute: disjoint.attribute, on: disjoint.on ?? null };
}

function rolesOf({ role, roles, sees }: Sight): readonly string[] {
  const named = roles ?? (role === undefined ? [] : [role]);
  if (named.length === 0 || (role !== undefined && roles !== undefined))
    throw new UnclearTest(`a claim about \`${sees}\`: name the caller, either in \`role\` or in \`roles\``);
  return named;
}

function askedBy({ ask, sql, metrics, object }: Partial<TestDocument>): TestQuestion | null {
  const found: TestQuestion[] = [];
  if (ask !== undefined) found.push({ kind: 'osql', text: ask });
  if (sql !== undefined) found.push({ kind: 'sql', text: sql });
  if (metrics !== undefined) found.push({ kind: 'metrics', body: metrics });
  if (object !== undefined) found.push({ kind: 'object', name: object });
  const [only] = found;
  return found.length === 1 && only !== undefined ? only : null;
}
