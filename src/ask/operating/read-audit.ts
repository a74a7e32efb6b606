import type { AuditQuery, AuditRecord } from '../../../audit/index.js';
import type { Caller, RequestCall } from '../index.js';
import type { AuditAsker, RecordProof } from './insight.js';
import { type InsightParts, look } from './look.js';

/** A page of records. */
export interface RecordPage {
  readonly records: readonly AuditRecord[];
  /** What to ask for the next page by; null at the end. */
  readonly next: string | null;
}

/** Records of a page, and of a request. */
export const MOST_RECORDS = 200;
const AROUND_MS = 2 * 86_400_000;

/** The newest records that match. @throws QueryError E2101, E5037, and as `respond` */
export function searchRecords(
  parts: InsightParts,
  call: RequestCall,
  filter: AuditQuery,
  page: { readonly from: string | null; readonly most: number },
): Promise<RecordPage> {
  return look(parts, call, 'admin_audit_search', (caller) =>
    parts.insight.reading.search(askerOf(call, caller), filter, page),
  );
}

/**
 * All records of a request, in their order.
 *
 * @param near a time at which there was one, for a look at the records of two days around it; null: at all
 * Throws as `searchRecords`.
 */
export function requestRecords(
  parts: InsightParts,
  call: RequestCall,
  requestId: string,
  near: string | null,
): Promise<RecordPage> {
  return look(parts, call, 'admin_audit_request', async (caller) => {
    const around = near === null ? {} : { since: at(near, -AROUND_MS), until: at(near, AROUND_MS) };
    const page = { from: null, most: MOST_RECORDS };
    const found = await parts.insight.reading.search(askerOf(call, caller), { requestId, ...around }, page);
    return { records: found.records.toReversed(), next: found.next };
  });
}

/** Proofs of all records of a request that the newest checkpoint covers. Throws as `searchRecords`. */
export function requestProofs(
  parts: InsightParts,
  call: RequestCall,
  requestId: string,
): Promise<readonly RecordProof[]> {
  return look(parts, call, 'admin_audit_prove', (caller) =>
    parts.insight.reading.prove(askerOf(call, caller), requestId),
  );
}

export function askerOf(
  { requestId }: RequestCall,
  { identity: { tenant, subject, chain } }: Caller,
): AuditAsker {
  return { requestId, tenant, subject, chain };
}

function at(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}
