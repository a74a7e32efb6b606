import type { AuditQuery, AuditRecord } from '../../../audit/index.js';
import type { JobState } from '../../base/threads/job.js';

/** Long work that who runs the server begins: one of each kind at a time, in all processes together. */
export const JOBS = ['verify', 'policy_tests'] as const;
export type JobName = (typeof JOBS)[number];

/** What does it. */
export interface Jobs {
  look(job: JobName): Promise<JobState>;
  /** Begins it, unless it runs already; gives how it stands then. @param by who begins it */
  begin(job: JobName, by: string): Promise<JobState>;
}

/** Who reads the log. */
export interface AuditAsker {
  readonly requestId: string;
  readonly tenant: string;
  readonly subject: string;
  readonly chain: readonly string[];
}

/** The audit log of this server, as who may read it reads it. Each reading is on record before. */
interface AuditReading {
  /** The newest first; `next` where there may be more. @throws QueryError E5031, E5037 */
  search(
    asker: AuditAsker,
    query: AuditQuery,
    page: { readonly from: string | null; readonly most: number },
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly next: string | null }>;
  /** Proofs of all records of a request that a checkpoint covers. Throws as `search`. */
  prove(asker: AuditAsker, requestId: string): Promise<readonly RecordProof[]>;
}

/** What `osl audit prove` writes of one record, and the key that lies beside the log. */
export interface RecordProof {
  readonly seq: number;
  readonly text: string;
  readonly verifier_key: string;
}

/** A metric of all processes of the server together. */
export interface MetricFamily {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    /** Of a histogram, which of its series. */
    readonly metricName?: string;
  }[];
}

/** How a rollup stands. */
interface RollupView {
  readonly rollup: string;
  readonly entity: string;
  readonly state: 'ready' | 'not built' | 'changed' | 'old';
  readonly built_at: string | null;
  readonly rows: number | null;
  readonly max_age_seconds: number;
}

/** How old what serves is. */
export interface FreshnessView {
  /** When the texts of each facet were last read; null where that is not known. */
  readonly indexes: readonly { readonly facet: string; readonly indexed_at: string | null }[];
  /** Null where a database does not say. */
  readonly rollups: readonly RollupView[] | null;
  /** The version that is published by API; null where there is none. */
  readonly published: { readonly number: number; readonly id: string; readonly at: string } | null;
  /** Of the policy in the control database; null where each gateway has its own. */
  readonly activation: number | null;
}

/** What a server knows of itself beyond `Operated`, for who runs it. */
export interface Insight {
  readonly reading: AuditReading;
  readonly jobs: Jobs;
  /** What `/metrics` has. */
  metrics(): Promise<readonly MetricFamily[]>;
  freshness(): Promise<FreshnessView>;
}
