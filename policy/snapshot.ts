import type { AttributePattern, MaskKind, RelationGrant } from 'osl-compiler';
import type { AttributeValue } from './attributes.js';
import type { Conditions } from './conditions.js';
import type { PolicyDocument } from './document.js';
import type { ExchangeRules } from './exchange/rule.js';
import type { RateLimits } from './limits/limit.js';
import type { QuotaRule } from './limits/quotas.js';
import type { ServiceAccount } from './service-account.js';
import type { CertificateRule } from './tokens/certificate.js';

/** Compiled policy: all names resolved, all predicates bound. Frozen; used as a whole or not at all. */
export interface PolicySnapshot {
  /** Hash of the document's content, independent of the order of keys. */
  readonly version: string;
  /** Version of the catalog it was compiled against, the only one it may be used with. */
  readonly catalogVersion: string;
  readonly tenant: string;
  readonly subjects: ReadonlyMap<string, SubjectPolicy>;
  readonly roles: ReadonlyMap<string, RolePolicy>;
  /** By relation: mask of every label that occurs in it; default `deny`. */
  readonly masks: ReadonlyMap<string, ReadonlyMap<string, MaskKind>>;
  /** Relations whose results are totally ordered. */
  readonly ordered: ReadonlySet<string>;
  readonly limits: RateLimits;
  readonly quotas: readonly QuotaRule[];
  readonly serviceAccounts: ReadonlyMap<string, ServiceAccount>;
  /** By rule name. */
  readonly certificates: ReadonlyMap<string, CertificateRule>;
  readonly exchange: ExchangeRules;
  /** Source document, for checking a proposed manifest against it. */
  readonly document: PolicyDocument;
}

export interface SubjectPolicy {
  readonly ceiling: ReadonlySet<string>;
  readonly adminCeiling: ReadonlySet<string>;
  readonly purposes: ReadonlySet<string>;
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  /** Roles whose deny rules always count, whatever a token claims; default none. */
  readonly imposed?: ReadonlySet<string>;
  /** Pattern of `attributes` for `forChain`. */
  readonly pattern: AttributePattern;
}

export interface RolePolicy {
  /** By relation; filters are not yet bound to a chain. */
  readonly grants: ReadonlyMap<string, readonly PolicyGrant[]>;
  /** Conditions of its grants, by key. */
  readonly conditions: ReadonlyMap<string, Conditions>;
  /** By relation: denied columns, or `all`. */
  readonly denied: ReadonlyMap<string, DeniedColumns>;
  /** Highest estimated cost of one query of a member; null: unlimited. */
  readonly maxCost: number | null;
}

/** Grant with its conditions; the compiler only gets grants whose conditions hold. */
export interface PolicyGrant extends RelationGrant {
  /** Null: unconditional. */
  readonly conditions: Conditions | null;
}

export type DeniedColumns = 'all' | ReadonlySet<string>;
