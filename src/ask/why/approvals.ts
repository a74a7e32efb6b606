import { type QueryError, queryError } from 'osl-compiler';
import { grantIndex, type Identity, type PolicySnapshot } from '../../../policy/index.js';
import { instant } from '../../base/instant.js';
import type { AnswerParts } from '../data/parts.js';
import type {
  ApprovalDecision,
  ApprovalEntry,
  ApprovalRequest,
  UnapprovedGrant,
} from '../request/approval-requests.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import { redactStatement } from '../request/redacted-statement.js';
import { respond } from '../request/respond.js';

const MINUTE_MS = 60_000;

/** A request for approval, as shown to approvers, to its requester and, without its texts, to administrators. */
interface ApprovalView {
  readonly id: string;
  readonly state: 'open' | 'approved' | 'declined' | 'revoked';
  readonly requested_at: string;
  readonly expires_at: string;
  readonly chain: readonly string[];
  readonly purpose: string | null;
  readonly task: string | null;
  /** Reason for the request; null for administrators who may not decide and did not make the request. */
  readonly reason: string | null;
  /** The statement without literals; null if the request is for an object. */
  readonly statement_shape: string | null;
  /** The statement as written; null for administrators who may not decide and did not make the request. */
  readonly statement: string | null;
  /**
   * Grants that the approval would add. `grant` is as in the policy file; null unless the caller may decide. `changed`
   * is true if the policy no longer contains the grant.
   */
  readonly grants: readonly {
    readonly on: string;
    readonly grant: object | null;
    readonly changed: boolean;
  }[];
  /** Maximum duration of the approval, in minutes. */
  readonly minutes: number;
  readonly decided_by: string | null;
  readonly decided_at: string | null;
  readonly ends_at: string | null;
  readonly for_task: boolean;
  readonly revoked_by: string | null;
  /** True if the caller may decide the request, or end the approval. */
  readonly may_decide: boolean;
}

/** Lists the requests that the caller may decide or has made, newest first. Administrators get all requests. */
export function listApprovals(
  parts: AnswerParts,
  call: RequestCall,
): Promise<{ readonly approvals: readonly ApprovalView[] }> {
  return respond(parts, call, {
    action: 'approvals',
    bucket: 'authoring',
    readsNoRows: true,
    decide: () => null,
    answer: async (_: null, caller: Caller) => {
      const views = (await parts.approvalRequests.all()).flatMap((entry) => viewFor(caller, entry) ?? []);
      return { approvals: views.sort((a, b) => (a.requested_at < b.requested_at ? 1 : -1)) };
    },
  });
}

function viewFor(caller: Caller, entry: ApprovalEntry): ApprovalView | null {
  const { request, decision, revoked } = entry;
  const mayDecide = isApprover(caller, request);
  const isOwn = JSON.stringify(request.chain) === JSON.stringify(caller.identity.chain);
  if (!mayDecide && !isOwn && caller.access.adminRoles.size === 0) return null;
  const { statement } = request;
  const isWhole = mayDecide || isOwn;
  return {
    id: request.id,
    state: stateOf(entry),
    requested_at: instant(request.at),
    expires_at: instant(request.expiresAt),
    chain: request.chain,
    purpose: request.purpose,
    task: request.task,
    reason: isWhole ? request.reason : null,
    statement_shape: statement === null ? null : redactStatement(statement, caller.manifest.catalog).shape,
    statement: isWhole ? statement : null,
    grants: request.grants.map((grant) => {
      const written = writtenGrant(grant, caller.snapshot);
      return { on: grant.on, grant: mayDecide ? written : null, changed: written === null };
    }),
    minutes: minutesOf(request),
    decided_by: decision?.by ?? null,
    decided_at: decision === null ? null : instant(decision.at),
    ends_at: decision?.endsAt == null ? null : instant(revoked?.at ?? decision.endsAt),
    for_task: decision?.forTask ?? false,
    revoked_by: revoked?.by ?? null,
    may_decide: mayDecide,
  };
}

function stateOf({ decision, revoked }: ApprovalEntry): ApprovalView['state'] {
  if (decision === null) return 'open';
  if (!decision.approved) return 'declined';
  return revoked === null ? 'approved' : 'revoked';
}

/** Returns the grant of the served policy with this hash, as written; null if it was changed or removed. */
function writtenGrant({ on, grant: hash }: UnapprovedGrant, snapshot: PolicySnapshot): object | null {
  for (const [name, role] of snapshot.roles) {
    const found = role.grants.get(on)?.find(({ conditions }) => conditions?.approval?.grant === hash);
    if (found !== undefined) return snapshot.document.roles[name]?.grants[grantIndex(found)] ?? null;
  }
  return null;
}

function minutesOf({ grants }: ApprovalRequest): number {
  return Math.min(...grants.map(({ minutes }) => minutes));
}

/**
 * True if the caller may decide the request.
 *
 * INVARIANT: nobody approves their own request: an approver has every approver role that the grants name, does not act
 * on behalf of others, and is not in the chain of the request.
 */
function isApprover({ identity, access }: Caller, { chain, grants }: ApprovalRequest): boolean {
  const { dataRoles, adminRoles } = access;
  if (identity.chain.length !== 1 || chain.includes(identity.subject)) return false;
  return grants.every(({ by }) => dataRoles.has(by) || adminRoles.has(by));
}

export type ApprovalVerdict =
  | { readonly kind: 'approve'; readonly minutes: number | null; readonly forTask: boolean }
  | { readonly kind: 'decline' }
  | { readonly kind: 'revoke' };

/**
 * Decides a request, or ends an approval. The record is durable before the decision takes effect. If several approvers
 * decide the same request, the first decision counts.
 *
 * @throws QueryError E2101, E4040, E4090, E5036, and the errors of `respond`
 */
export function decideApproval(
  parts: AnswerParts,
  call: RequestCall,
  id: string,
  verdict: ApprovalVerdict,
): Promise<{ readonly id: string; readonly state: ApprovalView['state']; readonly ends_at: string | null }> {
  const ACTIONS = { approve: 'approve', decline: 'decline_approval', revoke: 'revoke_approval' } as const;
  return respond(parts, call, {
    action: ACTIONS[verdict.kind],
    target: { kind: 'draft', text: id },
    bucket: 'authoring',
    readsNoRows: true,
    decide: async (caller: Caller, record) => {
      const entry = (await parts.approvalRequests.all()).find(({ request }) => request.id === id);
      if (entry === undefined) throw queryError('noApproval', {});
      const { request } = entry;
      if (!isApprover(caller, request)) throw queryError('notApprover', {});
      const decision = decisionFor(verdict, entry, caller.identity);
      const { chain, grants } = request;
      const isChanged = grants.some((grant) => writtenGrant(grant, caller.snapshot) === null);
      if (verdict.kind === 'approve' && isChanged)
        throw queryError('wrongState', {
          detail: 'the policy has changed since this was requested',
          hint: 'decline it; the requester can request it again',
        });
      const ends = decision.endsAt === null ? null : instant(decision.endsAt);
      record.setObjects({ form: null, objects: grants.map(({ on }) => `osl.entities.${on}`) });
      record.setDetail(
        JSON.stringify({ approval: id, chain, ends, ...(decision.forTask && { task: request.task }) }),
      );
      return decision;
    },
    answer: async (decision) => {
      const { by, at, approved, endsAt } = decision;
      const isFirst =
        verdict.kind === 'revoke'
          ? await parts.approvalRequests.revoke(id, { by, at })
          : await parts.approvalRequests.decide(id, decision);
      if (!isFirst) throw closed();
      const state = verdict.kind === 'revoke' ? 'revoked' : approved ? 'approved' : 'declined';
      return { id, state, ends_at: endsAt === null ? null : instant(endsAt) };
    },
  });
}

/** Returns the decision to store for a verdict. @throws QueryError E4090 if the request is not in the required state */
function decisionFor(
  verdict: ApprovalVerdict,
  entry: ApprovalEntry,
  { subject }: Identity,
): ApprovalDecision {
  const at = Date.now();
  const { request } = entry;
  const state = stateOf(entry);
  if (state !== (verdict.kind === 'revoke' ? 'approved' : 'open')) throw closed();
  const plain = { by: subject, at, approved: false, forTask: false, endsAt: null };
  if (verdict.kind === 'decline') return plain;
  if (verdict.kind === 'revoke') return { ...plain, endsAt: at };
  const { minutes, forTask } = verdict;
  if (forTask && request.task === null)
    throw queryError('wrongState', {
      detail: 'the request names no task, so it cannot be approved for one',
      hint: 'approve it for a time',
    });
  const most = minutesOf(request);
  return { ...plain, approved: true, forTask, endsAt: at + Math.min(minutes ?? most, most) * MINUTE_MS };
}

function closed(): QueryError {
  return queryError('wrongState', {
    detail: 'this approval request was decided, or has ended',
    hint: null,
  });
}
