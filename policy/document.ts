import type { MaskKind } from 'osl-compiler';
import type { AttributeScalar } from './attributes.js';
import type { Day } from './local-time.js';

/** Kinds of requests, each of which counts by itself. */
export type LimitBucket = 'query' | 'sample' | 'schema' | 'authoring' | 'catalog';

export const LIMIT_BUCKETS: readonly LimitBucket[] = Object.freeze([
  'query',
  'sample',
  'schema',
  'authoring',
  'catalog',
]);

/** The policy as its YAML file states it, after the schema check. Names may still be wrong; `snapshot` says. */
export interface PolicyDocument {
  readonly version: 1;
  readonly tenant: string;
  readonly subjects: Readonly<Record<string, SubjectDocument>>;
  readonly roles: Readonly<Record<string, RoleDocument>>;
  /** Mask of each sensitivity label. A label that is not named here is `deny`. */
  readonly masks: Readonly<Record<string, MaskKind>>;
  /** Entities and bridges of whose rows answers have a total order. */
  readonly order?: Readonly<Record<string, 'by_key'>>;
  readonly limits?: LimitsDocument;
  /** By entity or bridge: the column that tells whose a row is, by which `min_group_size` counts. */
  readonly privacy_units?: Readonly<Record<string, string>>;
  /** Purposes for which data may be requested, by name. */
  readonly purposes?: Readonly<Record<string, { readonly description?: string }>>;
  /** Logins of the wire that prove a password instead of bringing a token, by login name. */
  readonly service_accounts?: Readonly<Record<string, ServiceAccountDocument>>;
  /** Rules that map client certificates to subjects, by name. */
  readonly certificates?: Readonly<Record<string, CertificateDocument>>;
  /** Rules that map identities of an issuer to subjects; the first rule that matches a token decides. */
  readonly exchange?: readonly ExchangeRuleDocument[];
}

/** Conditions on a certificate; all must hold. */
export interface CertificateDocument {
  /** One of `subjects`: who its holder is. */
  readonly subject: string;
  /** Data roles that it claims; the subject's whole ceiling unless told. */
  readonly acl_roles?: readonly string[];
  /** The subject, as RFC 2253 writes it. */
  readonly dn?: string;
  /** The one common name of the subject. */
  readonly cn?: string;
  /** One of its alternative names. */
  readonly dns?: string;
  readonly uri?: string;
  readonly email?: string;
  /** Distinguished name of the issuer, as RFC 2253 writes it. */
  readonly issuer?: string;
}

export interface ExchangeRuleDocument {
  readonly name: string;
  /** The `iss` of an issuer of identity tokens. */
  readonly issuer: string;
  /** Claims that a token must have: one of these values, or a list with one of them. All must hold. */
  readonly when?: Readonly<Record<string, string | boolean | readonly string[]>>;
  /** Template of the subject: text with claims between braces, such as `user:{sub}`. */
  readonly subject: string;
  /** Data roles that such a subject can ever have. */
  readonly ceiling: readonly string[];
  /** Admin roles that such a subject can ever have, where it asks for them. */
  readonly admin?: readonly string[];
  /** Data roles by values of a claim; default: the whole ceiling of the subject. */
  readonly roles?: {
    readonly claim: string;
    readonly map: Readonly<Record<string, string | readonly string[]>>;
  };
  readonly attributes?: Readonly<Record<string, AttributeSource>>;
  /** Purposes that such a subject may name. */
  readonly purposes?: readonly string[];
  /** Claims that conditions of grants may look at: they are taken over as they are. */
  readonly claims?: readonly string[];
  /** An access token is good as it is, without an exchange beforehand. */
  readonly direct?: boolean;
}

/** An attribute as of a subject, or taken from a claim, where `among` bounds what it may say. */
type AttributeSource =
  | AttributeScalar
  | readonly AttributeScalar[]
  | { readonly any: true }
  | { readonly claim: string; readonly among?: readonly AttributeScalar[] };

export interface ServiceAccountDocument {
  /** One of `subjects`: whose rights a session has. */
  readonly subject: string;
  /** Password verifier as Postgres stores it: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
  readonly scram: string;
  /** Data roles that a session claims; the subject's whole ceiling unless told. */
  readonly acl_roles?: readonly string[];
}

export interface SubjectDocument {
  /** Data roles that the subject can ever have; what a token claims beyond them counts for nothing. */
  readonly ceiling: readonly string[];
  /** Admin roles that the subject can ever have. */
  readonly admin?: readonly string[];
  /** Purposes that the subject can ever ask for; what a token or a request says beyond them counts for nothing. */
  readonly purposes?: readonly string[];
  /** A value, a list of values, or `{any: true}`. A missing attribute makes a filter false. */
  readonly attributes?: Readonly<
    Record<string, AttributeScalar | readonly AttributeScalar[] | { readonly any: true }>
  >;
}

export interface RoleDocument {
  readonly description?: string;
  readonly grants: readonly GrantDocument[];
  /** Highest planner cost of one query of a member. */
  readonly max_cost?: number;
  /** Quotas of its members, together or each. */
  readonly limits?: readonly QuotaDocument[];
  /** Columns that members may not use at all, whatever other roles grant. No columns: the whole relation. */
  readonly deny?: readonly { readonly on: string; readonly columns?: readonly string[] }[];
}

export interface GrantDocument {
  /** An entity or a bridge. */
  readonly on: string;
  /** `*` means every column, also those that a later manifest adds. */
  readonly columns: '*' | readonly string[];
  /** A predicate over the relation's columns; `attribute('name')` refers to the caller's attributes. */
  readonly rows?: string;
  /** Sensitivity labels shown in the clear. */
  readonly unmask?: readonly string[];
  /** On a facet: its passages may be sent to a language model. */
  readonly decode?: boolean;
  /** The grant gives no row output: only aggregates over at least so many entities. */
  readonly min_group_size?: number;
  /** The grant is for these metrics of the entity alone; `columns` may be filtered and grouped by. */
  readonly metrics?: readonly string[];
  /** By column: how many values of it a group must have. */
  readonly distinct?: Readonly<Record<string, number>>;
  /** Percent of a figure that one row may contribute at most. */
  readonly dominance?: number;
  /** A moment with its offset: the grant counts from then on. */
  readonly starts?: string;
  /** A moment with its offset: the grant counts until then. */
  readonly ends?: string;
  /** The grant counts for requests of which all of this holds. */
  readonly when?: WhenDocument;
  /** The grant counts for requests with one of these purposes. */
  readonly for?: readonly string[];
  /** The grant counts for who has broken the glass, and only for a while. */
  readonly break_glass?: { readonly minutes: number; readonly per_day: number };
}

/** Conditions on a request. */
interface WhenDocument {
  /** `08:00` to `18:00` on the clock of `zone`; a window that ends before it begins goes on over midnight. */
  readonly hours?: { readonly from: string; readonly to: string };
  /** Days on which a window begins. */
  readonly days?: readonly Day[];
  /** Of the IANA database. */
  readonly zone?: string;
  readonly surfaces?: readonly ('rest' | 'wire' | 'mcp')[];
  /** The peer's address is in one of these. */
  readonly networks?: readonly string[];
  /** Each claim of the token that is named here has one of these values. */
  readonly claims?: Readonly<Record<string, ClaimValue | readonly ClaimValue[]>>;
}

type ClaimValue = string | number | boolean;

/** Quota in one window, which begins with its first request. */
export interface QuotaDocument {
  readonly per: 'second' | 'minute' | 'hour' | 'day';
  /** Of which requests; `query` unless told. */
  readonly bucket?: LimitBucket;
  /** Of a role: each member has it for itself. */
  readonly each?: 'subject';
  readonly requests?: number;
  readonly rows?: number;
  readonly bytes?: number;
  /** Of the database's time. */
  readonly seconds?: number;
}

/** Requests a second and subject. */
export interface LimitsDocument {
  /** Of each subject, beside those. */
  readonly subject?: readonly QuotaDocument[];
  /** Of all subjects together. */
  readonly tenant?: readonly QuotaDocument[];
  readonly query?: number;
  readonly sample?: number;
  readonly schema?: number;
  readonly authoring?: number;
  readonly catalog?: number;
}
