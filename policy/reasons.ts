import { randomUUID } from 'node:crypto';
import type { Catalog } from 'osl-compiler';
import type { EffectiveAccess } from './access.js';
import { attributesOf } from './attributes.js';
import { conditionsIn } from './compile-conditions.js';
import type { GrantDocument } from './document.js';
import { type Identity, type IdentityClaims, mintIdentity } from './identity.js';
import type { PolicyGrant, PolicySnapshot } from './snapshot.js';
import { subjectsOf } from './subjects.js';
import { statedAttributes } from './table-attributes.js';

/** A role claimed by the caller, and its effect. */
interface RoleReason {
  readonly role: string;
  readonly counts: boolean;
  /** True if the policy declares the role. */
  readonly declared: boolean;
  /** The subjects of the chain that do not have the role in their ceiling. */
  readonly beyond: readonly string[];
}

/** A claimed role's grant on one relation, and its effect. */
export interface GrantReason {
  /** The path in the policy file: `roles.sales.grants[0]`. */
  readonly rule: string;
  /** Opaque id, also shown in explained plans. */
  readonly id: string;
  readonly role: string;
  readonly columns: '*' | readonly string[];
  readonly rows: string | null;
  readonly unmask: readonly string[];
  readonly min_group_size: number | null;
  /** The conditions from the policy file: `starts`, `ends`, `when`, `for`, `break_glass`, `approval`; null if unconditional. */
  readonly conditions: Readonly<Record<string, unknown>> | null;
  /** True if the grant is currently effective. */
  readonly counts: boolean;
  /** Attributes that the grant's filter requires but a subject lacks, so that the grant shows no rows. */
  readonly lacking: readonly { readonly subject: string; readonly attribute: string }[];
}

/** A claimed role's deny rule on one relation. */
interface DenyReason {
  readonly rule: string;
  readonly role: string;
  /** The denied columns; null: the whole relation. */
  readonly columns: readonly string[] | null;
  /** The subjects with the role in their ceiling; a single one is enough for the rule to apply. */
  readonly held_by: readonly string[];
}

/** Returns the index of a grant in the role's list in the policy file. */
export function grantIndex({ id }: Pick<PolicyGrant, 'id'>): number {
  return Number(id.slice(id.lastIndexOf('.') + 1));
}

/** The parts of a policy that concern one caller and one relation. */
export interface Reasons {
  readonly roles: readonly RoleReason[];
  readonly grants: readonly GrantReason[];
  readonly denials: readonly DenyReason[];
}

/**
 * Returns the rules that determine the caller's access to `relation`, including ineffective ones. The rules reveal the
 * policy, so only callers who may know the policy may see them.
 */
export function reasonsFor(
  relation: string,
  identity: IdentityClaims,
  access: EffectiveAccess,
  snapshot: PolicySnapshot,
  catalog: Catalog,
): Reasons {
  const claimedRoles = [...new Set(identity.aclRoles)].sort();
  const chain = subjectsOf(identity, snapshot).map((policy, i) => ({
    name: identity.chain[i] ?? '',
    ...policy,
  }));
  const effectiveIds = new Set(
    [...(access.relations.get(relation)?.grants ?? []), ...(access.denied?.get(relation)?.grants ?? [])].map(
      (g) => g.id,
    ),
  );
  const grantsOf = (role: string): readonly GrantReason[] =>
    (snapshot.roles.get(role)?.grants.get(relation) ?? []).map((grant) => {
      const index = grantIndex(grant);
      const needed = grant.filter === null ? [] : statedAttributes(attributesOf(grant.filter), snapshot);
      return {
        rule: `roles.${role}.grants[${index}]`,
        id: grant.id,
        role,
        ...asDeclared(snapshot.document.roles[role]?.grants[index]),
        counts: effectiveIds.has(grant.id),
        lacking: chain.flatMap(({ name, attributes }) =>
          needed.filter((a) => !attributes.has(a)).map((attribute) => ({ subject: name, attribute })),
        ),
      };
    });
  const denialsOf = (role: string): readonly DenyReason[] =>
    (snapshot.document.roles[role]?.deny ?? []).flatMap((rule, i) => {
      const held_by = chain.filter((s) => s.ceiling.has(role)).map((s) => s.name);
      if (rule.on !== relation && rule.on !== catalog.facets.get(relation)?.entity) return [];
      return [{ rule: `roles.${role}.deny[${i}]`, role, columns: rule.columns ?? null, held_by }];
    });
  return Object.freeze({
    roles: claimedRoles.map((role) => ({
      role,
      counts: access.dataRoles.has(role),
      declared: snapshot.roles.has(role),
      beyond: chain.filter((s) => !s.ceiling.has(role)).map((s) => s.name),
    })),
    grants: claimedRoles.flatMap(grantsOf),
    denials: claimedRoles.flatMap(denialsOf),
  });
}

function asDeclared(
  grant: GrantDocument | undefined,
): Pick<GrantReason, 'columns' | 'rows' | 'unmask' | 'min_group_size' | 'conditions'> {
  const conditions = grant === undefined ? null : conditionsIn(grant);
  return {
    columns: grant?.columns ?? [],
    rows: grant?.rows ?? null,
    unmask: grant?.unmask ?? [],
    min_group_size: grant?.min_group_size ?? null,
    conditions: conditions === null ? null : { ...conditions },
  };
}

/** A caller without authentication, for explaining or testing a policy. */
export interface HypotheticalCaller {
  /** The delegation chain, root first; the last subject is the caller. */
  readonly chain: readonly string[];
  /** Data roles that the token claims; null: all roles in the `ceiling` of the chain's last subject. */
  readonly roles: readonly string[] | null;
  /** The other claims of the token. */
  readonly claims?: Readonly<Record<string, readonly string[]>>;
}

/** Lifetime of a hypothetical token in seconds. */
const LIFETIME = 300;

/** Builds the claims of a hypothetical token. For checking a policy, never for requests. */
export function hypotheticalClaims(
  { chain, roles, claims }: HypotheticalCaller,
  snapshot: PolicySnapshot,
): IdentityClaims {
  const subject = chain.at(-1) ?? '';
  const issuedAt = Math.floor(Date.now() / 1_000);
  return Object.freeze({
    tenant: snapshot.tenant,
    subject,
    chain: Object.freeze([...chain]),
    roles: Object.freeze([]),
    aclRoles: Object.freeze([...(roles ?? snapshot.subjects.get(subject)?.ceiling ?? [])]),
    issuedAt,
    expiresAt: issuedAt + LIFETIME,
    tokenId: randomUUID(),
    ...(claims !== undefined && { claims: new Map(Object.entries(claims)) }),
  });
}

/** Creates an identity without proof, for `osl policy test`, which queries databases made for the test. */
export function testIdentity(caller: HypotheticalCaller, snapshot: PolicySnapshot): Identity {
  return mintIdentity(hypotheticalClaims(caller, snapshot));
}
