import { bindPredicate, QueryError, type Relation } from 'osl-compiler';
import type { PolicySnapshot } from '../snapshot.js';
import { and, type Formula, not, or } from './formula.js';
import { Encoder } from './values.js';
import {
  aggregatedColumn,
  type ProvenPolicy,
  relationNamed,
  rolesOn,
  unmaskedLabels,
  type View,
  viewOf,
} from './views.js';

/** A claim about a policy, from `claims` in policy tests. */
export type Claim =
  | {
      readonly kind: 'never' | 'always';
      readonly roles: readonly string[];
      /** Name of an entity, or of one of its columns. */
      readonly sees: string;
      /** `never`: except for rows that satisfy this predicate. `always`: for rows that satisfy it. Null: all rows. */
      readonly where: string | null;
    }
  | { readonly kind: 'same'; readonly roles: readonly [string, string] }
  | { readonly kind: 'narrower'; readonly role: string; readonly than: string }
  | {
      readonly kind: 'disjoint';
      readonly attribute: string;
      /** Entities that the claim covers; null: all entities with grants. */
      readonly on: readonly string[] | null;
    };

/** A formula that must be unsatisfiable for a claim to hold on one relation. */
export interface Obligation {
  readonly relation: Relation;
  /** The claim is refuted if the formula of any part is satisfiable. */
  readonly parts: readonly ObligationPart[];
  /** Constraints on the variables. */
  readonly facts: readonly Formula[];
  readonly encoders: readonly Encoder[];
  /** Callers that share an encoder have the same attributes. */
  readonly callers: readonly ObligationCaller[];
}

export interface ObligationCaller {
  /** Index in `encoders`. */
  readonly encoder: number;
  readonly roles: readonly string[];
  /** The policy that applies to the caller. */
  readonly snapshot: PolicySnapshot;
}

export interface ObligationPart {
  readonly formula: Formula;
  /** Sentence that describes a counterexample. */
  readonly description: string;
  /** Observations that confirm a counterexample when it is run. */
  readonly checks: readonly Check[];
}

/** An observation of one row by one caller. */
type Observation =
  | { readonly level: 'row'; readonly of: null }
  /** A column is visible: unmasked (`unmasked`), or unmasked or masked (`shown`). */
  | { readonly level: 'unmasked' | 'shown'; readonly of: string }
  /** A predicate is true for the row. */
  | { readonly level: 'predicate'; readonly of: string }
  /** Cannot be observed on a single row. */
  | { readonly level: 'other'; readonly of: null };

export type Check = Observation & {
  /** Index in `callers`. */
  readonly caller: number;
  readonly holds: boolean;
};

class UnclearClaim extends Error {
  override readonly name = 'UnclearClaim';
}

/**
 * Returns the obligations that a claim consists of.
 *
 * @throws UnclearClaim if the claim names an unknown entity, column or role, or its predicate is invalid
 */
export function obligationsOf(claim: Claim, policy: ProvenPolicy): readonly Obligation[] {
  switch (claim.kind) {
    case 'never':
    case 'always':
      return [visibilityObligation(claim, policy)];
    case 'narrower':
      return comparisons(requireRoles([claim.role, claim.than], policy), policy, policy);
    case 'same': {
      const [a, b] = claim.roles;
      requireRoles([a, b], policy);
      return [...comparisons([a, b], policy, policy), ...comparisons([b, a], policy, policy)];
    }
    case 'disjoint':
      return disjointness(claim, policy);
    default: {
      const unknown: never = claim;
      return unknown;
    }
  }
}

function requireRoles<R extends readonly string[]>(roles: R, { snapshot }: ProvenPolicy): R {
  const missing = roles.find((role) => !snapshot.roles.has(role));
  if (missing !== undefined) throw new UnclearClaim(`the policy has no role \`${missing}\``);
  return roles;
}

function visibilityObligation(
  { kind, roles, sees, where }: Extract<Claim, { readonly kind: 'never' | 'always' }>,
  policy: ProvenPolicy,
): Obligation {
  requireRoles(roles, policy);
  const { relation, column } = targetOf(sees, policy);
  const encoder = new Encoder(relation);
  const view = viewOf(roles, policy, encoder);
  const visible = column === null ? view.row : (view.unmasked.get(column) ?? and());
  const exception = where === null ? null : encoder.accepts(predicateIn(where, relation));
  const observation: Observation =
    column === null ? { level: 'row', of: null } : { level: 'unmasked', of: column };
  const part =
    kind === 'never'
      ? {
          formula: and(visible, ...(exception === null ? [] : [not(exception)])),
          description: `${roles.join(', ')} sees ${sees}`,
        }
      : {
          formula: and(
            not(visible),
            ...(exception === null ? [] : [exception]),
            ...unrestrictedCaller(encoder, policy, roles),
          ),
          description: `${roles.join(', ')} does not see ${sees}`,
        };
  return {
    relation,
    parts: [
      {
        ...part,
        checks: [
          { caller: 0, ...observation, holds: kind === 'never' },
          ...(where === null
            ? []
            : [{ caller: 0, level: 'predicate' as const, of: where, holds: kind === 'always' }]),
        ],
      },
    ],
    facts: encoder.facts,
    encoders: [encoder],
    callers: [{ encoder: 0, roles, snapshot: policy.snapshot }],
  };
}

/** Constraints for `always`: the caller has every attribute that the grants name, and all conditions hold. */
function unrestrictedCaller(
  encoder: Encoder,
  { snapshot }: ProvenPolicy,
  roles: readonly string[],
): readonly Formula[] {
  const names = [...encoder.attributes];
  const conditions = roles.flatMap((role) => [...(snapshot.roles.get(role)?.conditions.keys() ?? [])]);
  return [
    ...names.map((name) => not(encoder.attribute(name, 'missing'))),
    ...conditions.map((key) => encoder.condition(key)),
  ];
}

function targetOf(name: string, { catalog }: ProvenPolicy): { relation: Relation; column: string | null } {
  const entity = relationNamed(name, catalog);
  if (entity !== null) return { relation: entity, column: null };
  const dot = name.lastIndexOf('.');
  const relation = dot < 0 ? null : relationNamed(name.slice(0, dot), catalog);
  const column = name.slice(dot + 1);
  if (relation === null || !relation.columns.some((c) => c.name === column))
    throw new UnclearClaim(`there is no entity and no column \`${name}\``);
  return { relation, column };
}

function entityOf(name: string, { catalog }: ProvenPolicy): Relation {
  const relation = relationNamed(name, catalog);
  if (relation === null) throw new UnclearClaim(`there is no entity \`${name}\``);
  return relation;
}

function predicateIn(text: string, relation: Relation) {
  try {
    return bindPredicate(text, relation);
  } catch (error) {
    if (error instanceof QueryError) throw new UnclearClaim(`\`${text}\`: ${error.message}`);
    throw error;
  }
}

/**
 * Returns the obligations for the claim that members of the first role, under the first policy, see nothing that
 * members of the second role do not see under the second policy. Both have the same attributes, and the same conditions
 * hold.
 */
export function comparisons(
  [role, than]: readonly [string, string],
  policy: ProvenPolicy,
  other: ProvenPolicy,
): readonly Obligation[] {
  const names = [...(policy.snapshot.roles.get(role)?.grants.keys() ?? [])];
  return names.flatMap((name) => {
    const relation = policy.catalog.relations.get(name);
    return relation === undefined ? [] : [comparison(relation, [role, than], policy, other)];
  });
}

function comparison(
  relation: Relation,
  [role, than]: readonly [string, string],
  policy: ProvenPolicy,
  other: ProvenPolicy,
): Obligation {
  const encoder = new Encoder(relation);
  const [view, otherView] = [viewOf([role], policy, encoder), viewOf([than], other, encoder)];
  return {
    relation,
    parts: [...wider(view, otherView, role, than)],
    facts: encoder.facts,
    encoders: [encoder],
    callers: [
      { encoder: 0, roles: [role], snapshot: policy.snapshot },
      { encoder: 0, roles: [than], snapshot: other.snapshot },
    ],
  };
}

const UNOBSERVABLE: Observation = { level: 'other', of: null };

function* wider(view: View, otherView: View, role: string, than: string): Generator<ObligationPart> {
  const { name } = view.relation;
  const part = (
    mine: Formula,
    theirs: Formula,
    observation: Observation,
    clause: string,
  ): ObligationPart => ({
    formula: and(mine, not(theirs)),
    description:
      role === than ? `${role} ${clause}, and did not before` : `${role} ${clause}, and ${than} does not`,
    checks: [
      { caller: 0, ...observation, holds: true },
      { caller: 1, ...observation, holds: false },
    ],
  });
  yield part(view.row, otherView.row, { level: 'row', of: null }, `sees a row of ${name}`);
  for (const [of, unmasked] of view.unmasked)
    yield part(unmasked, otherView.unmasked.get(of) ?? or(), { level: 'unmasked', of }, `sees ${name}.${of}`);
  for (const [of, shown] of view.shown)
    yield part(
      shown,
      otherView.shown.get(of) ?? or(),
      { level: 'shown', of },
      `sees ${name}.${of} or its mask`,
    );
  for (const [key, formula] of view.aggregated) {
    const column = aggregatedColumn(key);
    const theirs = or(otherView.aggregated.get(key) ?? or(), otherView.unmasked.get(column) ?? or());
    yield part(formula, theirs, UNOBSERVABLE, `may aggregate ${name}.${column} under its rule`);
  }
  for (const [key, formula] of view.versions) {
    const labels = unmaskedLabels(key);
    const coveringVersions = [...otherView.versions].filter(([theirs]) => {
      const unmasked = unmaskedLabels(theirs);
      return labels.every((label) => unmasked.includes(label));
    });
    const theirs = or(...coveringVersions.map(([, shown]) => shown));
    yield part(formula, theirs, UNOBSERVABLE, `sees passages of ${name} in which less is redacted`);
  }
  yield part(view.decoded, otherView.decoded, UNOBSERVABLE, `may send passages of ${name} to a model`);
}

/** Obligations for the claim that no row is visible to two callers whose values of the attribute are disjoint. */
function disjointness(
  { attribute, on }: Extract<Claim, { readonly kind: 'disjoint' }>,
  policy: ProvenPolicy,
): readonly Obligation[] {
  const { catalog } = policy;
  const relations = on === null ? [...catalog.relations.values()] : on.map((name) => entityOf(name, policy));
  return relations.flatMap((relation) => {
    const roles = rolesOn(relation.name, policy.snapshot);
    if (roles.length === 0) return [];
    const first = new Encoder(relation, 'first caller');
    const second = new Encoder(relation, 'second caller', first);
    const rows = [first, second].map((encoder) => roles.map((role) => viewOf([role], policy, encoder).row));
    const [firstRows = [], secondRows = []] = rows;
    const disjoint = and(...disjointValues(attribute, first, second));
    const rowSeenBy = (caller: number): Check => ({ caller, level: 'row', of: null, holds: true });
    const parts = firstRows.flatMap((mine, i) =>
      secondRows.slice(i).map((theirs, n) => ({
        formula: and(mine, theirs, disjoint),
        description: `${roles[i]} and ${roles[i + n]} with different values of \`${attribute}\` see one row of ${relation.name}`,
        checks: [rowSeenBy(i), rowSeenBy(roles.length + i + n)],
      })),
    );
    const { snapshot } = policy;
    return [
      {
        relation,
        parts,
        facts: [...first.facts, ...second.facts],
        encoders: [first, second],
        callers: [0, 1].flatMap((encoder) => roles.map((role) => ({ encoder, roles: [role], snapshot }))),
      },
    ];
  });
}

function disjointValues(attribute: string, first: Encoder, second: Encoder): readonly Formula[] {
  const hasValues = [first, second].flatMap((encoder) => [
    not(encoder.attribute(attribute, 'missing')),
    not(encoder.attribute(attribute, 'any')),
    not(encoder.attribute(attribute, 'empty')),
  ]);
  const compared = [...first.memberships, ...second.memberships].filter((m) => m.attribute === attribute);
  const disjoint = compared.map(({ type, args }) =>
    not(and(first.membership(attribute, type, args), second.membership(attribute, type, args))),
  );
  return [...hasValues, ...disjoint];
}
