import type { AttributePattern, MaskKind, RelationGrant } from 'osl-compiler';
import type { AttributeValue } from './attributes.js';
import type { Conditions } from './conditions.js';
import type { PolicyDocument } from './document.js';
import type { ExchangeRules } from './exchange/rule.js';
import type { RateLimits } from './limits/limit.js';
import type { QuotaRule } from './limits/quotas.js';
import type { ServiceAccount } from './service-account.js';
import type { CertificateRule } from './tokens/certificate.js';

/** A policy whose every name resolved and whose every predicate is bound. Frozen; serves whole or not at all. */
export interface PolicySnapshot {
  /** Hash of the document's content: equal documents, equal versions, whatever the order of their keys. */
  readonly version: string;
  /** The catalog that it was compiled against, and the only one that it may be used with. */
  readonly catalogVersion: string;
  readonly tenant: string;
  readonly subjects: ReadonlyMap<string, SubjectPolicy>;
  readonly roles: ReadonlyMap<string, RolePolicy>;
  /** By relation: the mask of every label that occurs in it; `deny` where the policy names none. */
  readonly masks: ReadonlyMap<string, ReadonlyMap<string, MaskKind>>;
  /** Relations of whose rows answers have a total order. */
  readonly ordered: ReadonlySet<string>;
  readonly limits: RateLimits;
  readonly quotas: readonly QuotaRule[];
  /** By login name. */
  readonly serviceAccounts: ReadonlyMap<string, ServiceAccount>;
  /** By the name of the rule. */
  readonly certificates: ReadonlyMap<string, CertificateRule>;
  /** Rules that map identities of an issuer to subjects. */
  readonly exchange: ExchangeRules;
  /** As written: a manifest that is only proposed is judged by it. */
  readonly document: PolicyDocument;
}

export interface SubjectPolicy {
  readonly ceiling: ReadonlySet<string>;
  readonly adminCeiling: ReadonlySet<string>;
  readonly purposes: ReadonlySet<string>;
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  /** Roles whose deny rules count, whatever a token claims; none unless told. */
  readonly imposed?: ReadonlySet<string>;
  /** Pattern of `attributes` that `forChain` uses. */
  readonly pattern: AttributePattern;
}

export interface RolePolicy {
  /** By relation; filters are not yet tied to a chain. */
  readonly grants: ReadonlyMap<string, readonly PolicyGrant[]>;
  /** Those of its grants, by key; most roles have none. */
  readonly conditions: ReadonlyMap<string, Conditions>;
  /** By relation: the columns that members may not use, or all of it. */
  readonly denied: ReadonlyMap<string, DeniedColumns>;
  /** Highest estimated cost of one query of a member; null: unlimited. */
  readonly maxCost: number | null;
}

/** A grant as the policy has it: the compiler is told of those whose conditions hold, and of no condition. */
export interface PolicyGrant extends RelationGrant {
  /** Null: it always counts. */
  readonly conditions: Conditions | null;
}

export type DeniedColumns = 'all' | ReadonlySet<string>;
