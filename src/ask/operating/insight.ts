import type { AuditQuery, AuditRecord } from '../../../audit/index.js';
import type { ThreadJobState } from '../../base/threads/job.js';
import { type Caller, type Decision, type RequestCall, type RequestParts, respond } from '../index.js';
import { adminsOnly } from '../request/refusals.js';

/** Long-running operator jobs; at most one of each kind runs at a time across all processes. */
export const JOBS = ['verify', 'policy_tests'] as const;
export type JobName = (typeof JOBS)[number];

export interface Jobs {
  look(job: JobName): Promise<ThreadJobState>;
  /** Starts a job unless it is already running. @param by the subject that starts it */
  begin(job: JobName, by: string): Promise<ThreadJobState>;
}

export interface AuditAsker {
  readonly requestId: string;
  readonly tenant: string;
  readonly subject: string;
  readonly chain: readonly string[];
}

/** Reads the server's audit log. Each access is recorded before anything is read. */
interface AuditReading {
  /**
   * Returns matching records, newest first; `next` is a cursor if there may be more. @throws QueryError E5031, E5037
   */
  search(
    asker: AuditAsker,
    query: AuditQuery,
    page: { readonly from: string | null; readonly most: number },
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly next: string | null }>;
  /** Returns proofs for all records of a request that a checkpoint covers. @throws the errors of `search` */
  prove(asker: AuditAsker, requestId: string): Promise<readonly RecordProof[]>;
}

/** A proof as written by `osl audit prove`, and the log's verifier key. */
export interface RecordProof {
  readonly seq: number;
  readonly text: string;
  readonly verifier_key: string;
}

/** A metric, combined over all processes. */
export interface MetricFamily {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    /** The name of a series within a histogram. */
    readonly metricName?: string;
  }[];
}

interface RollupView {
  readonly rollup: string;
  readonly entity: string;
  readonly state: 'ready' | 'not built' | 'changed' | 'old';
  readonly built_at: string | null;
  readonly rows: number | null;
  readonly max_age_seconds: number;
}

/** Freshness of the indexes, rollups and publications. */
export interface FreshnessView {
  /** Time at which the texts of each facet were last read; null if unknown. */
  readonly indexes: readonly { readonly facet: string; readonly indexed_at: string | null }[];
  /** The state of the rollups; null if a database does not answer. */
  readonly rollups: readonly RollupView[] | null;
  readonly published: { readonly number: number; readonly id: string; readonly at: string } | null;
  /** Activation number in the control database; null if the gateway uses a local policy. */
  readonly activation: number | null;
}

/** Information for operators, in addition to that of `ServerOperations`. */
export interface Insight {
  readonly reading: AuditReading;
  readonly jobs: Jobs;
  metrics(): Promise<readonly MetricFamily[]>;
  freshness(): Promise<FreshnessView>;
}

/** Dependencies of read-only operator requests. */
export interface InsightParts extends RequestParts {
  readonly insight: Insight;
}

/** Common to all operator requests: the rate-limit bucket of authors, and that the whole chain needs an admin role. */
export const OPERATING = {
  bucket: 'authoring',
  requireAllowed: adminsOnly('operatorsOnly'),
} as const satisfies Partial<Decision<unknown>>;

/** Handles a read-only operator request. @throws QueryError E2101, and the errors of `respond` */
export function readServer<T>(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  answer: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  return respond<null, T>(parts, call, {
    action,
    ...OPERATING,
    decide: () => null,
    answer: (_, caller) => answer(caller),
  });
}
