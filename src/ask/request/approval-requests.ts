import { randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import type { Approval, ApprovalRule } from '../../../policy/index.js';
import { instant } from '../../base/instant.js';
import type { Caller } from './caller.js';

/** A grant that would apply to the caller if it were approved. */
export interface UnapprovedGrant extends ApprovalRule {
  /** Relation that the grant is for. */
  readonly on: string;
}

/** A request for approval. Times are ms since the epoch. */
export interface ApprovalRequest {
  /** A UUID. */
  readonly id: string;
  readonly at: number;
  /** Time after which the request can no longer be decided. */
  readonly expiresAt: number;
  readonly chain: readonly string[];
  readonly purpose: string | null;
  readonly task: string | null;
  readonly reason: string;
  /** The statement as written; null if the request is for an object. */
  readonly statement: string | null;
  readonly grants: readonly UnapprovedGrant[];
}

export interface ApprovalDecision {
  readonly by: string;
  readonly at: number;
  readonly approved: boolean;
  /** True if the approval is only for the task of the request. */
  readonly forTask: boolean;
  /** End of the approval in ms since the epoch; null if it was declined. */
  readonly endsAt: number | null;
}

export interface ApprovalEntry {
  readonly request: ApprovalRequest;
  readonly decision: ApprovalDecision | null;
  /** Who ended the approval early, and when; null if nobody did. */
  readonly revoked: { readonly by: string; readonly at: number } | null;
}

/** Limits on open requests. */
export interface OpenRequests {
  readonly perChain: number;
  readonly perTenant: number;
}

/**
 * The approval requests of a tenant, shared by all processes and gateways. Expired entries are left out. Methods throw
 * E5036 if the control database does not respond.
 */
export interface ApprovalRegistry {
  all(): Promise<readonly ApprovalEntry[]>;
  /** Adds a request. Returns null, or the limit that was reached if too many requests are open. */
  add(request: ApprovalRequest, limits: OpenRequests): Promise<number | null>;
  /** Stores the first decision about a request. Returns false if it has been decided already or does not exist. */
  decide(id: string, decision: ApprovalDecision): Promise<boolean>;
  /** Ends an approval early. Returns false if it had ended already. */
  revoke(id: string, end: { readonly by: string; readonly at: number }): Promise<boolean>;
}

export interface ApprovalRequestParts {
  readonly approvalRequests: ApprovalRegistry;
  /** URL of the place where requests are decided: a page of the console, or a REST route. */
  readonly approvalUrl: string;
}

const MAX_REASON_LENGTH = 500;
const MAX_STATEMENT_LENGTH = 10_000;
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u202A-\u202E\u2066-\u2069]/u;
const OPEN_MS = 86_400_000;
const OPEN_LIMITS: OpenRequests = { perChain: 5, perTenant: 500 };
const RETRY_SECONDS = 60;

/** An open request, as returned to its requester. */
export interface OpenApproval {
  readonly id: string;
  readonly url: string;
  readonly expires_at: string;
}

/**
 * Prepares a request for approval of `grants`, or returns an equal request that is still open.
 *
 * @throws QueryError E0511, E5036
 */
export async function approvalRequest(
  { approvalRequests }: Pick<ApprovalRequestParts, 'approvalRequests'>,
  { identity, purpose, task }: Caller,
  details: Pick<ApprovalRequest, 'grants' | 'reason' | 'statement'>,
): Promise<ApprovalRequest> {
  const { reason, statement } = details;
  if (reason.trim() === '' || reason.length > MAX_REASON_LENGTH || UNPRINTABLE.test(reason))
    throw queryError('malformedBody', {
      detail: `a reason for approval is 1 to ${MAX_REASON_LENGTH} characters on one line`,
    });
  if (statement !== null && statement.length > MAX_STATEMENT_LENGTH)
    throw queryError('tooLarge', {
      what: 'the length of a statement to approve',
      limit: MAX_STATEMENT_LENGTH,
    });
  const at = Date.now();
  const { chain } = identity;
  const fields = { chain, purpose, task, ...details };
  const isSame = ({
    request: { id: _id, at: _at, expiresAt: _ends, ...other },
    decision,
  }: ApprovalEntry): boolean =>
    decision === null && JSON.stringify(contentOf(other)) === JSON.stringify(contentOf(fields));
  const existing = (await approvalRequests.all()).find(isSame);
  return existing?.request ?? { id: randomUUID(), at, expiresAt: at + OPEN_MS, ...fields };
}

function contentOf(request: Omit<ApprovalRequest, 'id' | 'at' | 'expiresAt'>) {
  const { chain, purpose, task, reason, statement, grants } = request;
  return [chain, purpose, task, reason, statement, grants.map(({ grant }) => grant)];
}

/** Stores the request, unless it is stored already. @throws QueryError E4290, E5036 */
export async function openRequest(
  { approvalRequests, approvalUrl }: ApprovalRequestParts,
  request: ApprovalRequest,
): Promise<OpenApproval> {
  const limit = await approvalRequests.add(request, OPEN_LIMITS);
  if (limit !== null) throw queryError('approvalsFull', { limit, retryAfterSeconds: RETRY_SECONDS });
  return { id: request.id, url: approvalUrl, expires_at: instant(request.expiresAt) };
}

/** Returns the approval that an entry grants; null if it is undecided, declined or revoked. */
export function approvalOf({ request, decision, revoked }: ApprovalEntry): Approval | null {
  if (decision?.approved !== true || decision.endsAt === null || revoked !== null) return null;
  const { id, chain, purpose, task, grants } = request;
  return {
    id,
    chain,
    grants: grants.map(({ grant }) => grant),
    purpose,
    task: decision.forTask ? task : null,
    startsAt: decision.at,
    endsAt: decision.endsAt,
  };
}
