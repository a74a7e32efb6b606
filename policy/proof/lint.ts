import { type Column, labelsOf, type Relation } from 'osl-compiler';
import type { PolicyGrant } from '../snapshot.js';
import { and, type Formula, not, or } from './formula.js';
import type { Obligation } from './obligations.js';
import { Encoder } from './values.js';
import type { ProvenPolicy } from './views.js';

/** Rules of a policy that do nothing. */

interface Finding {
  readonly code: 'dead_grant' | 'empty_filter' | 'dead_deny' | 'unseen_column' | 'unused_mask';
  /** The rule in the policy file: `roles.sales.grants[0]`. */
  readonly rule: string;
  readonly message: string;
}

/** Answers whether an obligation is proved impossible. */
type Impossible = (obligation: Obligation) => Promise<boolean>;

export async function lint(policy: ProvenPolicy, isImpossible: Impossible): Promise<readonly Finding[]> {
  const { snapshot, catalog } = policy;
  const findings: Finding[] = [];
  const empty = new Set<PolicyGrant>();
  for (const [role, { grants, denied }] of snapshot.roles) {
    for (const [name, own] of grants) {
      const relation = catalog.relations.get(name);
      if (relation === undefined) continue;
      for (const grant of own) {
        const rule = `roles.${role}.grants[${grant.id.slice(grant.id.lastIndexOf('.') + 1)}]`;
        if (await isImpossible(filterOf(grant, relation))) {
          empty.add(grant);
          const message = 'no row satisfies `rows`, whoever asks';
          findings.push({ code: 'empty_filter', rule, message });
        } else if (await isImpossible(aloneOf(grant, own, relation))) {
          const message = `other grants of the role on \`${relation.name}\` show all that it shows`;
          findings.push({ code: 'dead_grant', rule, message });
        }
      }
    }
    for (const name of denied.keys())
      if (![...snapshot.roles.values()].some((other) => other.grants.has(name))) {
        const message = `it denies \`${name}\`, which no role grants`;
        findings.push({ code: 'dead_deny', rule: `roles.${role}.deny`, message });
      }
  }
  return [...findings, ...unseenColumns(policy, empty), ...unusedMasks(policy)];
}

/** That a row satisfies the filter of a grant. */
function filterOf({ filter }: PolicyGrant, relation: Relation): Obligation {
  const encoder = new Encoder(relation);
  return impossible(encoder, encoder.accepts(filter));
}

/** That a grant shows something that no other one of the role shows. */
function aloneOf(grant: PolicyGrant, own: readonly PolicyGrant[], relation: Relation): Obligation {
  const encoder = new Encoder(relation);
  const others = own.filter((g) => g !== grant && g.groups === undefined);
  if (grant.groups !== undefined || grant.decode === true || others.length === 0)
    return impossible(encoder, and());
  const accepts = (g: PolicyGrant) =>
    and(g.conditions === null ? and() : encoder.condition(g.conditions.key), encoder.accepts(g.filter));
  const alone = relation.columns
    .filter((column) => grant.columns.has(column.name))
    .map((column) => {
      const isClear = shows(grant, column, true);
      return not(or(...others.filter((g) => shows(g, column, isClear)).map(accepts)));
    });
  return impossible(encoder, and(accepts(grant), or(...alone)));
}

function shows(g: PolicyGrant, { name, sensitivity }: Column, isClear: boolean): boolean {
  return g.columns.has(name) && (!isClear || sensitivity === null || g.unmask.has(sensitivity));
}

/** A column is unseen if each grant that covers it has a filter that no row satisfies, or belongs to a role that denies it. */
function* unseenColumns(
  { snapshot, catalog }: ProvenPolicy,
  empty: ReadonlySet<PolicyGrant>,
): Generator<Finding> {
  for (const relation of catalog.relations.values()) {
    const roles = [...snapshot.roles.values()].filter(({ grants }) => grants.has(relation.name));
    if (roles.length === 0) continue;
    for (const { name } of relation.columns) {
      const isSeen = roles.some(({ grants, denied }) => {
        const rule = denied.get(relation.name);
        if (rule === 'all' || rule?.has(name) === true) return false;
        return (grants.get(relation.name) ?? []).some((g) => !empty.has(g) && g.columns.has(name));
      });
      if (isSeen) continue;
      const message = `no role sees \`${relation.name}.${name}\`, nor its mask`;
      yield { code: 'unseen_column', rule: 'roles', message };
    }
  }
}

function* unusedMasks({ snapshot, catalog }: ProvenPolicy): Generator<Finding> {
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
      rule: `masks.${label}`,
      message: `no grant shows a column with the label \`${label}\` masked`,
    };
  }
}

function impossible(encoder: Encoder, formula: Formula): Obligation {
  return {
    relation: encoder.relation,
    parts: [{ formula, says: '', checks: [] }],
    facts: encoder.facts,
    encoders: [encoder],
    callers: [],
  };
}
