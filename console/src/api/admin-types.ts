/** What the routes below `/admin/` answer, as their document says. Times are RFC 3339. */

export const SIGHTS = ['clear', 'partly_masked', 'masked', 'aggregates', 'nothing'] as const;
export type Sight = (typeof SIGHTS)[number];

export interface MatrixRow {
  readonly object: string;
  readonly column: string;
  readonly label: string | null;
  readonly sees: readonly Sight[];
}

export interface MatrixPage {
  readonly subjects: readonly (readonly string[])[];
  readonly next_subject: string | null;
  readonly subject_count: number;
  readonly rows: readonly MatrixRow[];
  readonly row_count: number;
}

export interface GrantReason {
  readonly rule: string;
  readonly id: string;
  readonly role: string;
  readonly columns: '*' | readonly string[];
  readonly rows: string | null;
  readonly unmask: readonly string[];
  readonly min_group_size: number | null;
  readonly conditions: Readonly<Record<string, unknown>> | null;
  readonly counts: boolean;
  readonly lacking: readonly { readonly subject: string; readonly attribute: string }[];
}

export interface Explanation {
  readonly object: string;
  readonly chain: readonly string[];
  readonly sees: Sight;
  readonly label: string | null;
  readonly mask: string | null;
  readonly taken_away_by: readonly { readonly subject: string; readonly would_see: Sight }[];
  readonly because: readonly string[];
  readonly grants: readonly GrantReason[];
  readonly row: {
    readonly key: readonly string[];
    readonly visible: boolean;
    readonly shown_by: readonly string[];
    readonly taken_away_by: readonly string[];
  } | null;
}

export interface Offer {
  readonly declared: boolean;
  readonly sees: Sight;
  readonly roles: readonly {
    readonly role: string;
    readonly sees: Sight;
    readonly also: { readonly count: number; readonly first: readonly string[] };
  }[];
  readonly grant: Readonly<Record<string, unknown>> | null;
}

export interface AccessRequestView {
  readonly request_id: string;
  readonly at: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly object: string | null;
  readonly offer: Offer | null;
}

export interface Job<Result> {
  readonly state: 'none' | 'never' | 'running' | 'done' | 'failed';
  readonly began_at: string | null;
  readonly ended_at: string | null;
  readonly by: string | null;
  readonly progress: Readonly<Record<string, number>> | null;
  readonly result: Result | null;
  readonly why: string | null;
}

export interface PolicyTests {
  readonly ok: boolean;
  readonly results: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly faults: readonly string[];
  }[];
  readonly coverage: {
    readonly changes: number;
    readonly held: number;
    readonly unheld: readonly { readonly rule: string; readonly change: string }[];
  } | null;
  readonly tested: { readonly manifest: string; readonly policy: string | null };
}

export interface AuditRecord {
  readonly ts: string;
  readonly kind: 'decision' | 'outcome' | 'event';
  readonly request_id: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly surface: string;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly objects_omitted: number;
  readonly decision: 'allow' | 'deny' | 'error' | null;
  readonly code: string | null;
  readonly outcome: string | null;
  readonly rows: number | null;
  readonly duration_us: number | null;
  readonly detail?: string;
  readonly versions: { readonly manifest: string | null; readonly policy: string | null } | null;
  readonly statement_hmac: string | null;
  readonly writer: string;
  readonly epoch: number;
  readonly seq: number;
}

export interface RecordPage {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

export interface RecordProof {
  readonly seq: number;
  readonly text: string;
  readonly verifier_key: string;
}

export interface ChainVerdict {
  readonly chain: string;
  readonly verifier_key: string | null;
  readonly integrity: 'intact' | 'damaged';
  readonly completeness: 'complete' | 'incomplete' | 'unknown';
  readonly records: number;
  readonly unanchored: number;
  readonly openDecisions: number;
  readonly tornBytes: number;
  readonly anchor: { readonly size: number; readonly time: string | null } | null;
  readonly kept: { readonly from: number; readonly since: string | null } | null;
  readonly problem: {
    readonly kind: string;
    readonly segment: string;
    readonly offset: number;
    readonly seq: number;
    readonly message: string;
  } | null;
}

export interface Verification {
  readonly ok: boolean;
  readonly chains: readonly ChainVerdict[];
}

export interface ProcessView {
  readonly process: string;
  readonly pid: number;
  readonly since: string;
  readonly draining: boolean;
  readonly manifest: string;
  readonly policy: string | null;
  readonly policy_kept_until: string | null;
  readonly policy_fault: string | null;
  readonly audit: {
    readonly records: number;
    readonly waiting: number;
    readonly unanchored: number;
    readonly failing: string | null;
  };
  readonly sessions: number;
  readonly out_of_service: readonly string[];
}

export interface SessionView {
  readonly id: string;
  readonly process: string;
  readonly surface: 'wire' | 'rest' | 'mcp';
  readonly user: string | null;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly application: string | null;
  readonly since: string;
  readonly state: string;
  readonly state_since: string;
  readonly shape: string | null;
  readonly fingerprint: string | null;
  readonly objects: readonly string[];
}

export interface PoolView {
  readonly process: string;
  readonly connector: string;
  readonly purpose: string;
  readonly size: number;
  readonly open: number;
  readonly running: number;
  readonly waiting: number;
  readonly reach: string;
}

export interface FormLatency {
  readonly form: string;
  readonly surface: string;
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly { readonly le: number | null; readonly count: number }[];
}

export interface Figures {
  readonly latency: readonly FormLatency[];
  readonly stages: readonly { readonly stage: string; readonly count: number; readonly sum: number }[];
  readonly requests: readonly {
    readonly decision: string;
    readonly outcome: string;
    readonly count: number;
  }[];
  readonly refusals: readonly { readonly code: string; readonly count: number }[];
  readonly lineage: readonly {
    readonly endpoint: string;
    readonly pending: number;
    readonly dead: number;
    readonly delivered: number;
    readonly failed: number;
    readonly dropped: number;
    readonly disabled: boolean;
  }[];
  readonly lineage_lag: number | null;
  readonly workers: { readonly wanted: number; readonly serving: number; readonly replaced: number } | null;
  readonly wire_sessions: number;
}

export interface QuotaView {
  readonly bucket: string;
  readonly unit: 'requests' | 'rows' | 'bytes' | 'ms';
  readonly most: number;
  readonly window_seconds: number;
  readonly role: string | null;
  readonly each: boolean;
  readonly used: number | null;
  readonly ends_in_seconds: number | null;
}

export interface Limits {
  readonly per_second: readonly { readonly bucket: string; readonly most: number }[];
  readonly quotas: readonly QuotaView[];
  readonly subject: string | null;
}

export interface Freshness {
  readonly indexes: readonly { readonly facet: string; readonly indexed_at: string | null }[];
  readonly rollups:
    | readonly {
        readonly rollup: string;
        readonly entity: string;
        readonly state: string;
        readonly built_at: string | null;
        readonly rows: number | null;
        readonly max_age_seconds: number;
      }[]
    | null;
  readonly published: { readonly number: number; readonly id: string; readonly at: string } | null;
  readonly activation: number | null;
  readonly versions: { readonly manifest: string; readonly policy: string };
}

export interface ToldDraft {
  readonly id: string;
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  readonly state: 'draft' | 'validated' | 'published';
  readonly published_as: string | null;
}

export interface AccessChange {
  readonly object: string;
  readonly effect: 'gains' | 'loses' | 'differs';
  readonly before: { readonly access: string; readonly reads: string } | null;
  readonly after: { readonly access: string; readonly reads: string } | null;
}

export interface DraftDiff {
  readonly version: string;
  readonly changes: readonly {
    readonly change: string;
    readonly kind: string;
    readonly name: string;
    readonly what?: unknown;
  }[];
  readonly access: readonly {
    readonly role: string;
    readonly subjects: { readonly count: number; readonly first: readonly string[] };
    readonly changes: readonly AccessChange[];
  }[];
  readonly needs_restart: unknown;
}

export interface Judged {
  readonly ok: boolean;
  readonly diagnostics: readonly {
    readonly code: string;
    readonly path: string;
    readonly message: string;
    readonly hint: string | null;
  }[];
  readonly diff: DraftDiff | null;
}

export interface Publications {
  readonly version: string;
  readonly objects: readonly { readonly name: string; readonly state: string }[];
  readonly drafts: readonly ToldDraft[];
  readonly history: readonly {
    readonly id: string;
    readonly number: number;
    readonly at: string;
    readonly action: string;
    readonly author: { readonly subject: string };
  }[];
}
