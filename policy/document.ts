import type { MaskKind } from 'osl-compiler';

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
  /** Logins of the wire that prove a password instead of bringing a token, by login name. */
  readonly service_accounts?: Readonly<Record<string, ServiceAccountDocument>>;
}

export interface ServiceAccountDocument {
  /** One of `subjects`: whose rights a session has. */
  readonly subject: string;
  /** What Postgres keeps of a password: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
  readonly scram: string;
  /** Data roles that a session claims; the subject's whole ceiling unless told. */
  readonly acl_roles?: readonly string[];
}

export interface SubjectDocument {
  /** Data roles that the subject can ever have; what a token claims beyond them counts for nothing. */
  readonly ceiling: readonly string[];
  /** Admin roles that the subject can ever have. */
  readonly admin?: readonly string[];
  /** A value, a list of values, or `{any: true}`. A missing attribute makes a filter false. */
  readonly attributes?: Readonly<Record<string, string | readonly string[] | { readonly any: true }>>;
}

export interface RoleDocument {
  readonly description?: string;
  readonly grants: readonly GrantDocument[];
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
}

/** Requests a second and subject. */
export interface LimitsDocument {
  readonly query?: number;
  readonly sample?: number;
  readonly schema?: number;
  readonly catalog?: number;
}
