import type { MaskKind } from 'osl-compiler';
import type { AttributeScalar } from './attributes.js';
import type { Day } from './conditions.js';

/** Kinds of requests with separate limits. */
export type LimitBucket = 'query' | 'sample' | 'schema' | 'authoring' | 'catalog';

export const LIMIT_BUCKETS: readonly LimitBucket[] = Object.freeze([
  'query',
  'sample',
  'schema',
  'authoring',
  'catalog',
]);

/** A policy file after the schema check. Its names are not resolved yet; see `compileSnapshot`. */
export interface PolicyDocument {
  readonly version: 1;
  readonly tenant: string;
  readonly subjects: Readonly<Record<string, SubjectDocument>>;
  readonly roles: Readonly<Record<string, RoleDocument>>;
  /** Attributes that are read from entities, by name. */
  readonly attributes?: Readonly<Record<string, TableAttributeDocument>>;
  /** The mask for each sensitivity label; default `deny`. */
  readonly masks: Readonly<Record<string, MaskKind>>;
  /** Entities and bridges whose results need a total order, with ties broken by key. */
  readonly order?: Readonly<Record<string, 'by_key'>>;
  readonly limits?: LimitsDocument;
  /** The column that identifies the data subject, by entity or bridge. `min_group_size` counts data subjects. */
  readonly privacy_units?: Readonly<Record<string, string>>;
  /** Purposes for which data may be requested, by name. */
  readonly purposes?: Readonly<Record<string, { readonly description?: string }>>;
  /** `required`: the policy is published only if all claims about it are proved. */
  readonly claims?: 'required';
  /** Password logins for the Postgres port, by login name. */
  readonly service_accounts?: Readonly<Record<string, ServiceAccountDocument>>;
  /** Rules that map client certificates to subjects, by name. */
  readonly certificates?: Readonly<Record<string, CertificateDocument>>;
  /** Rules that map identities of an issuer to subjects; the first matching rule decides. */
  readonly exchange?: readonly ExchangeRuleDocument[];
}

/** Maps client certificates to a subject. All conditions on the certificate must hold. */
export interface CertificateDocument {
  /** The policy subject that the certificate's holder becomes; one of `subjects`. */
  readonly subject: string;
  /** Data roles for which the session is opened; default: all roles of the subject's `ceiling`. */
  readonly acl_roles?: readonly string[];
  /** The distinguished name of the certificate's subject (RFC 2253). */
  readonly dn?: string;
  /** The common name of the certificate's subject. A certificate with several common names does not match. */
  readonly cn?: string;
  /** One of the certificate's alternative names. */
  readonly dns?: string;
  readonly uri?: string;
  readonly email?: string;
  /** The distinguished name of the issuer (RFC 2253). */
  readonly issuer?: string;
}

export interface ExchangeRuleDocument {
  readonly name: string;
  /** The `iss` claim of the identity tokens that the rule applies to. */
  readonly issuer: string;
  /** Required claims: each must have one of these values, or be a list that contains one of them. */
  readonly when?: Readonly<Record<string, string | boolean | readonly string[]>>;
  /** A template for the subject: text with claims in braces, such as `user:{sub}`. */
  readonly subject: string;
  /** The upper bound for the subject's data roles. */
  readonly ceiling: readonly string[];
  /** The upper bound for the subject's admin roles, granted only on request. */
  readonly admin?: readonly string[];
  /** Data roles by claim value; default: all roles of `ceiling`. */
  readonly roles?: {
    readonly claim: string;
    readonly map: Readonly<Record<string, string | readonly string[]>>;
  };
  readonly attributes?: Readonly<Record<string, AttributeSource>>;
  /** The purposes that the subject may state. */
  readonly purposes?: readonly string[];
  /** Claims that are copied for use in grant conditions. */
  readonly claims?: readonly string[];
  /** True if access tokens are accepted directly, without an exchange. */
  readonly direct?: boolean;
}

/** An attribute with fixed values, with any value, or with the values of a claim, which `among` can restrict. */
type AttributeSource =
  | AttributeScalar
  | readonly AttributeScalar[]
  | { readonly any: true }
  | { readonly claim: string; readonly among?: readonly AttributeScalar[] };

export interface ServiceAccountDocument {
  /** The subject for which a session acts; one of `subjects`. */
  readonly subject: string;
  /** The password verifier as Postgres stores it: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
  readonly scram: string;
  /** Data roles for which the session is opened; default: all roles of the subject's `ceiling`. */
  readonly acl_roles?: readonly string[];
}

export interface SubjectDocument {
  /** The upper bound for data roles; claims beyond it are ignored. */
  readonly ceiling: readonly string[];
  /** The upper bound for admin roles. */
  readonly admin?: readonly string[];
  /** The upper bound for purposes; claims beyond it are ignored. */
  readonly purposes?: readonly string[];
  /** A value, a list of values, or `{any: true}`. A missing attribute makes every filter that names it false. */
  readonly attributes?: Readonly<
    Record<string, AttributeScalar | readonly AttributeScalar[] | { readonly any: true }>
  >;
}

/**
 * An attribute that is read from an entity for every subject: the values of `column` in the rows that `rows` selects
 * for the subject. Without `column`, the attribute is true if such a row exists.
 */
export interface TableAttributeDocument {
  /** Name of the entity that is read. */
  readonly on: string;
  readonly column?: string;
  /** A predicate over the entity's columns; `attribute('name')` refers to another attribute of the subject. */
  readonly rows: string;
  /** Seconds for which the values may be reused; default 0. */
  readonly max_age?: number;
}

export interface RoleDocument {
  readonly description?: string;
  readonly grants: readonly GrantDocument[];
  /** Maximum estimated cost of a query by a member. */
  readonly max_cost?: number;
  /** Quotas of the role's members, either shared or for each member. */
  readonly limits?: readonly QuotaDocument[];
  /** Columns that members may not use, whatever other roles grant; without `columns`, the whole relation. */
  readonly deny?: readonly { readonly on: string; readonly columns?: readonly string[] }[];
}

export interface GrantDocument extends GrantConditions {
  /** Name of an entity, bridge or facet. */
  readonly on: string;
  /** `*`: all columns, including those added by later manifests. */
  readonly columns: '*' | readonly string[];
  /** A predicate over the relation's columns; `attribute('name')` refers to the caller's attributes. */
  readonly rows?: string;
  /** Sensitivity labels whose columns are shown unmasked. */
  readonly unmask?: readonly string[];
  /** True if passages may be sent to a language model; for facets only. */
  readonly decode?: boolean;
  /** Minimum number of entities in each group. If set, the grant allows only aggregates, not rows. */
  readonly min_group_size?: number;
  /** Restricts the grant to these metrics; `columns` may be used in filters and grouping. */
  readonly metrics?: readonly string[];
  /** The minimum number of distinct values per group, by column. */
  readonly distinct?: Readonly<Record<string, number>>;
  /** Maximum contribution of a single row to a result, in percent. */
  readonly dominance?: number;
  /**
   * Refuses an answer that, combined with earlier answers within `days` days, would reveal a figure computed from too
   * few entities. The earlier answers are those of the subject or, if `with` is set, of all subjects whose grant has
   * the same `with`.
   */
  readonly overlap?: { readonly mode: 'refuse'; readonly with?: string; readonly days?: number };
}

/** The conditions of a grant, which depend on the request; `compile-conditions.ts` must list all of them. */
export interface GrantConditions {
  /** Start of the grant's validity, with UTC offset. */
  readonly starts?: string;
  /** End of the grant's validity, with UTC offset. */
  readonly ends?: string;
  /** Conditions on the request; all must hold. */
  readonly when?: WhenDocument;
  /** The request must state one of these purposes. */
  readonly for?: readonly string[];
  /** If set, the grant is valid only during break-glass access, within these limits. */
  readonly break_glass?: { readonly minutes: number; readonly per_day: number };
  /** If set, the grant is valid only while somebody with the role `by` has approved it, for at most `minutes`. */
  readonly approval?: { readonly by: string; readonly minutes: number };
}

interface WhenDocument {
  /** Time of day in `zone`, such as `08:00` to `18:00`; a window that ends before it begins spans midnight. */
  readonly hours?: { readonly from: string; readonly to: string };
  /** Days on which a window begins; default: every day. */
  readonly days?: readonly Day[];
  /** IANA time zone. */
  readonly zone?: string;
  readonly surfaces?: readonly ('rest' | 'wire' | 'mcp')[];
  /** Networks, such as `10.0.0.0/8`, one of which must contain the peer's address. */
  readonly networks?: readonly string[];
  /** Required token claims with their accepted values. */
  readonly claims?: Readonly<Record<string, ClaimValue | readonly ClaimValue[]>>;
}

type ClaimValue = string | number | boolean;

/** Quota per window of time; a window begins with its first request. */
export interface QuotaDocument {
  /** Length of the window. `task`: each task is counted separately, for a day from its first request. */
  readonly per: 'second' | 'minute' | 'hour' | 'day' | 'task';
  /** Name shown in refusals and to operators; default: the quota's path in the policy. */
  readonly name?: string;
  /** Kind of requests that are counted; default `query`. */
  readonly bucket?: LimitBucket;
  /** For a role's quotas: counts each member, or each chain of subjects, separately; default: all members together. */
  readonly each?: 'subject' | 'chain';
  readonly requests?: number;
  readonly rows?: number;
  readonly bytes?: number;
  /** Maximum time spent in the database, in seconds. */
  readonly seconds?: number;
  /** Maximum sum of the planner's cost estimates. */
  readonly cost?: number;
  /** Maximum number of language model tokens. */
  readonly tokens?: number;
  /** Maximum number of distinct entities shown, of the relations in `of` and of those with a label in `labels`. */
  readonly entities?: number;
  readonly of?: readonly string[];
  readonly labels?: readonly string[];
}

/** Quotas, and rate limits in requests per second of each subject. */
export interface LimitsDocument {
  /** Quotas of each subject. */
  readonly subject?: readonly QuotaDocument[];
  /** Quotas of each chain of subjects. */
  readonly chain?: readonly QuotaDocument[];
  /** Quotas shared by all subjects. */
  readonly tenant?: readonly QuotaDocument[];
  readonly query?: number;
  readonly sample?: number;
  readonly schema?: number;
  readonly authoring?: number;
  readonly catalog?: number;
}
