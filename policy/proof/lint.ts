import { type Column, labelsOf, type Relation } from 'osl-compiler';
import type { DocumentPath } from '../problems.js';
import { grantIndex } from '../reasons.js';
import type { PolicyGrant, PolicySnapshot } from '../snapshot.js';
import { and, type Formula, not, or, TRUE } from './formula.js';
import { Encoder } from './values.js';
import type { ProvenPolicy } from './views.js';

/** A rule of a policy that has no effect, or a column that no role sees. */
export interface PolicyFinding {
  readonly code: 'dead_grant' | 'empty_filter' | 'dead_deny' | 'unseen_column' | 'unused_mask';
  /** Path of the rule in the policy file. */
  readonly path: DocumentPath;
  readonly message: string;
}

/** Returns, for each formula over an encoder's row and caller, true if it is proved unsatisfiable. */
type AreImpossible = (encoder: Encoder, formulas: readonly Formula[]) => Promise<readonly boolean[]>;

export async function lint(
  policy: ProvenPolicy,
  areImpossible: AreImpossible,
): Promise<readonly PolicyFinding[]> {
  const relations = [...policy.catalog.relations.values()];
  const faults = await Promise.all(relations.map((r) => grantFaults(r, policy.snapshot, areImpossible)));
  const byGrant = new Map(faults.flat());
  return [...ruleFindings(policy, byGrant), ...unseenColumns(policy, byGrant), ...unusedMasks(policy)];
}

type GrantFault = Extract<PolicyFinding['code'], 'dead_grant' | 'empty_filter'>;

/** Finds the grants on a relation that show nothing, or only what other grants of the same role show. */
async function grantFaults(
  relation: Relation,
  { roles }: PolicySnapshot,
  areImpossible: AreImpossible,
): Promise<readonly (readonly [PolicyGrant, GrantFault])[]> {
  const encoder = new Encoder(relation);
  const questions = [...roles.values()].flatMap(({ grants }) =>
    (grants.get(relation.name) ?? []).flatMap((grant, _, siblings) => [
      { grant, code: 'empty_filter' as const, formula: encoder.accepts(grant.filter) },
      { grant, code: 'dead_grant' as const, formula: showsAlone(grant, siblings, encoder) },
    ]),
  );
  const answers = await areImpossible(
    encoder,
    questions.map((q) => q.formula),
  );
  const faulty = questions.filter((_, i) => answers[i] === true);
  // A filter that no row satisfies also makes the grant dead; only the first fault is reported, since it explains the
  // second.
  return faulty.filter((q, i) => faulty[i - 1]?.grant !== q.grant).map(({ grant, code }) => [grant, code]);
}

const GRANT_FAULTS: Readonly<Record<GrantFault, (relation: string) => string>> = {
  empty_filter: () => 'no row satisfies `rows`, whoever asks',
  dead_grant: (relation) => `other grants of the role on \`${relation}\` show all that it shows`,
};

function* ruleFindings(
  { snapshot }: ProvenPolicy,
  faults: ReadonlyMap<PolicyGrant, GrantFault>,
): Generator<PolicyFinding> {
  for (const [role, { grants, denied }] of snapshot.roles) {
    for (const [name, roleGrants] of grants)
      for (const grant of roleGrants) {
        const code = faults.get(grant);
        if (code === undefined) continue;
        yield { code, path: ['roles', role, 'grants', grantIndex(grant)], message: GRANT_FAULTS[code](name) };
      }
    for (const name of denied.keys()) {
      if ([...snapshot.roles.values()].some((other) => other.grants.has(name))) continue;
      const message = `it denies \`${name}\`, which no role grants`;
      yield { code: 'dead_deny', path: ['roles', role, 'deny'], message };
    }
  }
}

/** Returns a formula that is true if the grant shows something that no other grant of the role shows. */
function showsAlone(grant: PolicyGrant, siblings: readonly PolicyGrant[], encoder: Encoder): Formula {
  const others = siblings.filter((g) => g !== grant && g.groups === undefined);
  if (grant.groups !== undefined || grant.decode === true || others.length === 0) return TRUE;
  const accepts = (g: PolicyGrant) =>
    and(g.conditions === null ? TRUE : encoder.condition(g.conditions.key), encoder.accepts(g.filter));
  const newColumns = encoder.relation.columns
    .filter((column) => grant.columns.has(column.name))
    .map((column) => {
      const isClear = shows(grant, column, true);
      return not(or(...others.filter((g) => shows(g, column, isClear)).map(accepts)));
    });
  return and(accepts(grant), or(...newColumns));
}

function shows(g: PolicyGrant, { name, sensitivity }: Column, isClear: boolean): boolean {
  return g.columns.has(name) && (!isClear || sensitivity === null || g.unmask.has(sensitivity));
}

/**
 * Finds the columns that no role sees, on relations with grants. Each grant that covers such a column has a filter that
 * no row satisfies, or belongs to a role that denies the column.
 */
function* unseenColumns(
  { snapshot, catalog }: ProvenPolicy,
  faults: ReadonlyMap<PolicyGrant, GrantFault>,
): Generator<PolicyFinding> {
  for (const relation of catalog.relations.values()) {
    const roles = [...snapshot.roles.values()].filter(({ grants }) => grants.has(relation.name));
    if (roles.length === 0) continue;
    for (const { name } of relation.columns) {
      const isSeen = roles.some(({ grants, denied }) => {
        const rule = denied.get(relation.name);
        if (rule === 'all' || rule?.has(name) === true) return false;
        return (grants.get(relation.name) ?? []).some(
          (g) => faults.get(g) !== 'empty_filter' && g.columns.has(name),
        );
      });
      if (isSeen) continue;
      const message = `no role sees \`${relation.name}.${name}\`, nor its mask`;
      yield { code: 'unseen_column', path: ['roles'], message };
    }
  }
}

function* unusedMasks({ snapshot, catalog }: ProvenPolicy): Generator<PolicyFinding> {
  const relations = [...catalog.relations.values()];
  for (const label of Object.keys(snapshot.document.masks)) {
    const applies = [...snapshot.roles.values()].some(({ grants }) =>
      relations.some((relation) =>
        (grants.get(relation.name) ?? []).some(
          (g) =>
            !g.unmask.has(label) &&
            (relation.columns.some((c) => c.sensitivity === label && g.columns.has(c.name)) ||
              catalog.facets.get(relation.name)?.versions.some((v) => v.redacts.has(label)) === true),
        ),
      ),
    );
    const exists = relations.some((relation) => labelsOf(relation).has(label));
    if (applies || !exists) continue;
    yield {
      code: 'unused_mask',
      path: ['masks', label],
      message: `no grant shows a column with the label \`${label}\` masked`,
    };
  }
}
