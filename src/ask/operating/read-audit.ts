import type { AuditQuery, AuditRecord } from '../../../audit/index.js';
import {
  effectiveAccess,
  hypotheticalClaims,
  LIMIT_BUCKETS,
  type LimitBucket,
  ownersText,
  type QuotaCount,
  type QuotaRule,
  type QuotaUnit,
  type QuotaUser,
  quotaOf,
} from '../../../policy/index.js';
import type { ThreadJobState } from '../../base/threads/job.js';
import { type Caller, type RequestCall, type ServedVersions, versionsOf } from '../index.js';
import { quotaCounts, renewalTime } from '../request/limit.js';
import { type AccessOffer, offerOf } from '../why/request-access.js';
import type { AuditAsker, FreshnessView, JobName, RecordProof } from './insight.js';
import { type InsightParts, readServer } from './insight.js';

/** A recorded access request, and what could be granted now. Its reason was sent only to the policy owner's webhook. */
interface AccessRequestView {
  readonly request_id: string;
  readonly at: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  /** The requested object; null if no such object existed. */
  readonly object: string | null;
  /** Access that the current policy could offer to the requester with all possible roles; null without an object. */
  readonly offer: AccessOffer | null;
}

interface AccessRequests {
  readonly requests: readonly AccessRequestView[];
  readonly next: string | null;
}

/** Requests per page; kept small because computing an offer is expensive. */
const MOST_REQUESTS = 20;

/** Lists access requests, newest first. @throws QueryError E2101, E5037, and the errors of `respond` */
export function accessRequests(
  parts: InsightParts,
  call: RequestCall,
  from: string | null,
): Promise<AccessRequests> {
  return readServer(parts, call, 'admin_access_requests', async (caller) => {
    const filter = { action: 'request_access', kind: 'decision', decision: 'allow' } as const;
    const page = { from, most: MOST_REQUESTS };
    const { records, next } = await parts.insight.reading.search(askerOf(call, caller), filter, page);
    const requests: AccessRequestView[] = [];
    for (const record of records) if (!isForApproval(record)) requests.push(await viewOf(record, caller));
    return { requests, next };
  });
}

/** True for a request to be decided by approvers, which `/osl/approvals` lists instead. */
function isForApproval({ detail }: AuditRecord): boolean {
  return detail?.startsWith('{"approval":') === true;
}

async function viewOf(record: AuditRecord, caller: Caller): Promise<AccessRequestView> {
  const { request_id, ts: at, subject, chain } = record;
  // If a column was requested, the last name is that of the column, after that of its relation.
  const object = record.objects.at(-1) ?? null;
  const view = { request_id, at, subject, chain, object };
  if (object === null) return { ...view, offer: null };
  const { manifest, snapshot, circumstances } = caller;
  const identity = hypotheticalClaims({ chain, roles: null }, snapshot);
  const from = { ...circumstances, purpose: null, emergency: null };
  const access = effectiveAccess(identity, snapshot, manifest.catalog, from);
  return { ...view, offer: await offerOf({ access, manifest, snapshot }, object) };
}

/** A quota of the policy. */
interface QuotaView {
  /** Name of the quota in the policy, or its place there, such as `limits.subject[0]`. */
  readonly name: string;
  readonly bucket: LimitBucket;
  readonly unit: QuotaUnit;
  readonly most: number;
  readonly per: QuotaRule['per'];
  readonly window_seconds: number;
  /** The role that the quota applies to; null if it applies to all subjects. */
  readonly role: string | null;
  readonly each: QuotaRule['each'];
  /**
   * Whose use is shown, such as `all subjects`; null if it needs a subject or task that the request does not name, or a
   * role that the named chain cannot use.
   */
  readonly whose: string | null;
  readonly used: number | null;
  readonly ends_in_seconds: number | null;
  /** RFC 3339 time at which the count begins again; null if nothing is used. */
  readonly renews_at: string | null;
}

interface LimitsView {
  /** Maximum number of requests per second of each subject, by bucket. */
  readonly per_second: readonly { readonly bucket: LimitBucket; readonly most: number }[];
  readonly quotas: readonly QuotaView[];
  /** The subject whose quotas are shown; null if the request names none. */
  readonly subject: string | null;
}

/** The chain of subjects and the task whose limits are requested. */
export interface LimitsQuestion {
  /** The chain of subjects, root to leaf; empty if no subject is named. */
  readonly chain: readonly string[];
  readonly task: string | null;
}

/** Returns the limits of the current policy and their usage. @throws QueryError E2101, and the errors of `respond` */
export function limits(parts: InsightParts, call: RequestCall, asked: LimitsQuestion): Promise<LimitsView> {
  return readServer(parts, call, 'admin_show', async ({ snapshot, identity: { tenant } }) => {
    const { chain, task } = asked;
    const subject = chain.at(-1) ?? null;
    const user = { tenant, subject: subject ?? '', chain, task };
    // A subject without an entry is made by the token exchange: its ceiling is not known here.
    const mayUse = (role: string): boolean =>
      subject !== null && chain.every((name) => snapshot.subjects.get(name)?.ceiling.has(role) ?? true);
    const named = snapshot.quotas.filter(
      ({ each, per, role }) =>
        (each === null || (role === null ? subject !== null : mayUse(role))) &&
        (per !== 'task' || task !== null),
    );
    const counts = await quotaCounts(
      parts,
      named.map((rule) => quotaOf(rule, user)),
    );
    const counted = new Map(named.map((rule, i) => [rule, counts[i]]));
    return {
      per_second: LIMIT_BUCKETS.map((bucket) => ({ bucket, most: snapshot.limits[bucket] })),
      quotas: snapshot.quotas.map((rule) => quotaView(rule, user, counted.get(rule))),
      subject,
    };
  });
}

function quotaView(rule: QuotaRule, user: QuotaUser, count: QuotaCount | undefined): QuotaView {
  const { name, bucket, unit, limit: most, per, windowMs, role, each } = rule;
  return {
    name,
    bucket,
    unit,
    most,
    per,
    window_seconds: windowMs / 1_000,
    role,
    each,
    whose: count === undefined ? null : ownersText(rule, user),
    used: count?.used ?? null,
    ends_in_seconds: count === undefined ? null : Math.ceil(count.endsInMs / 1_000),
    renews_at: count === undefined || count.used === 0 ? null : renewalTime(count.endsInMs),
  };
}

/** Returns the freshness of indexes, rollups and publications. @throws QueryError E2101, and the errors of `respond` */
export function freshness(
  parts: InsightParts,
  call: RequestCall,
): Promise<FreshnessView & { readonly versions: ServedVersions }> {
  return readServer(parts, call, 'admin_show', async (caller) => ({
    ...(await parts.insight.freshness()),
    versions: versionsOf(caller),
  }));
}

const ACTIONS: Readonly<Record<JobName, string>> = {
  verify: 'admin_audit_verify',
  policy_tests: 'admin_policy_tests',
};

/** Returns the state of a job. @throws QueryError E2101, and the errors of `respond` */
export function lookAtJob(parts: InsightParts, call: RequestCall, job: JobName): Promise<ThreadJobState> {
  return readServer(parts, call, 'admin_show', () => parts.insight.jobs.look(job));
}

/** Starts a job unless it is already running. @throws the errors of `lookAtJob` */
export function beginJob(parts: InsightParts, call: RequestCall, job: JobName): Promise<ThreadJobState> {
  return readServer(parts, call, ACTIONS[job], ({ identity }) =>
    parts.insight.jobs.begin(job, identity.subject),
  );
}

export interface RecordPage {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

export const MOST_RECORDS = 200;
const AROUND_MS = 2 * 86_400_000;

/** Searches the audit log, newest records first. @throws QueryError E2101, E5037, and the errors of `respond` */
export function searchRecords(
  parts: InsightParts,
  call: RequestCall,
  filter: AuditQuery,
  page: { readonly from: string | null; readonly most: number },
): Promise<RecordPage> {
  return readServer(parts, call, 'admin_audit_search', (caller) =>
    parts.insight.reading.search(askerOf(call, caller), filter, page),
  );
}

/**
 * Returns the records of a request, oldest first. @throws the errors of `searchRecords`
 *
 * @param near RFC 3339 time, at most two days from the records; null searches the whole log
 */
export function requestRecords(
  parts: InsightParts,
  call: RequestCall,
  requestId: string,
  near: string | null,
): Promise<RecordPage> {
  return readServer(parts, call, 'admin_audit_request', async (caller) => {
    const around = near === null ? {} : { since: at(near, -AROUND_MS), until: at(near, AROUND_MS) };
    const page = { from: null, most: MOST_RECORDS };
    const found = await parts.insight.reading.search(askerOf(call, caller), { requestId, ...around }, page);
    return { records: found.records.toReversed(), next: found.next };
  });
}

/** Returns proofs for all records of a request that the newest checkpoint covers. Throws like `searchRecords`. */
export function requestProofs(
  parts: InsightParts,
  call: RequestCall,
  requestId: string,
): Promise<readonly RecordProof[]> {
  return readServer(parts, call, 'admin_audit_prove', (caller) =>
    parts.insight.reading.prove(askerOf(call, caller), requestId),
  );
}

function askerOf({ requestId }: RequestCall, { identity: { tenant, subject, chain } }: Caller): AuditAsker {
  return { requestId, tenant, subject, chain };
}

function at(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}
