import { dirname, resolve } from 'node:path';
import type { Claim } from '../../policy/proof/index.js';
import { VISIBILITIES, type Visibility } from '../../src/model/graph/index.js';
import { parseSource, readManifestText, throwProblems } from '../../src/model/manifest/index.js';
import { shapeCheck } from '../../src/model/manifest/schema/check.js';
import { closed, DRAFT, list, named, some, TEXT } from '../../src/model/manifest/schema/json-schema.js';

const SUBJECT = { ...TEXT, description: 'A subject of the policy.' } as const;
const NAMES = (description: string) => list({ type: 'string', minLength: 1, maxLength: 200 }, description);

const VALUE = {
  type: ['string', 'number', 'boolean', 'null', 'array', 'object'],
  description: 'A value as in a REST answer.',
} as const;

const ROWS = (description: string) =>
  ({
    type: 'array',
    items: { type: 'object', additionalProperties: VALUE },
    maxItems: 10_000,
    description,
  }) as const;

const expectation = closed(
  {
    decision: {
      type: 'string',
      pattern: '^(allow|E[0-9]{4})$',
      description: '`allow`, or the code of the refusal. Default: allow.',
    },
    columns: NAMES('Columns of the answer, in order.'),
    masked: NAMES('All columns of the answer that may contain masked values; [] for none.'),
    rows: ROWS('Rows of the answer over `data`; in any order, unless `in_order` is true.'),
    in_order: {
      type: 'boolean',
      description: 'True if `rows` must be in the order of the answer. Default: false.',
    },
    row_count: { type: 'integer', minimum: 0, description: 'Number of rows of the answer over `data`.' },
    sql: {
      type: 'string',
      minLength: 1,
      description: 'SQL sent to the database; any white space counts as one blank.',
    },
    sees: {
      enum: VISIBILITIES,
      description: 'Visibility of `object` for the caller; an entity has that of its most visible column.',
    },
  },
  [],
  'Expected result. Without `decision`, the request must be allowed.',
);

const test = closed(
  {
    name: { ...TEXT, description: 'Name of the test: the intention, as a sentence.' },
    as: { ...SUBJECT, description: 'Subject of the caller.' },
    chain: some(SUBJECT, 'Delegation chain, root first, the caller last; instead of `as`.'),
    roles: NAMES('Data roles that the token claims. Default: all that the caller may have.'),
    from: closed(
      {
        surface: { enum: ['rest', 'wire', 'mcp'], description: 'Default: rest.' },
        address: { ...TEXT, description: 'IP address of the client.' },
        purpose: { ...TEXT, description: 'Purpose that the request states.' },
        claims: named(
          { type: 'string', minLength: 1 },
          NAMES('Values of the claim.'),
          'Other claims of the token, each with its values.',
        ),
        at: {
          ...TEXT,
          description: 'Time of the request, RFC 3339; only in a test of an `object`. Default: now.',
        },
      },
      [],
      'Circumstances of the request, for grants with conditions.',
    ),
    ask: { type: 'string', minLength: 1, description: 'A query in OSL-SQL.' },
    sql: { type: 'string', minLength: 1, description: 'A query in raw SQL.' },
    metrics: { type: 'object', description: 'A metrics query, as in the body of `POST /osl/query`.' },
    object: {
      ...TEXT,
      description:
        'An entity or a column, such as `osl.entities.customer.email`, whose visibility is tested without a query.',
    },
    expect: expectation,
  },
  ['name', 'expect'],
  'One test. It has `as` or `chain`, and one of `ask`, `sql`, `metrics` and `object`.',
);

const ROLES = some({ type: 'string', minLength: 1 }, 'Data roles of a caller, all of them together.');
const ROLE = { ...TEXT, description: 'A data role.' } as const;
const SEES = { ...TEXT, description: 'An entity or a column: `person` or `person.email`.' } as const;
const PREDICATE = (description: string) => ({ ...TEXT, description }) as const;

const claim = closed(
  {
    name: { ...TEXT, description: 'Name of the claim. Default: the claim itself.' },
    never: closed(
      {
        role: ROLE,
        roles: ROLES,
        sees: SEES,
        unless: PREDICATE(
          'Predicate over the entity, as `rows` of a grant: rows where it is true may be seen.',
        ),
      },
      ['sees'],
      'No caller with exactly these roles ever sees it in the clear, whatever the attributes are.',
    ),
    always: closed(
      {
        role: ROLE,
        roles: ROLES,
        sees: SEES,
        when: PREDICATE(
          'Predicate over the entity: rows where it is true are always seen. Default: all rows.',
        ),
      },
      ['sees'],
      'Every caller with exactly these roles, all attributes that their grants name and all conditions sees it.',
    ),
    same: closed(
      { roles: { ...ROLES, minItems: 2, maxItems: 2 } },
      ['roles'],
      'Members of both roles see the same.',
    ),
    narrower: closed(
      { role: ROLE, than: ROLE },
      ['role', 'than'],
      'Members of the role see nothing that members of the other do not see.',
    ),
    disjoint: closed(
      {
        attribute: { ...TEXT, description: 'An attribute of subjects, such as the tenant.' },
        on: some(SEES, 'Entities of which it is claimed. Default: all that are granted.'),
      },
      ['attribute'],
      'No two callers whose values of the attribute have nothing in common see one row.',
    ),
  },
  [],
  'One claim: exactly one of `never`, `always`, `same`, `narrower` and `disjoint`. `osl policy prove` proves it.',
);

const POLICY_TESTS_SCHEMA = {
  $schema: DRAFT,
  title: 'Tests of an OSL Gateway policy',
  ...closed(
    {
      version: { const: 1, description: 'Version of this format: 1.' },
      manifest: {
        ...TEXT,
        description: 'Path of the manifest, relative to this file. Default: manifest.yaml.',
      },
      policy: { ...TEXT, description: 'Path of the policy, relative to this file. Default: policy.yaml.' },
      data: named(
        {
          type: 'string',
          pattern: '^[^.]+\\..+$',
          description: 'A table, named as in `source` of the manifest: `db.shop.customers`.',
        },
        ROWS('Rows, with values by column of the table; omitted columns are NULL.'),
        'Rows of the manifest’s tables, for `rows` and `row_count`.',
      ),
      tests: {
        type: 'array',
        items: test,
        minItems: 1,
        maxItems: 10_000,
        description: 'Tests, independent of each other.',
      },
      claims: {
        type: 'array',
        items: claim,
        minItems: 1,
        maxItems: 1_000,
        description: 'What holds of all rows and callers; see `osl policy prove`.',
      },
    },
    ['version'],
    'Tests of what callers may see under a policy.',
  ),
} as const;

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
  /** Roles of the caller; null: all roles that the caller can have. */
  readonly roles: readonly string[] | null;
  readonly from: TestCircumstances;
  readonly asked: TestQuestion;
  readonly expect: Expectation;
}

export interface PolicyTests {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Rows by table; tables are named as in `source`. */
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

interface VisibilityClaim {
  readonly role?: string;
  readonly roles?: readonly string[];
  readonly sees: string;
  readonly unless?: string;
  readonly when?: string;
}

interface ClaimDocument {
  readonly name?: string;
  readonly never?: VisibilityClaim;
  readonly always?: VisibilityClaim;
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

function rolesOf({ role, roles, sees }: VisibilityClaim): readonly string[] {
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
