import type { AttributePattern, MaskKind, RelationGrant } from 'osl-compiler';
import type { AttributeValue, TableAttribute } from './attributes.js';
import type { CompiledConditions } from './conditions.js';
import type { PolicyDocument } from './document.js';
import type { ExchangeRules } from './exchange/rule.js';
import type { QuotaRule, RateLimits } from './limits/quotas.js';
import type { ServiceAccount } from './service-account.js';
import type { CertificateRule } from './tokens/certificate.js';

/** A compiled policy: all names are resolved and all predicates bound. Frozen; used as a whole or not at all. */
export interface PolicySnapshot {
  /** A hash of the document's content, independent of the order of keys. */
  readonly version: string;
  /** The version of the catalog that the policy was compiled against; the policy must not be used with another one. */
  readonly catalogVersion: string;
  readonly tenant: string;
  readonly subjects: ReadonlyMap<string, SubjectPolicy>;
  readonly roles: ReadonlyMap<string, RolePolicy>;
  /** Attributes that are read from entities, each after the attributes that it needs. */
  readonly tableAttributes: ReadonlyMap<string, TableAttribute>;
  /** By relation: the mask for every label used in it; default `deny`. */
  readonly masks: ReadonlyMap<string, ReadonlyMap<string, MaskKind>>;
  /** The relations whose results need a total order, with ties broken by key. */
  readonly ordered: ReadonlySet<string>;
  readonly limits: RateLimits;
  readonly quotas: readonly QuotaRule[];
  readonly serviceAccounts: ReadonlyMap<string, ServiceAccount>;
  /** Certificate rules by name. */
  readonly certificates: ReadonlyMap<string, CertificateRule>;
  readonly exchange: ExchangeRules;
  /** The source document, for checking a proposed manifest against it. */
  readonly document: PolicyDocument;
}

export interface SubjectPolicy {
  readonly ceiling: ReadonlySet<string>;
  readonly adminCeiling: ReadonlySet<string>;
  readonly purposes: ReadonlySet<string>;
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  /** Roles whose deny rules always apply, whatever a token claims; default none. */
  readonly imposed?: ReadonlySet<string>;
  /** The number of values of each attribute, as `forChain` needs it. */
  readonly pattern: AttributePattern;
}

export interface RolePolicy {
  /** Grants by relation; their filters are not yet bound to a chain. */
  readonly grants: ReadonlyMap<string, readonly PolicyGrant[]>;
  /** The conditions of the role's grants, by key. */
  readonly conditions: ReadonlyMap<string, CompiledConditions>;
  /** By relation: the denied columns, or `all`. */
  readonly denied: ReadonlyMap<string, DeniedColumns>;
  /** The highest estimated cost of one query by a member; null: unlimited. */
  readonly maxCost: number | null;
}

/** A grant with its conditions; the compiler only gets grants whose conditions hold. */
export interface PolicyGrant extends RelationGrant {
  /** The conditions; null if unconditional. */
  readonly conditions: CompiledConditions | null;
}

export type DeniedColumns = 'all' | ReadonlySet<string>;
