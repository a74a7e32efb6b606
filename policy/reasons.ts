import { randomUUID } from 'node:crypto';
import type { Catalog } from 'osl-compiler';
import type { EffectiveAccess } from './access.js';
import { attributesOf } from './attributes.js';
import type { GrantDocument } from './document.js';
import { type Identity, type IdentityClaims, mintIdentity } from './identity.js';
import type { PolicySnapshot } from './snapshot.js';
import { subjectsOf } from './subjects-of.js';

/** State of a role that a caller claims. */
interface RoleReason {
  readonly role: string;
  readonly counts: boolean;
  /** True if the policy has it. */
  readonly declared: boolean;
  /** Subjects of the chain whose ceiling does not have it. */
  readonly beyond: readonly string[];
}

/** A grant on one relation, of a role that the caller claims, and what it comes to. */
export interface GrantReason {
  /** As the policy file has it: `roles.sales.grants[0]`. */
  readonly rule: string;
  /** Opaque; the same that explained plans and the caller are shown. */
  readonly id: string;
  readonly role: string;
  readonly columns: '*' | readonly string[];
  readonly rows: string | null;
  readonly unmask: readonly string[];
  readonly min_group_size: number | null;
  /** Conditions as in the policy file: `starts`, `ends`, `when`, `for`, `break_glass`; null: always. */
  readonly conditions: Readonly<Record<string, unknown>> | null;
  /** True if it is part of the caller's rights now. */
  readonly counts: boolean;
  /** Attributes that its filter names and a subject of the chain lacks: it shows no row then. */
  readonly lacking: readonly { readonly subject: string; readonly attribute: string }[];
}

/** A deny rule on one relation, of a role that the caller claims. */
interface DenyReason {
  readonly rule: string;
  readonly role: string;
  /** Null: all of the relation. */
  readonly columns: readonly string[] | null;
  /** Subjects of the chain who can have the role; the rule counts as soon as one can. */
  readonly held_by: readonly string[];
}

/** Parts of a policy that affect one caller and one relation. */
export interface Reasons {
  readonly roles: readonly RoleReason[];
  readonly grants: readonly GrantReason[];
  readonly denials: readonly DenyReason[];
}

/**
 * The rules that decide how the caller sees `relation`, those that come to nothing included: for whoever may know the
 * policy. `access` is the caller's own, which says what counts.
 */
export function reasonsFor(
  relation: string,
  identity: IdentityClaims,
  access: EffectiveAccess,
  snapshot: PolicySnapshot,
  catalog: Catalog,
): Reasons {
  const claimed = [...new Set(identity.aclRoles)].sort();
  const chain = subjectsOf(identity, snapshot).map((policy, i) => ({
    name: identity.chain[i] ?? '',
    ...policy,
  }));
  const counting = new Set(
    [...(access.relations.get(relation)?.grants ?? []), ...(access.denied?.get(relation)?.grants ?? [])].map(
      (g) => g.id,
    ),
  );
  const grantsOf = (role: string): readonly GrantReason[] =>
    (snapshot.roles.get(role)?.grants.get(relation) ?? []).map((grant) => {
      const index = Number(grant.id.slice(grant.id.lastIndexOf('.') + 1));
      const needed = grant.filter === null ? [] : [...attributesOf(grant.filter)];
      return {
        rule: `roles.${role}.grants[${index}]`,
        id: grant.id,
        role,
        ...written(snapshot.document.roles[role]?.grants[index]),
        counts: counting.has(grant.id),
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
    roles: claimed.map((role) => ({
      role,
      counts: access.dataRoles.has(role),
      declared: snapshot.roles.has(role),
      beyond: chain.filter((s) => !s.ceiling.has(role)).map((s) => s.name),
    })),
    grants: claimed.flatMap(grantsOf),
    denials: claimed.flatMap(denialsOf),
  });
}

function written(
  grant: GrantDocument | undefined,
): Pick<GrantReason, 'columns' | 'rows' | 'unmask' | 'min_group_size' | 'conditions'> {
  const { starts, ends, when, for: purposes, break_glass } = grant ?? {};
  const given = Object.entries({ starts, ends, when, for: purposes, break_glass }).filter(
    ([, v]) => v !== undefined,
  );
  return {
    columns: grant?.columns ?? [],
    rows: grant?.rows ?? null,
    unmask: grant?.unmask ?? [],
    min_group_size: grant?.min_group_size ?? null,
    conditions: given.length === 0 ? null : Object.fromEntries(given),
  };
}

/** Caller to explain or test a policy for. No token proves it. */
export interface HypotheticalCaller {
  /** Root first; the last asks. */
  readonly chain: readonly string[];
  /** Data roles that the token claims; null for all that the last of the chain can have. */
  readonly roles: readonly string[] | null;
  /** Other claims of the token; absent: none. */
  readonly claims?: Readonly<Record<string, readonly string[]>>;
}

/** Seconds. */
const LIFETIME = 300;

/**
 * The claims that a token for `supposed` would bring. It proves nothing: for judging a policy, never for answering
 * whoever asked for it.
 */
export function supposedIdentity(
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

/** An identity that nothing proves, for `osl policy test`: it asks databases that were made for the test. */
export function testIdentity(supposed: HypotheticalCaller, snapshot: PolicySnapshot): Identity {
  return mintIdentity(supposedIdentity(supposed, snapshot));
}
