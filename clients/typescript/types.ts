// Written by `npm run client` from GET /openapi.json. Do not edit: the next run writes it anew.

/** An error (RFC 9457). */
export interface Problem {
  /** `urn:osl:error:<code>` */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly sqlstate: string;
  readonly detail: string;
  readonly hint: string | null;
  readonly position: null | {
    readonly offset: number;
    readonly line: number;
    readonly column: number;
  };
  /** The call in the audit log. */
  readonly request_id: string;
}

/** Exactly one of three shapes; a body of several is E0513. */
export type Query = {
  /** One SELECT in OSL-SQL. */
  readonly osql: string;
  /** Values of `$1 …`. Numbers that JSON does not carry exactly are sent as strings. */
  readonly parameters?: readonly (string | number | boolean | null)[];
  /** Validate and plan only; no rows. */
  readonly explain?: boolean | null;
  /** With `explain`, for admins: the statement that goes upstream, or also its plan; E2101 for others. */
  readonly upstream?: "statement" | "plan";
  readonly sql?: never;
  readonly metrics?: never;
  readonly group_by?: never;
  readonly groupBy?: never;
  readonly where?: never;
  readonly order_by?: never;
  readonly orderBy?: never;
  readonly limit?: never;
  readonly time_constraint?: never;
  readonly grain?: never;
  readonly timeGranularity?: never;
} | {
  /** One SELECT over the tables that the manifest allows. */
  readonly sql: string;
  /** Values of `$1 …`. Numbers that JSON does not carry exactly are sent as strings. */
  readonly parameters?: readonly (string | number | boolean | null)[];
  /** Validate and plan only; no rows. */
  readonly explain?: boolean | null;
  /** With `explain`, for admins: the statement that goes upstream, or also its plan; E2101 for others. */
  readonly upstream?: "statement" | "plan";
  readonly osql?: never;
  readonly metrics?: never;
  readonly group_by?: never;
  readonly groupBy?: never;
  readonly where?: never;
  readonly order_by?: never;
  readonly orderBy?: never;
  readonly limit?: never;
  readonly time_constraint?: never;
  readonly grain?: never;
  readonly timeGranularity?: never;
} | {
  readonly metrics: readonly (string | {
    readonly name: string;
    readonly alias?: string | null;
  })[];
  readonly group_by?: readonly (string | {
    /** `entity__column`, an entity, `metric_time` or `relationship__column`, each with `__grain` or without. */
    readonly name: string;
    readonly grain?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly timeGranularity?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
  })[] | null;
  readonly groupBy?: readonly (string | {
    /** `entity__column`, an entity, `metric_time` or `relationship__column`, each with `__grain` or without. */
    readonly name: string;
    readonly grain?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly timeGranularity?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
  })[] | null;
  readonly where?: string | {
    readonly sql: string;
  } | readonly (string | {
    readonly sql: string;
  })[] | null;
  readonly order_by?: readonly (string | {
    /** `entity__column`, an entity, `metric_time` or `relationship__column`, each with `__grain` or without. */
    readonly name: string;
    readonly grain?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly timeGranularity?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly descending?: boolean;
  })[] | null;
  readonly orderBy?: readonly (string | {
    /** `entity__column`, an entity, `metric_time` or `relationship__column`, each with `__grain` or without. */
    readonly name: string;
    readonly grain?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly timeGranularity?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
    readonly descending?: boolean;
  })[] | null;
  readonly limit?: number | null;
  /** Both included. */
  readonly time_constraint?: {
    /** A day, or an ISO 8601 time; UTC where it has no offset. */
    readonly start?: string | null;
    /** A day, or an ISO 8601 time; UTC where it has no offset. */
    readonly end?: string | null;
  } | null;
  readonly grain?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
  readonly timeGranularity?: "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | null;
  /** Validate and plan only; no rows. */
  readonly explain?: boolean | null;
  /** With `explain`, for admins: the statement that goes upstream, or also its plan; E2101 for others. */
  readonly upstream?: "statement" | "plan";
  readonly osql?: never;
  readonly parameters?: never;
  readonly sql?: never;
};

/** Rows. */
export interface Answer {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly form: "structured" | "retrieve" | "traverse" | "joint" | "cross_modal" | "sql" | "metrics";
  readonly columns: readonly ({
    readonly name: string;
    /** A type of the model, such as `int4` or `text[]`. The key that a passage carries is `text` in JSON, whatever its type. */
    readonly type: string;
    /** The column of an entity that it is, unchanged. */
    readonly source: string | null;
    /** Something in it is masked for this caller, in some rows at least. Of passages and evidence their rows decide; in a plan (`explain`) it says what may be. */
    readonly redacted: boolean;
    /** How a figure is meant to be shown; the value itself is as it was computed: 0.25 for 25 percent. */
    readonly format?: {
      readonly kind: "number" | "percent" | "currency";
      /** Its code by ISO 4217. */
      readonly currency?: string;
      /** What is counted or measured. */
      readonly unit?: string;
      readonly decimals?: number;
    };
  })[];
  readonly rows: readonly (Readonly<Record<string, unknown>>)[];
  readonly row_count: number;
  /** A cap held rows back. */
  readonly truncated: boolean;
  /** Columns of entities that are in the answer and masked for this caller, in some rows at least: `<entity>.<column>`. */
  readonly redacted_columns: readonly string[];
  /** Fields in the answer that are redacted in a passage that it rests on. */
  readonly redacted_fields: readonly string[];
  /** Masked columns that are not in the answer, but in what decides of it: a filter, a group, an order. */
  readonly redacted_conditions?: readonly string[];
  /** Aggregates over columns that are masked in some rows. */
  readonly partial_columns?: readonly string[];
  /** What the question should know of its answer, whatever the data. */
  readonly notices?: readonly string[];
  /** The indexes that the answer rests on, by facet. */
  readonly indexes?: readonly ({
    readonly facet: string;
    /** When the text was last read in turn, by RFC 3339; the index has what was written before. Null where that is not known. */
    readonly indexed_at: string | null;
  })[];
  /** Passages for which a decoder failed. */
  readonly errors?: readonly ({
    readonly chunk_id: string;
    readonly reason: string;
  })[];
  /** How old the answer is, where the manifest lets it be older than the question; without it, it is of now. */
  readonly freshness?: {
    readonly from: "live" | "cache" | "rollup";
    /** By RFC 3339: what was there then is in the answer, and what came later need not be. */
    readonly as_of: string;
  };
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

/** A plan; nothing was run. */
export interface Plan {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly form: "structured" | "retrieve" | "traverse" | "joint" | "cross_modal" | "sql" | "metrics";
  readonly plan: {
    readonly step: string;
    readonly detail: Readonly<Record<string, unknown>>;
    readonly inputs: readonly (Readonly<Record<string, unknown>>)[];
  };
  /** Full names of what would be read. */
  readonly objects: readonly string[];
  /** Opaque ids of the grants that decide. */
  readonly grants: readonly string[];
  readonly columns: readonly ({
    readonly name: string;
    /** A type of the model, such as `int4` or `text[]`. The key that a passage carries is `text` in JSON, whatever its type. */
    readonly type: string;
    /** The column of an entity that it is, unchanged. */
    readonly source: string | null;
    /** Something in it is masked for this caller, in some rows at least. Of passages and evidence their rows decide; in a plan (`explain`) it says what may be. */
    readonly redacted: boolean;
    /** How a figure is meant to be shown; the value itself is as it was computed: 0.25 for 25 percent. */
    readonly format?: {
      readonly kind: "number" | "percent" | "currency";
      /** Its code by ISO 4217. */
      readonly currency?: string;
      /** What is counted or measured. */
      readonly unit?: string;
      readonly decimals?: number;
    };
  })[];
  /** Columns of entities that are in the answer and masked for this caller, in some rows at least: `<entity>.<column>`. */
  readonly redacted_columns: readonly string[];
  /** Masked columns that are not in the answer, but in what decides of it: a filter, a group, an order. */
  readonly redacted_conditions?: readonly string[];
  /** Aggregates over columns that are masked in some rows. */
  readonly partial_columns?: readonly string[];
  /** What the question should know of its answer, whatever the data. */
  readonly notices?: readonly string[];
  /** Objects that should not be used any more. */
  readonly deprecated?: readonly ({
    readonly object: string;
    readonly reason: string;
  })[];
  /** What the database would get; for admins. */
  readonly sql?: string;
  /** What was asked for by `upstream`. */
  readonly upstream?: {
    /** The statement. */
    readonly sql: string;
    /** In the order of `$1 …`. */
    readonly parameters: readonly ({
      /** A type of Postgres. */
      readonly type: string;
      /** A literal of the text, `$n` of the asker, policy or a metric, an attribute, a step, a key. */
      readonly from: "literal" | "parameter" | "gateway" | "attribute" | "step" | "mask_key";
      /** Of a literal of the text, as Postgres reads it. */
      readonly value?: string;
      /** `n` of the asker's `$n`. */
      readonly number?: number;
    })[];
    /** How the database would run it whatever the values: EXPLAIN, without ANALYZE. */
    readonly plan?: string;
    /** A cap held back the end of the plan. */
    readonly truncated?: boolean;
  };
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

export interface SampleRequest {
  readonly kind: "table" | "facet";
  readonly name: string;
  /** Default: 8 rows, 5 chunks. */
  readonly limit?: number | null;
}

export interface Sample {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly kind: "table" | "facet";
  readonly name: string;
  readonly rows: readonly (Readonly<Record<string, unknown>>)[];
  /** Columns of entities that are in the answer and masked for this caller, in some rows at least: `<entity>.<column>`. */
  readonly redacted_columns: readonly string[];
  /** Fields in the answer that are redacted in a passage that it rests on. */
  readonly redacted_fields: readonly string[];
}

export interface Schema {
  /** Of what is shown: unchanged while that is. */
  readonly version: string;
  readonly etag: string;
  readonly entities: readonly ({
    readonly name: string;
    readonly description: string | null;
    /** Why it should not be used any more; null where it may. */
    readonly deprecated: string | null;
    readonly fqn: string;
    readonly composition: "structured" | "structured+content" | "content";
    readonly primary_key: readonly string[];
    /** The columns that joins may use. */
    readonly entity_key_columns: readonly string[];
    readonly columns: readonly ({
      readonly name: string;
      readonly type: string;
      readonly description: string | null;
      readonly nullable: boolean;
      /** In which rows the caller sees, or may see, a mask. */
      readonly masked: "none" | "some" | "all";
      /** Whether rows show it, or aggregates only may use it. */
      readonly use: "rows" | "aggregates";
      readonly synonyms: readonly string[];
      /** In the full view only. */
      readonly sensitivity?: string | null;
    })[];
    /** Taken from its text; selected by key. */
    readonly derived: readonly ({
      readonly name: string;
      readonly description: string | null;
      readonly type: string;
      readonly facet: string;
      readonly synonyms: readonly string[];
    })[];
    /** For columns of `aggregates`. */
    readonly minimum_group_size: number | null;
    readonly facets: readonly string[];
    readonly metrics: readonly string[];
    readonly synonyms: readonly string[];
    /** Questions that this caller can send. */
    readonly examples: readonly string[];
  })[];
  readonly facets: readonly ({
    readonly name: string;
    readonly description: string | null;
    /** Why it should not be used any more; null where it may. */
    readonly deprecated: string | null;
    readonly fqn: string;
    readonly entity: string;
    readonly entity_key: string;
    readonly embedding_model: string;
    /** When the text was last read in turn, by RFC 3339; the index has what was written before. Null where that is not known. */
    readonly indexed_at: string | null;
    readonly retrieval: {
      readonly max_top_k: number;
      /** What RETRIEVE takes as `mode`; the first one unless told. */
      readonly modes: readonly string[];
      /** What RETRIEVE takes as `rerank`; true means the first one. */
      readonly rerankers: readonly string[];
    };
    readonly labels: readonly string[];
    readonly columns: readonly ({
      readonly name: string;
      readonly type: string;
      readonly description: string | null;
      readonly nullable: boolean;
      /** In which rows the caller sees, or may see, a mask. */
      readonly masked: "none" | "some" | "all";
      /** Whether rows show it, or aggregates only may use it. */
      readonly use: "rows" | "aggregates";
      readonly synonyms: readonly string[];
      /** In the full view only. */
      readonly sensitivity?: string | null;
    })[];
    /** Columns that WHERE and joins may use. */
    readonly scalar_indexed: readonly string[];
    readonly synonyms: readonly string[];
    /** Questions that this caller can send. */
    readonly examples: readonly string[];
  })[];
  readonly metrics: readonly ({
    readonly name: string;
    readonly description: string | null;
    /** Why it should not be used any more; null where it may. */
    readonly deprecated: string | null;
    readonly fqn: string;
    /** Null where it takes rows of several. */
    readonly entity: string | null;
    readonly kind: "simple" | "ratio" | "derived" | "cumulative" | "offset" | "conversion";
    readonly type: string;
    readonly format: null | {
      readonly kind: "number" | "percent" | "currency";
      /** Its code by ISO 4217. */
      readonly currency?: string;
      /** What is counted or measured. */
      readonly unit?: string;
      readonly decimals?: number;
    };
    /** Whether MEASURE over its entity alone has it; a metrics body has them all. */
    readonly measurable: boolean;
    readonly synonyms: readonly string[];
    /** Questions that this caller can send. */
    readonly examples: readonly string[];
  })[];
  readonly relationships: readonly ({
    readonly name: string;
    readonly description: string | null;
    /** Why it should not be used any more; null where it may. */
    readonly deprecated: string | null;
    readonly kind: "many_to_one" | "one_to_one" | "many_to_many";
    readonly from: {
      readonly entity: string;
      readonly columns: readonly string[];
    };
    readonly to: {
      readonly entity: string;
      readonly columns: readonly string[];
    };
    readonly bridge: null | {
      readonly name: string;
      readonly columns: readonly ({
        readonly name: string;
        readonly type: string;
        readonly description: string | null;
        readonly nullable: boolean;
        /** In which rows the caller sees, or may see, a mask. */
        readonly masked: "none" | "some" | "all";
        /** Whether rows show it, or aggregates only may use it. */
        readonly use: "rows" | "aggregates";
        readonly synonyms: readonly string[];
        /** In the full view only. */
        readonly sensitivity?: string | null;
      })[];
    };
    readonly examples: readonly string[];
  })[];
  readonly functions: readonly ({
    readonly name: string;
    readonly kind: string;
    readonly signatures: readonly string[];
  })[];
  readonly operators: readonly ({
    readonly name: string;
    readonly class: string;
    readonly signatures: readonly string[];
    readonly available: boolean;
  })[];
  readonly forms: readonly ({
    readonly name: "structured" | "retrieve" | "traverse" | "joint" | "cross_modal";
    readonly shape: string;
    readonly rules: readonly string[];
    readonly examples: readonly string[];
  })[];
  readonly features: {
    readonly joins: "declared" | "any";
    readonly set_operations: boolean;
    readonly subqueries: boolean;
    readonly derived_tables: boolean;
    readonly window_functions: boolean;
    readonly row_functions: boolean;
    readonly several_searches: boolean;
    readonly operators_over_rows: boolean;
  };
}

export interface DomainMap {
  readonly nodes: readonly ({
    /** `entity:<Name>` or `metric:<name>` */
    readonly id: string;
    readonly kind: "entity" | "metric" | "candidate";
    readonly name: string;
    readonly plane: "mixed" | "structured";
    readonly state: "existing" | "deprecated" | "discovered";
    readonly composition: string | null;
    readonly description: string | null;
    readonly attributes: readonly ({
      readonly name: string;
      readonly role: "pk" | "column" | "derived" | "metric";
      readonly type: string | null;
      readonly description: string | null;
    })[];
    /** Of an entity `pk`, `model`, `legs`; of a candidate `pk`, `source`, `proposal`, `confidence`. */
    readonly meta: Readonly<Record<string, unknown>>;
  })[];
  readonly edges: readonly ({
    /** `<bridge>~<a>:<b>` */
    readonly id: string;
    readonly source: string;
    readonly target: string;
    /** Through a bridge, or along a foreign key. */
    readonly kind: "nn" | "n1" | "11";
    readonly label: string;
    /** False for what was only discovered. */
    readonly declared: boolean;
    readonly source_attr: string;
    readonly target_attr: string;
  })[];
  readonly bridges: readonly string[];
  /** In the full view: connectors whose candidates could not be read. */
  readonly unread?: readonly ({
    readonly connector: string;
    readonly reason: string;
  })[];
  /** Some database has more relations than are read. */
  readonly truncated?: boolean;
}

export interface Resolution {
  readonly term: string;
  /** Best first, at most 20. */
  readonly matches: readonly ({
    readonly fqn: string;
    readonly kind: "entity" | "column" | "derived" | "metric" | "facet" | "bridge";
    readonly score: number;
    readonly via: "name" | "lexicon" | "description";
  })[];
}

export interface Candidates {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly candidates: readonly ({
    /** `connector.schema.table` */
    readonly id: string;
    readonly connector: string;
    readonly schema: string;
    readonly table: string;
    readonly kind: "table" | "view" | "materialized_view" | "foreign_table";
    readonly comment: string | null;
    /** A bridge links two and says no more; an association says more of each link. */
    readonly proposal: "entity" | "bridge" | "association";
    /** Free in the manifest. */
    readonly name: string;
    readonly columns: readonly ({
      readonly name: string;
      readonly upstream_type: string;
      /** Null where the model has no such type. */
      readonly type: string | null;
      /** `type` as a manifest spells it for this column: `varchar(20)`. */
      readonly declared: string | null;
      /** What a manifest says of a type that is read as text. */
      readonly stored: string | null;
      /** Of an enum, in its order. */
      readonly labels: readonly string[] | null;
      readonly nullable: boolean;
      /** The role that governed statements run as may read it. */
      readonly readable: boolean;
      readonly comment: string | null;
    })[];
    /** Empty where none is declared. */
    readonly key: readonly string[];
    readonly unique_keys: readonly (readonly string[])[];
    readonly foreign_keys: readonly ({
      readonly name: string;
      /** The constraint's. */
      readonly comment: string | null;
      readonly columns: readonly string[];
      readonly references: {
        readonly schema: string;
        readonly table: string;
        readonly columns: readonly string[];
        /** The entity that rests on it. */
        readonly entity: string | null;
      };
    })[];
    /** The planner's. */
    readonly row_estimate: number | null;
    readonly confidence: number;
    readonly evidence: readonly string[];
  })[];
  /** Connectors that could not be read. */
  readonly unread: readonly ({
    readonly connector: string;
    readonly reason: string;
  })[];
  /** Some database has more relations than are read. */
  readonly truncated: boolean;
}

/** One of three. */
export type SuggestRequest = {
  /** `connector.schema.table` */
  readonly candidate: string;
  readonly table?: never;
  readonly term?: never;
} | {
  /** `connector.schema.table` */
  readonly table: string;
  readonly candidate?: never;
  readonly term?: never;
} | {
  /** A business word. */
  readonly term: string;
  readonly candidate?: never;
  readonly table?: never;
};

export interface Suggestion {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly fragment: {
    readonly yaml: string;
    readonly json: Readonly<Record<string, unknown>>;
  };
  /** What stands against the draft as it is. */
  readonly diagnostics: readonly ({
    /** M… of a manifest, P… of a policy. */
    readonly code: string;
    readonly severity: "error" | "warning";
    readonly document: "manifest" | "policy";
    /** JSON Pointer. */
    readonly path: string;
    readonly range: null | {
      readonly start: {
        readonly line: number;
        readonly column: number;
      };
      readonly end: {
        readonly line: number;
        readonly column: number;
      };
    };
    readonly message: string;
    readonly hint: string | null;
  })[];
  /** What a person has to know or decide. */
  readonly notes: readonly string[];
  /** What was served when this was judged. */
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

/** Members of a manifest, which replace those of their names; or all of one; or a draft. */
export type ValidateRequest = {
  /** YAML text, or JSON. */
  readonly fragment: string | Readonly<Record<string, unknown>>;
  readonly manifest?: never;
  readonly draft?: never;
} | {
  /** YAML text, or JSON. */
  readonly manifest: string | Readonly<Record<string, unknown>>;
  readonly fragment?: never;
  readonly draft?: never;
} | {
  /** Its id. */
  readonly draft: string;
  readonly fragment?: never;
  readonly manifest?: never;
};

export interface Judgement {
  /** The call in the audit log. */
  readonly request_id: string;
  /** It could be served. */
  readonly ok: boolean;
  readonly diagnostics: readonly ({
    /** M… of a manifest, P… of a policy. */
    readonly code: string;
    readonly severity: "error" | "warning";
    readonly document: "manifest" | "policy";
    /** JSON Pointer. */
    readonly path: string;
    readonly range: null | {
      readonly start: {
        readonly line: number;
        readonly column: number;
      };
      readonly end: {
        readonly line: number;
        readonly column: number;
      };
    };
    readonly message: string;
    readonly hint: string | null;
  })[];
  readonly diff: null | {
    /** Of the manifest that would be served. */
    readonly version: string;
    readonly changes: readonly ({
      readonly change: "added" | "removed" | "changed";
      /** `entity`, `column`, `metric`, … */
      readonly kind: string;
      readonly name: string;
      readonly what: readonly string[];
    })[];
    /** Who gains or loses access under the policy of now. */
    readonly access: readonly ({
      readonly role: string;
      /** Whose ceiling has the role. */
      readonly subjects: {
        readonly count: number;
        readonly first: readonly string[];
      };
      readonly changes: readonly ({
        readonly object: string;
        readonly effect: "gains" | "loses" | "differs";
        readonly before: null | {
          readonly access: "aggregates" | "masked" | "partly_masked" | "clear" | "served";
          /** What that is upstream. */
          readonly reads: string;
        };
        readonly after: null | {
          readonly access: "aggregates" | "masked" | "partly_masked" | "clear" | "served";
          /** What that is upstream. */
          readonly reads: string;
        };
      })[];
    })[];
    /** Connectors change. */
    readonly needs_restart: boolean;
  };
  /** What was served when this was judged. */
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

/** One change. All but drafts need the version that they were made for. */
export type ObjectsRequest = {
  /** Members of a manifest: YAML text, or JSON. */
  readonly fragment: string | Readonly<Record<string, unknown>>;
  /** `draft`: keep it only. Default: published. */
  readonly state?: "draft" | "published" | null;
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly draft?: never;
  readonly deprecate?: never;
  readonly withdraw?: never;
  readonly rollback?: never;
  readonly discard?: never;
} | {
  /** A draft that was validated. */
  readonly draft: string;
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly fragment?: never;
  readonly state?: never;
  readonly deprecate?: never;
  readonly withdraw?: never;
  readonly rollback?: never;
  readonly discard?: never;
} | {
  /** Objects by name, with the reason of each. */
  readonly deprecate: Readonly<Record<string, unknown>>;
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly fragment?: never;
  readonly state?: never;
  readonly draft?: never;
  readonly withdraw?: never;
  readonly rollback?: never;
  readonly discard?: never;
} | {
  readonly withdraw: readonly string[];
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly fragment?: never;
  readonly state?: never;
  readonly draft?: never;
  readonly deprecate?: never;
  readonly rollback?: never;
  readonly discard?: never;
} | {
  /** A version, by number or id; 0 is the manifest file alone. */
  readonly rollback: number | string;
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly fragment?: never;
  readonly state?: never;
  readonly draft?: never;
  readonly deprecate?: never;
  readonly withdraw?: never;
  readonly discard?: never;
} | {
  /** A draft. */
  readonly discard: string;
  /** The manifest version that the change was made for: `versions.manifest` of `/osl/validate`. Or `If-Match`. */
  readonly base_version?: string;
  readonly fragment?: never;
  readonly state?: never;
  readonly draft?: never;
  readonly deprecate?: never;
  readonly withdraw?: never;
  readonly rollback?: never;
};

export type Publication = {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly state: "published";
  /** False where all of it was published already; then there is no new version. */
  readonly changed: boolean;
  readonly version: null | {
    /** SHA-256 of its file. */
    readonly id: string;
    /** From 1. */
    readonly number: number;
    /** The version before it. */
    readonly parent: string | null;
    /** RFC 3339. */
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly request_id: string;
    readonly action: "publish" | "deprecate" | "withdraw" | "rollback";
    /** The draft that it was made of. */
    readonly draft: string | null;
    /** Of a rollback: the number that it restores. */
    readonly restores: number | null;
    /** Of the manifest file alone. */
    readonly base: string;
    /** Of the manifest that served with it. */
    readonly manifest: string;
    readonly policy: string;
  };
  readonly diff: {
    /** Of the manifest that would be served. */
    readonly version: string;
    readonly changes: readonly ({
      readonly change: "added" | "removed" | "changed";
      /** `entity`, `column`, `metric`, … */
      readonly kind: string;
      readonly name: string;
      readonly what: readonly string[];
    })[];
    /** Who gains or loses access under the policy of now. */
    readonly access: readonly ({
      readonly role: string;
      /** Whose ceiling has the role. */
      readonly subjects: {
        readonly count: number;
        readonly first: readonly string[];
      };
      readonly changes: readonly ({
        readonly object: string;
        readonly effect: "gains" | "loses" | "differs";
        readonly before: null | {
          readonly access: "aggregates" | "masked" | "partly_masked" | "clear" | "served";
          /** What that is upstream. */
          readonly reads: string;
        };
        readonly after: null | {
          readonly access: "aggregates" | "masked" | "partly_masked" | "clear" | "served";
          /** What that is upstream. */
          readonly reads: string;
        };
      })[];
    })[];
    /** Connectors change. */
    readonly needs_restart: boolean;
  };
  /** What an author should know: objects that nobody has a grant on. */
  readonly notes: readonly string[];
  /** What was served when this was judged. */
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
} | {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly state: "draft" | "validated" | "published" | "discarded";
  readonly draft: {
    /** Of its text. */
    readonly id: string;
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly state: "draft" | "validated" | "published";
    readonly validated: null | {
      readonly at: string;
      readonly by: string;
      readonly manifest: string;
      readonly policy: string;
    };
    /** The version that was made of it. */
    readonly published_as: string | null;
  };
};

export interface Publications {
  /** The call in the audit log. */
  readonly request_id: string;
  /** Of the manifest that is served; the ETag too. */
  readonly version: string;
  /** Of the manifest file alone. */
  readonly base: string;
  readonly objects: readonly ({
    /** `section.name`, as in a manifest. */
    readonly name: string;
    readonly state: "published" | "deprecated";
    /** It stands in the place of what the manifest file declares. */
    readonly over_file: boolean;
  })[];
  /** Newest first, at most 200. */
  readonly history: readonly ({
    /** SHA-256 of its file. */
    readonly id: string;
    /** From 1. */
    readonly number: number;
    /** The version before it. */
    readonly parent: string | null;
    /** RFC 3339. */
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly request_id: string;
    readonly action: "publish" | "deprecate" | "withdraw" | "rollback";
    /** The draft that it was made of. */
    readonly draft: string | null;
    /** Of a rollback: the number that it restores. */
    readonly restores: number | null;
    /** Of the manifest file alone. */
    readonly base: string;
    /** Of the manifest that served with it. */
    readonly manifest: string;
    readonly policy: string;
  })[];
  readonly drafts: readonly ({
    /** Of its text. */
    readonly id: string;
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly state: "draft" | "validated" | "published";
    readonly validated: null | {
      readonly at: string;
      readonly by: string;
      readonly manifest: string;
      readonly policy: string;
    };
    /** The version that was made of it. */
    readonly published_as: string | null;
  })[];
  /** There are older versions. */
  readonly truncated: boolean;
}

/** A version with its `objects`, `changes` and `access`; or a draft with its `text`. */
export type Published = {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly kind: "version";
  readonly version: {
    /** SHA-256 of its file. */
    readonly id: string;
    /** From 1. */
    readonly number: number;
    /** The version before it. */
    readonly parent: string | null;
    /** RFC 3339. */
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly request_id: string;
    readonly action: "publish" | "deprecate" | "withdraw" | "rollback";
    /** The draft that it was made of. */
    readonly draft: string | null;
    /** Of a rollback: the number that it restores. */
    readonly restores: number | null;
    /** Of the manifest file alone. */
    readonly base: string;
    /** Of the manifest that served with it. */
    readonly manifest: string;
    readonly policy: string;
  };
} | {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly kind: "draft";
  readonly draft: {
    /** Of its text. */
    readonly id: string;
    readonly at: string;
    readonly author: {
      readonly subject: string;
      readonly chain: readonly string[];
    };
    readonly state: "draft" | "validated" | "published";
    readonly validated: null | {
      readonly at: string;
      readonly by: string;
      readonly manifest: string;
      readonly policy: string;
    };
    /** The version that was made of it. */
    readonly published_as: string | null;
  };
};

/** A problem, with what is wrong. */
export interface Unservable {
  readonly code: string;
  readonly detail: string;
  readonly diagnostics: readonly ({
    /** M… of a manifest, P… of a policy. */
    readonly code: string;
    readonly severity: "error" | "warning";
    readonly document: "manifest" | "policy";
    /** JSON Pointer. */
    readonly path: string;
    readonly range: null | {
      readonly start: {
        readonly line: number;
        readonly column: number;
      };
      readonly end: {
        readonly line: number;
        readonly column: number;
      };
    };
    readonly message: string;
    readonly hint: string | null;
  })[];
}

export interface AccessQuestion {
  /** An entity, bridge or facet, or a column of one: `osl.entities.customer.email`. */
  readonly object: string;
  /** Who is supposed to ask. Or `chain`. */
  readonly as?: string | null;
  /** For whom whom: root first. */
  readonly chain?: readonly string[] | null;
  /** Data roles that the token claims. Absent: all that the asker can have. */
  readonly roles?: readonly string[] | null;
  /** A moment by RFC 3339. Absent: now. */
  readonly at?: string | null;
  readonly surface?: "rest" | "wire" | "mcp" | null;
  /** Of the peer. */
  readonly address?: string | null;
  /** What it is for. */
  readonly purpose?: string | null;
  /** What else the token says, each claim with its values. */
  readonly claims?: Readonly<Record<string, unknown>> | null;
  /** The primary key of one row, each value as text. */
  readonly row?: readonly string[] | null;
}

/** How somebody sees an object, and each rule that bears on it. */
export interface AccessExplanation {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly object: string;
  /** Who asks for whom: root first. */
  readonly chain: readonly string[];
  /** In the clear, masked in some rows or in all, in figures over groups only, or not at all. */
  readonly sees: "clear" | "partly_masked" | "masked" | "aggregates" | "nothing";
  /** Of a column. */
  readonly label: string | null;
  /** How the label is shown to those who may not see it. */
  readonly mask: string | null;
  /** Of a relation, all that are seen. */
  readonly columns: readonly ({
    readonly name: string;
    /** In the clear, masked in some rows or in all, in figures over groups only, or not at all. */
    readonly sees: "clear" | "partly_masked" | "masked" | "aggregates" | "nothing";
  })[];
  /** Subjects without whom alone more would be seen. */
  readonly taken_away_by: readonly ({
    readonly subject: string;
    /** In the clear, masked in some rows or in all, in figures over groups only, or not at all. */
    readonly would_see: "clear" | "partly_masked" | "masked" | "aggregates" | "nothing";
  })[];
  /** What decides, in words. */
  readonly because: readonly string[];
  readonly roles: readonly ({
    readonly role: string;
    readonly counts: boolean;
    /** Whether the policy has it. */
    readonly declared: boolean;
    /** Subjects of the chain whose ceiling does not have it. */
    readonly beyond: readonly string[];
  })[];
  readonly grants: readonly ({
    /** As the policy file has it: `roles.sales.grants[0]`. */
    readonly rule: string;
    /** Opaque; the same that plans and callers are shown. */
    readonly id: string;
    readonly role: string;
    /** A list, or `*`. */
    readonly columns: string | readonly string[];
    /** Which rows; null for all. */
    readonly rows: string | null;
    readonly unmask: readonly string[];
    readonly min_group_size: number | null;
    /** When it counts: `starts`, `ends`, `when`, `for`, `break_glass`; null: always. */
    readonly conditions: Readonly<Record<string, unknown>> | null;
    /** Whether it is part of the rights now. */
    readonly counts: boolean;
    /** Attributes that its filter names and a subject of the chain lacks: it shows no row then. */
    readonly lacking: readonly ({
      readonly subject: string;
      readonly attribute: string;
    })[];
  })[];
  readonly denials: readonly ({
    readonly rule: string;
    readonly role: string;
    /** Null: all of it. */
    readonly columns: readonly string[] | null;
    /** Subjects of the chain who can have the role. */
    readonly held_by: readonly string[];
  })[];
  readonly row: {
    readonly key: readonly string[];
    /** False too where there is no such row. */
    readonly visible: boolean;
    /** Grants that show it. */
    readonly shown_by: readonly string[];
    /** Subjects without whom alone it would be seen. */
    readonly taken_away_by: readonly string[];
  } | null;
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

/** How the caller sees an object. */
export interface Why {
  /** The call in the audit log. */
  readonly request_id: string;
  readonly object: string;
  /** In the clear, masked in some rows or in all, in figures over groups only, or not at all. */
  readonly sees: "clear" | "partly_masked" | "masked" | "aggregates" | "nothing";
  /** What a masked cell is shown as. */
  readonly masked_as: string | null;
  /** In words, from the caller’s own rights alone. */
  readonly because: readonly string[];
  /** Opaque ids of the caller’s grants on it. */
  readonly grants: readonly string[];
  readonly versions: {
    readonly manifest: string;
    readonly policy: string;
  };
}

export interface AccessRequest {
  /** An entity, bridge or facet, or a column of one: `osl.entities.customer.email`. */
  readonly object: string;
  /** What it is wanted for. */
  readonly reason: string;
}

/** The same whether or not there is such an object. */
export interface AccessRequested {
  /** The call in the audit log. */
  readonly request_id: string;
  /** Whether the owner’s receiver has it; else it is in the audit log alone. */
  readonly delivered: boolean;
}

/** What each operation takes and answers, by its `operationId`. */
export interface Operations {
  /** Ask a question */
  readonly query: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: Query;
    readonly answer: Answer | Plan;
  };
  /** A few rows of an entity, or chunks of a facet */
  readonly sample: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: SampleRequest;
    readonly answer: Sample;
  };
  /** All that is needed to write OSL-SQL */
  readonly schema: {
    readonly parameters: {
      /** `true`: what the grants show. Otherwise all of it, which takes an admin role. */
      readonly governed?: "true" | "false";
      /** Only what has one of these names, with commas; of what is usual nothing is said. */
      readonly names?: string;
      /** Only these lists, with commas: entities, facets, metrics, relationships, functions, operators, forms. */
      readonly parts?: string;
      /** A page of what there is, a line of each. */
      readonly index?: "true" | "false";
      /** Of the index: `next` of the page before. */
      readonly from?: string;
    };
    readonly body: undefined;
    readonly answer: Schema;
  };
  /** The domain graph */
  readonly domainMap: {
    readonly parameters: {
      /** `true`: what the grants show. Otherwise all of it, which takes an admin role. */
      readonly governed?: "true" | "false";
    };
    readonly body: undefined;
    readonly answer: DomainMap;
  };
  /** What a business word may mean */
  readonly resolve: {
    readonly parameters: {
      readonly term: string;
    };
    readonly body: undefined;
    readonly answer: Resolution;
  };
  /** Why the caller sees an object as it does */
  readonly why: {
    readonly parameters: {
      /** An entity or facet, or a column of one: `osl.entities.customer.email`. */
      readonly object: string;
    };
    readonly body: undefined;
    readonly answer: Why;
  };
  /** Ask the owner of the policy for access */
  readonly requestAccess: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: AccessRequest;
    readonly answer: AccessRequested;
  };
  /** Who sees what, and why */
  readonly explainAccess: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: AccessQuestion;
    readonly answer: AccessExplanation;
  };
  /** What the databases hold beyond the manifest */
  readonly candidates: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: Candidates;
  };
  /** A draft of a manifest fragment */
  readonly suggest: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: SuggestRequest;
    readonly answer: Suggestion;
  };
  /** What a fragment or a manifest would change */
  readonly validate: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: ValidateRequest;
    readonly answer: Judgement;
  };
  /** Publish, deprecate, withdraw or roll back */
  readonly publish: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: ObjectsRequest;
    readonly answer: Publication;
  };
  /** What is published, its history, and drafts */
  readonly publications: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: Publications;
  };
  /** One version, or one draft */
  readonly publication: {
    readonly parameters: {
      /** Number or id of a version, or id of a draft. */
      readonly id: string;
    };
    readonly body: undefined;
    readonly answer: Published;
  };
  /** The declared conformance levels */
  readonly conformance: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: readonly string[];
  };
  /** The process answers, and can record what it answers */
  readonly health: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: {
      readonly status: "ok" | "degraded";
      readonly waiting_for?: readonly ("engines" | "policy" | "control" | "limits" | "issuers")[];
      /** The newest policy is missing or invalid, and the last valid one serves until then. */
      readonly kept_policy?: {
        readonly since: string;
        readonly until: string;
        /** Until then. */
        readonly seconds_left: number;
      };
    };
  };
  /** The process answers, and can record what it answers */
  readonly healthz: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: {
      readonly status: "ok" | "degraded";
      readonly waiting_for?: readonly ("engines" | "policy" | "control" | "limits" | "issuers")[];
      /** The newest policy is missing or invalid, and the last valid one serves until then. */
      readonly kept_policy?: {
        readonly since: string;
        readonly until: string;
        /** Until then. */
        readonly seconds_left: number;
      };
    };
  };
  /** The service can answer questions */
  readonly ready: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: {
      readonly status: "ready" | "not_ready";
      readonly checks: Readonly<Record<string, unknown>>;
      /** Entities and bridges whose table or column is gone from the database. */
      readonly objects_out_of_service?: number;
      /** Servers behind the databases, as of foreign tables, that do not answer. */
      readonly data_nodes_unreachable?: number;
      /** The newest policy is missing or invalid, and the last valid one serves until then. */
      readonly kept_policy?: {
        readonly since: string;
        readonly until: string;
        /** Until then. */
        readonly seconds_left: number;
      };
    };
  };
  /** The service can answer questions */
  readonly readyz: {
    readonly parameters: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: {
      readonly status: "ready" | "not_ready";
      readonly checks: Readonly<Record<string, unknown>>;
      /** Entities and bridges whose table or column is gone from the database. */
      readonly objects_out_of_service?: number;
      /** Servers behind the databases, as of foreign tables, that do not answer. */
      readonly data_nodes_unreachable?: number;
      /** The newest policy is missing or invalid, and the last valid one serves until then. */
      readonly kept_policy?: {
        readonly since: string;
        readonly until: string;
        /** Until then. */
        readonly seconds_left: number;
      };
    };
  };
}

/** Where each operation is, and whether it takes a token. */
export const OPERATIONS = {
  query: { method: 'POST', path: '/osl/query', token: true },
  sample: { method: 'POST', path: '/osl/sample', token: true },
  schema: { method: 'GET', path: '/osl/schema', token: true },
  domainMap: { method: 'GET', path: '/osl/domain-map', token: true },
  resolve: { method: 'GET', path: '/osl/schema/resolve', token: true },
  why: { method: 'GET', path: '/osl/why', token: true },
  requestAccess: { method: 'POST', path: '/osl/access-requests', token: true },
  explainAccess: { method: 'POST', path: '/osl/access/explain', token: true },
  candidates: { method: 'GET', path: '/osl/candidates', token: true },
  suggest: { method: 'POST', path: '/osl/suggest', token: true },
  validate: { method: 'POST', path: '/osl/validate', token: true },
  publish: { method: 'POST', path: '/osl/objects', token: true },
  publications: { method: 'GET', path: '/osl/objects', token: true },
  publication: { method: 'GET', path: '/osl/objects/{id}', token: true },
  conformance: { method: 'GET', path: '/osl/conformance', token: true },
  health: { method: 'GET', path: '/health', token: false },
  healthz: { method: 'GET', path: '/healthz', token: false },
  ready: { method: 'GET', path: '/ready', token: false },
  readyz: { method: 'GET', path: '/readyz', token: false },
} as const;
