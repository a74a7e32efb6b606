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
  /** Entities and bridges whose results have a total order. */
  readonly order?: Readonly<Record<string, 'by_key'>>;
  readonly limits?: LimitsDocument;
  /** By entity or bridge: the column that identifies the data subject, which `min_group_size` counts. */
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

/** Conditions on a certificate; all of them must hold. */
export interface CertificateDocument {
  /** The subject of its holder; one of `subjects`. */
  readonly subject: string;
  /** The claimed data roles; default: the subject's whole ceiling. */
  readonly acl_roles?: readonly string[];
  /** The distinguished name of the subject (RFC 2253). */
  readonly dn?: string;
  /** The subject's common name, of which there must be only one. */
  readonly cn?: string;
  /** One of the alternative names. */
  readonly dns?: string;
  readonly uri?: string;
  readonly email?: string;
  /** The distinguished name of the issuer (RFC 2253). */
  readonly issuer?: string;
}

export interface ExchangeRuleDocument {
  readonly name: string;
  /** The `iss` claim of identity tokens. */
  readonly issuer: string;
  /** Required claims: each must have one of these values, or be a list that contains one. */
  readonly when?: Readonly<Record<string, string | boolean | readonly string[]>>;
  /** A template for the subject: text with claims in braces, such as `user:{sub}`. */
  readonly subject: string;
  /** The upper bound for the subject's data roles. */
  readonly ceiling: readonly string[];
  /** The upper bound for the subject's admin roles, granted only on request. */
  readonly admin?: readonly string[];
  /** Data roles by claim value; default: the whole ceiling. */
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

/** A fixed attribute, or one taken from a claim and bounded by `among`. */
type AttributeSource =
  | AttributeScalar
  | readonly AttributeScalar[]
  | { readonly any: true }
  | { readonly claim: string; readonly among?: readonly AttributeScalar[] };

export interface ServiceAccountDocument {
  /** The subject of a session; one of `subjects`. */
  readonly subject: string;
  /** The password verifier as Postgres stores it: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
  readonly scram: string;
  /** The claimed data roles; default: the subject's whole ceiling. */
  readonly acl_roles?: readonly string[];
}

export interface SubjectDocument {
  /** The upper bound for data roles; claims beyond it are ignored. */
  readonly ceiling: readonly string[];
  /** The upper bound for admin roles. */
  readonly admin?: readonly string[];
  /** The upper bound for purposes; claims beyond it are ignored. */
  readonly purposes?: readonly string[];
  /** A value, a list of values, or `{any: true}`. A missing attribute makes a filter false. */
  readonly attributes?: Readonly<
    Record<string, AttributeScalar | readonly AttributeScalar[] | { readonly any: true }>
  >;
}

/**
 * An attribute of every subject: the values of one column, in the rows that `rows` selects for the subject; without a
 * column, true if there is such a row.
 */
export interface TableAttributeDocument {
  /** An entity. */
  readonly on: string;
  readonly column?: string;
  /** A predicate over the entity's columns; `attribute('name')` refers to another attribute of the subject. */
  readonly rows: string;
  /** Seconds for which the values may be used again; default 0. */
  readonly max_age?: number;
}

export interface RoleDocument {
  readonly description?: string;
  readonly grants: readonly GrantDocument[];
  /** The highest estimated cost of a query by a member. */
  readonly max_cost?: number;
  /** Quotas of its members, either shared or for each member. */
  readonly limits?: readonly QuotaDocument[];
  /** Columns that members may not use, whatever other roles grant. If columns are omitted: the whole relation. */
  readonly deny?: readonly { readonly on: string; readonly columns?: readonly string[] }[];
}

export interface GrantDocument extends GrantConditions {
  /** An entity or a bridge. */
  readonly on: string;
  /** `*`: all columns, including those added by later manifests. */
  readonly columns: '*' | readonly string[];
  /** A predicate over the relation's columns; `attribute('name')` refers to the caller's attributes. */
  readonly rows?: string;
  /** Sensitivity labels shown in the clear. */
  readonly unmask?: readonly string[];
  /** For facets only: passages may be sent to a language model. */
  readonly decode?: boolean;
  /** Minimum number of entities in an aggregate; if set, the grant only allows aggregates and no rows. */
  readonly min_group_size?: number;
  /** Restricts the grant to these metrics; `columns` may be used in filters and grouping. */
  readonly metrics?: readonly string[];
  /** The minimum number of distinct values per group, by column. */
  readonly distinct?: Readonly<Record<string, number>>;
  /** The largest contribution of one row to a result, in percent. */
  readonly dominance?: number;
  /** Answers are compared with earlier ones of the subject, or of all who have a grant with the same name in `with`. */
  readonly overlap?: { readonly mode: 'refuse'; readonly with?: string; readonly days?: number };
}

/** The conditions of a grant, which depend on the request; listed in `compile-conditions.ts`. */
export interface GrantConditions {
  /** Start of the grant's validity, with UTC offset. */
  readonly starts?: string;
  /** End of the grant's validity, with UTC offset. */
  readonly ends?: string;
  /** Conditions on the request; all must hold. */
  readonly when?: WhenDocument;
  /** The request must state one of these purposes. */
  readonly for?: readonly string[];
  /** True if the grant is valid only under break-glass. */
  readonly break_glass?: { readonly minutes: number; readonly per_day: number };
  /** The grant is valid only while somebody with the role `by` has approved it, for at most `minutes`. */
  readonly approval?: { readonly by: string; readonly minutes: number };
}

interface WhenDocument {
  /** `08:00` to `18:00` in `zone`; a window that ends before it begins spans midnight. */
  readonly hours?: { readonly from: string; readonly to: string };
  /** Days on which a window begins. */
  readonly days?: readonly Day[];
  /** IANA time zone. */
  readonly zone?: string;
  readonly surfaces?: readonly ('rest' | 'wire' | 'mcp')[];
  /** Networks that contain the peer's address. */
  readonly networks?: readonly string[];
  /** Required token claims with their accepted values. */
  readonly claims?: Readonly<Record<string, ClaimValue | readonly ClaimValue[]>>;
}

type ClaimValue = string | number | boolean;

/** Quota per window; a window begins with its first request. */
export interface QuotaDocument {
  /** A window of this length, or one task, which is counted for a day. */
  readonly per: 'second' | 'minute' | 'hour' | 'day' | 'task';
  /** The name in refusals and for operators; default: the place in the policy. */
  readonly name?: string;
  /** Kind of requests that are counted; default `query`. */
  readonly bucket?: LimitBucket;
  /** In a role: counts each member, or each chain of subjects, separately. */
  readonly each?: 'subject' | 'chain';
  readonly requests?: number;
  readonly rows?: number;
  readonly bytes?: number;
  /** Time spent in the database. */
  readonly seconds?: number;
  /** Sum of the planner's cost estimates. */
  readonly cost?: number;
  /** Tokens of models. */
  readonly tokens?: number;
  /** Number of different entities that rows show: of those in `of`, and of those with a column labelled so. */
  readonly entities?: number;
  readonly of?: readonly string[];
  readonly labels?: readonly string[];
}

/** Requests per second and subject, and quotas. */
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
