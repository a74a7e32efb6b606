import type { Relation as Entity } from 'osl-compiler';
import {
  and,
  type Encoder,
  FALSE,
  type Formula,
  not,
  type ProvenPolicy,
  type SolverModel,
  scriptOf,
  viewOf,
} from '../../../policy/proof/index.js';
import { type Manifest, nameFrom, tableName } from '../../../src/model/manifest/index.js';
import type { Solver } from '../../policy-proof/solver.js';
import type { PgRelation, Role } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import type { CallerAttribute } from '../import/caller-value.js';
import { CallerValueNames } from './caller-values.js';
import type { ExampleContext, VisibilityDifference, VisibilityQuestion } from './examples.js';
import { type Example, exampleOf } from './examples.js';
import { RowSecurityEncoder } from './row-security.js';
import { Ties } from './ties.js';

/** A comparison of the rows and columns of one table that a role sees through the gateway and in the database. */
export interface RoleProof {
  /** The database role; the policy's role if the database has no such role. */
  readonly role: string;
  readonly entity: string;
  /** Qualified name, such as `app.note`; empty if the database has no such role. */
  readonly table: string;
  readonly verdict: PolicyProofVerdict;
  /** Conditions on a caller under which the database answers at all, such as `sub can be read as uuid`. */
  readonly assumes: readonly string[];
}

/**
 * - `equal`: the gateway shows the same rows as the database, for every row and every caller.
 * - `narrower`: it never shows more, and shows less in the example.
 * - `wider`: it shows more in the example. `differs`: more in one example, less in another.
 * - `unknown`: none of these; `neverMore` if it is proved that the gateway shows no more.
 */
export type PolicyProofVerdict =
  | { readonly kind: 'equal' }
  | { readonly kind: 'narrower' | 'wider'; readonly example: Example }
  | { readonly kind: 'differs'; readonly example: Example; readonly less: Example }
  | { readonly kind: 'unknown'; readonly because: string; readonly neverMore: boolean };

/**
 * Runs an example in a database with row security and through the gateway. Returns null if the example shows the
 * difference, otherwise the reason why it does not.
 */
export type ExampleTrial = (example: Example) => Promise<string | null>;

export interface ProofInput {
  readonly database: CheckedDatabase;
  readonly manifest: Manifest;
  readonly policy: ProvenPolicy;
  /** Attributes of callers, with the settings and claims that they stand for. */
  readonly attributes: readonly CallerAttribute[];
}

/** Compares the policy with the row security of the database, for each role and each table of the model. @throws SolverFault */
export async function provePolicy(
  input: ProofInput,
  solver: Solver,
  trial: ExampleTrial,
): Promise<readonly RoleProof[]> {
  const { database, manifest, policy, attributes } = input;
  const names = new CallerValueNames(attributes);
  const rowSecurity = new RowSecurityEncoder(database, manifest, names);
  const ties = new Ties(policy, names, rowSecurity.sets, solver);
  const proofs: RoleProof[] = [];
  for (const entity of manifest.catalog.relations.values()) {
    if (entity.kind === 'facet') continue;
    const relation = relationOf(entity, database);
    if (relation !== null && !database.relations.includes(relation)) continue;
    for (const role of database.roles) {
      const policyRole = nameFrom(role.name);
      const isGranted = policy.snapshot.roles.get(policyRole)?.grants.has(entity.name) === true;
      if (relation === null) {
        if (isGranted) proofs.push(withoutTable(role, entity));
        continue;
      }
      const readable = new Set(database.access.columns(role.id, 'SELECT', relation));
      if (!isGranted && readable.size === 0) continue;
      const { encoder, row, assumed } = rowSecurity.rowsOf(role, relation, entity);
      const view = viewOf([policyRole], policy, encoder);
      const question = { role, policyRole, entity, encoder, row, view, readable };
      const verdict = await decide(question, { ties, names, rowSecurity, solver, trial });
      const table = `${relation.schema}.${relation.name}`;
      proofs.push({ role: role.name, entity: entity.name, table, verdict, assumes: assumed });
    }
  }
  return [...proofs, ...unknownRoles(input)];
}

function relationOf(entity: Entity, { catalog }: CheckedDatabase): PgRelation | null {
  return (
    [...catalog.relations.values()].find(({ schema, name }) => `${schema}.${name}` === tableName(entity)) ??
    null
  );
}

function withoutTable({ name }: Role, entity: Entity): RoleProof {
  const because = 'the database has no such table';
  return {
    role: name,
    entity: entity.name,
    table: tableName(entity),
    verdict: { kind: 'unknown', because, neverMore: false },
    assumes: [],
  };
}

/** Unknown verdicts for roles of the policy that the database does not have. */
function unknownRoles({ database, policy }: ProofInput): readonly RoleProof[] {
  const known = new Set([...database.catalog.roles.values()].map(({ name }) => nameFrom(name)));
  const verdict = { kind: 'unknown', because: 'the database has no such role', neverMore: false } as const;
  return [...policy.snapshot.roles]
    .filter(([role]) => !known.has(role))
    .flatMap(([role, { grants }]) =>
      [...grants.keys()].map((entity) => ({ role, entity, table: '', verdict, assumes: [] })),
    );
}

interface PolicyProofContext extends ExampleContext {
  readonly trial: ExampleTrial;
}

async function decide(
  question: VisibilityQuestion,
  context: PolicyProofContext,
): Promise<PolicyProofVerdict> {
  const differences = differencesOf(question);
  const facts = await context.ties.factsOf(question.encoder, question.role.name);
  // The first case asks if any row and caller are possible: contradictory facts would prove everything.
  const wish = wishOf(question.encoder);
  const cases = differences.flatMap(({ formula }) => [[formula], [formula, wish]]);
  const script = scriptOf(facts, [[], ...cases]);
  const [possible, ...answers] = await context.solver.check(script, { wantsValues: true });
  if (possible?.kind !== 'sat')
    return { kind: 'unknown', because: 'no row and no caller fits what is assumed', neverMore: false };
  const outcomes: { more: SearchOutcome; less: SearchOutcome } = { more: NONE, less: NONE };
  for (const [i, difference] of differences.entries()) {
    const [any, wished] = answers.slice(2 * i);
    if (any === undefined || any.kind === 'unsat') continue;
    let outcome: SearchOutcome = {
      kind: 'unknown',
      because: any.kind === 'unknown' ? `the solver gave up: ${any.reason}` : '',
    };
    for (const answer of [wished, any])
      if (answer?.kind === 'sat' && outcome.kind !== 'shown')
        outcome = await tried(difference, question, context, script.model(new Map(answer.constants)));
    if (outcomes[difference.direction].kind !== 'shown') outcomes[difference.direction] = outcome;
  }
  return verdictOf(outcomes);
}

/** Asks for a caller with a value for each attribute, since such examples are easier to read and to run. */
function wishOf(encoder: Encoder): Formula {
  return and(
    ...[...encoder.attributes].flatMap((name) => [
      not(encoder.attribute(name, 'missing')),
      not(encoder.attribute(name, 'empty')),
    ]),
  );
}

type SearchOutcome =
  | { readonly kind: 'impossible' }
  | { readonly kind: 'shown'; readonly example: Example }
  | { readonly kind: 'unknown'; readonly because: string };

const NONE: SearchOutcome = Object.freeze({ kind: 'impossible' });

function verdictOf({
  more,
  less,
}: {
  readonly more: SearchOutcome;
  readonly less: SearchOutcome;
}): PolicyProofVerdict {
  if (more.kind === 'shown')
    return less.kind === 'shown'
      ? { kind: 'differs', example: more.example, less: less.example }
      : { kind: 'wider', example: more.example };
  if (more.kind === 'unknown') return { kind: 'unknown', because: more.because, neverMore: false };
  if (less.kind === 'shown') return { kind: 'narrower', example: less.example };
  return less.kind === 'unknown'
    ? { kind: 'unknown', because: less.because, neverMore: true }
    : { kind: 'equal' };
}

function differencesOf({ entity, row, view, readable }: VisibilityQuestion): readonly VisibilityDifference[] {
  const found: VisibilityDifference[] = [
    { formula: and(view.row, not(row)), direction: 'more', column: null },
    { formula: and(row, not(view.row)), direction: 'less', column: null },
  ];
  const rows = textOf(view.row);
  const seen = new Set<string>();
  for (const { name, physical } of entity.columns) {
    const [shown, unmasked] = [view.shown.get(name) ?? FALSE, view.unmasked.get(name) ?? FALSE];
    const difference: VisibilityDifference = readable.has(physical)
      ? { formula: and(row, view.row, not(unmasked)), direction: 'less', column: name }
      : { formula: shown, direction: 'more', column: name };
    const key = `${difference.direction} ${textOf(difference.formula)}`;
    if (seen.has(key) || (readable.has(physical) && textOf(unmasked) === rows)) continue;
    seen.add(key);
    found.push(difference);
  }
  return found.filter(({ formula }) => formula !== FALSE);
}

function textOf(formula: Formula): string {
  return scriptOf([], [[formula]]).text;
}

async function tried(
  difference: VisibilityDifference,
  question: VisibilityQuestion,
  context: PolicyProofContext,
  model: SolverModel,
): Promise<SearchOutcome> {
  const example = await exampleOf(difference, question, context, model);
  const against = typeof example === 'string' ? example : await context.trial(example);
  if (against === null && typeof example !== 'string') return { kind: 'shown', example };
  const reasons = await reasonsFor(question, context, model);
  const because = reasons.length > 0 ? `it depends on ${reasons.join(', ')}` : (against ?? '');
  return { kind: 'unknown', because };
}

/** Names the expressions on which the model depends and that the solver does not understand. */
async function reasonsFor(
  { encoder, role }: VisibilityQuestion,
  { ties }: PolicyProofContext,
  model: SolverModel,
): Promise<readonly string[]> {
  const own = [...encoder.unknowns].filter(([name]) => model.value(name) !== null).map(([, what]) => what);
  const sets = await ties.unmatched(encoder, role.name);
  const ofSets = sets.flatMap(({ encoder: inner, relation, condition }) => {
    const text = textOf(condition);
    const whats = [...inner.unknowns].filter(([name]) => text.includes(`|${name}|`)).map(([, what]) => what);
    return whats.length > 0 ? whats : [`the rows of a subquery over ${relation.schema}.${relation.name}`];
  });
  return [...new Set([...own, ...ofSets])];
}
