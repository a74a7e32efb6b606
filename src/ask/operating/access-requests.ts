import type { AuditRecord } from '../../../audit/index.js';
import { effectiveAccess, supposedIdentity } from '../../../policy/index.js';
import type { Caller, RequestCall } from '../index.js';
import { type AccessOffer, offerOf } from '../why/request-access.js';
import { type InsightParts, look } from './look.js';
import { askerOf } from './read-audit.js';

/** A request for access, as the log has it, and what could be granted now. What it was for, the owner's receiver has. */
interface AccessRequestView {
  readonly request_id: string;
  readonly at: string;
  readonly subject: string | null;
  readonly chain: readonly string[];
  /** Null where there is, or was, nothing of the name that was asked for. */
  readonly object: string | null;
  /** Under the policy that serves now, with all roles that the asker can have; null where there is no object. */
  readonly offer: AccessOffer | null;
}

export interface AccessRequests {
  readonly requests: readonly AccessRequestView[];
  readonly next: string | null;
}

/** Requests that are listed at a time: of each is worked out what could be granted. */
const MOST_REQUESTS = 20;

/** Who asked for access to what, the newest first. @throws QueryError E2101, E5037, and as `respond` */
export function accessRequests(
  parts: InsightParts,
  call: RequestCall,
  from: string | null,
): Promise<AccessRequests> {
  return look(parts, call, 'admin_access_requests', async (caller) => {
    const filter = { action: 'request_access', kind: 'decision', decision: 'allow' } as const;
    const page = { from, most: MOST_REQUESTS };
    const { records, next } = await parts.insight.reading.search(askerOf(call, caller), filter, page);
    const requests: AccessRequestView[] = [];
    for (const record of records) requests.push(await viewOf(record, caller));
    return { requests, next };
  });
}

async function viewOf(record: AuditRecord, caller: Caller): Promise<AccessRequestView> {
  const { request_id, ts: at, subject, chain } = record;
  // The column stands after its relation, where one was asked for.
  const object = record.objects.at(-1) ?? null;
  const view = { request_id, at, subject, chain, object };
  if (object === null) return { ...view, offer: null };
  const { manifest, snapshot, circumstances } = caller;
  const identity = supposedIdentity({ chain, roles: null }, snapshot);
  const from = { ...circumstances, purpose: null, emergency: null };
  const access = effectiveAccess(identity, snapshot, manifest.catalog, from);
  return { ...view, offer: await offerOf({ access, manifest, snapshot }, object) };
}
