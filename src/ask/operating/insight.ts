import type { AuditQuery, AuditRecord } from '../../../audit/index.js';
import type { JobState } from '../../base/threads/job.js';

/** Long work that who runs the server begins: one of each kind at a time, in all processes together. */
export const JOBS = ['verify', 'policy_tests'] as const;
export type JobName = (typeof JOBS)[number];

/** Runs and reports the jobs. */
export interface Jobs {
  look(job: JobName): Promise<JobState>;
  /** Starts it unless it is running; returns its state. @param by subject that starts it */
  begin(job: JobName, by: string): Promise<JobState>;
}

/** The caller that reads the log. */
export interface AuditAsker {
  readonly requestId: string;
  readonly tenant: string;
  readonly subject: string;
  readonly chain: readonly string[];
}

/** The audit log of this server, for those who may read it. Each access is recorded first. */
interface AuditReading {
  /** Newest first; `next` is a cursor if there may be more, otherwise null. @throws QueryError E5031, E5037 */
  search(
    asker: AuditAsker,
    query: AuditQuery,
    page: { readonly from: string | null; readonly most: number },
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly next: string | null }>;
  /** Proofs of all records of a request that a checkpoint covers. Throws as `search`. */
  prove(asker: AuditAsker, requestId: string): Promise<readonly RecordProof[]>;
}

/** One record as written by `osl audit prove`, and the verifier key stored beside the log. */
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
    /** Name of the series, if this is a histogram. */
    readonly metricName?: string;
  }[];
}

/** State of a rollup. */
interface RollupView {
  readonly rollup: string;
  readonly entity: string;
  readonly state: 'ready' | 'not built' | 'changed' | 'old';
  readonly built_at: string | null;
  readonly rows: number | null;
  readonly max_age_seconds: number;
}

/** Age of the indexes, rollups and publications that are served. */
export interface FreshnessView {
  /** Time at which the texts of each facet were last read; null if unknown. */
  readonly indexes: readonly { readonly facet: string; readonly indexed_at: string | null }[];
  /** Null if a database does not answer. */
  readonly rollups: readonly RollupView[] | null;
  /** The version that is published by API; null if there is none. */
  readonly published: { readonly number: number; readonly id: string; readonly at: string } | null;
  /** Number of the policy activation in the control database; null if each gateway has its own policy. */
  readonly activation: number | null;
}

/** Information about the server beyond `ServerOperations`, for its operators. */
export interface Insight {
  readonly reading: AuditReading;
  readonly jobs: Jobs;
  /** Metrics as served at `/metrics`. */
  metrics(): Promise<readonly MetricFamily[]>;
  freshness(): Promise<FreshnessView>;
}
