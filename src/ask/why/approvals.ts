import { randomUUID } from 'node:crypto';
import { QueryError, queryError } from 'osl-compiler';
import type { Approval, Identity, PolicySnapshot } from '../../../policy/index.js';
import { supposeApproved, type UnapprovedGrant, unapprovedOf } from '../data/approval-refusal.js';
import type { AnswerParts } from '../data/parts.js';
import type { CompilingParts } from '../data/planning.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import type { DecisionRecord } from '../request/ledger.js';
import { redactStatement } from '../request/redacted-statement.js';
import { respond } from '../request/respond.js';

/** A request for approval. Times are ms since the epoch. */
export interface ApprovalRequest {
  /** A UUID. */
  readonly id: string;
  readonly at: number;
  /** End of the time in which it can be decided. */
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
  /** End of the approval; null if it was declined. */
  readonly endsAt: number | null;
}

export interface ApprovalEntry {
  readonly request: ApprovalRequest;
  readonly decision: ApprovalDecision | null;
  /** Early end of an approval. */
  readonly revoked: { readonly by: string; readonly at: number } | null;
}

/** Limits on open requests. */
export interface OpenRequests {
  readonly perChain: number;
  readonly perTenant: number;
}

/**
 * The approval requests of a tenant, over all processes and gateways. Entries past their end are left out. Methods throw
 * E5036 if the control database does not respond.
 */
export interface ApprovalRegistry {
  all(): Promise<readonly ApprovalEntry[]>;
  /** Adds a request. Returns the limit if too many are open. */
  add(request: ApprovalRequest, most: OpenRequests): Promise<number | null>;
  /** Stores the first decision about a request; false if there is one already, or no such request. */
  decide(id: string, decision: ApprovalDecision): Promise<boolean>;
  /** Ends an approval; false if it has ended already. */
  revoke(id: string, end: { readonly by: string; readonly at: number }): Promise<boolean>;
}

export interface ApprovalParts extends AnswerParts {
  readonly approvalRequests: ApprovalRegistry;
  /** URL of the console's page of requests. */
  readonly approvalPage: string;
}

const OPEN_MS = 86_400_000;
const MOST_OPEN: OpenRequests = { perChain: 5, perTenant: 500 };
const RETRY_SECONDS = 60;
const MINUTE_MS = 60_000;

/** An open request, as returned to whoever made it. */
export interface OpenApproval {
  readonly id: string;
  readonly url: string;
  readonly expires_at: string;
}

/** The grants that a statement, or an object, needs an approval for. Empty also for a statement with an error. */
export async function grantsToApprove(
  parts: CompilingParts,
  caller: Caller,
  { relation, statement }: { readonly relation: string; readonly statement: string | null },
  record: Pick<DecisionRecord, 'mark'>,
): Promise<readonly UnapprovedGrant[]> {
  const supposed = supposeApproved(caller);
  if (supposed === null) return [];
  if (statement === null) return supposed.grants.filter(({ on }) => on === relation);
  const body = { kind: 'wire', text: statement } as const;
  try {
    return await unapprovedOf(parts, supposed, { body, parameterOids: [] }, record);
  } catch (error) {
    if (error instanceof QueryError) return [];
    throw error;
  }
}

/** Prepares a request for approval of `grants`, or returns the open request that is equal to it. */
export async function approvalRequest(
  { approvalRequests }: Pick<ApprovalParts, 'approvalRequests'>,
  { identity, purpose, task }: Caller,
  asked: Pick<ApprovalRequest, 'grants' | 'reason' | 'statement'>,
): Promise<ApprovalRequest> {
  const at = Date.now();
  const { chain } = identity;
  const made = { chain, purpose, task, ...asked };
  const same = ({ request: { id: _id, at: _at, expiresAt: _ends, ...other }, decision }: ApprovalEntry): boolean =>
    decision === null && JSON.stringify(ordered(other)) === JSON.stringify(ordered(made));
  const open = (await approvalRequests.all()).find(same);
  return open?.request ?? { id: randomUUID(), at, expiresAt: at + OPEN_MS, ...made };
}

function ordered(of: Omit<ApprovalRequest, 'id' | 'at' | 'expiresAt'>) {
  const { chain, purpose, task, reason, statement, grants } = of;
  return [chain, purpose, task, reason, statement, grants.map(({ grant }) => grant)];
}

/** Stores the request, unless it is stored already. @throws QueryError E4290, E5036 */
export async function openRequest(
  { approvalRequests, approvalPage }: Pick<ApprovalParts, 'approvalRequests' | 'approvalPage'>,
  request: ApprovalRequest,
): Promise<OpenApproval> {
  const limit = await approvalRequests.add(request, MOST_OPEN);
  if (limit !== null) throw queryError('approvalsFull', { limit, retryAfterSeconds: RETRY_SECONDS });
  return { id: request.id, url: approvalPage, expires_at: instant(request.expiresAt) };
}

/** A request for approval, as shown to approvers, to its requester and, without its texts, to administrators. */
interface ApprovalView {
  readonly id: string;
  readonly state: 'open' | 'approved' | 'declined' | 'revoked';
  readonly requested_at: string;
  readonly expires_at: string;
  readonly chain: readonly string[];
  readonly purpose: string | null;
  readonly task: string | null;
  /** Null for administrators who may not decide. */
  readonly reason: string | null;
  /** The statement without literals; null if the request is for an object. */
  readonly statement_shape: string | null;
  /** The statement as written; null for administrators who may not decide. */
  readonly statement: string | null;
  /** What the approval would add, as in the policy file. `changed`: the policy has no such grant any more. */
  readonly grants: readonly { readonly on: string; readonly grant: object | null; readonly changed: boolean }[];
  /** The longest approval, in minutes. */
  readonly minutes: number;
  readonly decided_by: string | null;
  readonly decided_at: string | null;
  readonly ends_at: string | null;
  readonly for_task: boolean;
  readonly revoked_by: string | null;
  /** True if the caller may decide it, or end the approval. */
  readonly may_decide: boolean;
}

/** Lists the requests that the caller may decide or has made, newest first; for administrators, all. */
export function listApprovals(
  parts: ApprovalParts,
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

/** The grant of the served policy with this hash, as written; null if it was changed or removed. */
function writtenGrant({ on, grant: hash }: UnapprovedGrant, snapshot: PolicySnapshot): object | null {
  for (const [name, role] of snapshot.roles) {
    const found = role.grants.get(on)?.find(({ conditions }) => conditions?.approval?.grant === hash);
    if (found !== undefined)
      return snapshot.document.roles[name]?.grants[Number(found.id.slice(found.id.lastIndexOf('.') + 1))] ?? null;
  }
  return null;
}

function minutesOf({ grants }: ApprovalRequest): number {
  return Math.min(...grants.map(({ minutes }) => minutes));
}

/**
 * True if the caller may decide the request.
 *
 * INVARIANT: nobody approves for themselves: an approver is one person with every role that the grants name, acts for
 * nobody, and is not in the chain of the request.
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
 * Decides a request, or ends an approval. The record is durable before the decision takes effect. Of several decisions,
 * the first one counts.
 *
 * @throws QueryError E2101, E4040, E4090, E5036, and the errors of `respond`
 */
export function decideApproval(
  parts: ApprovalParts,
  call: RequestCall,
  id: string,
  verdict: ApprovalVerdict,
): Promise<{ readonly id: string; readonly state: ApprovalView['state']; readonly ends_at: string | null }> {
  const ACTIONS = { approve: 'approve', decline: 'decline_approval', revoke: 'revoke_approval' } as const;
  return respond(parts, call, {
    action: ACTIONS[verdict.kind],
    asked: { kind: 'draft', text: id },
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
      record.touches({ form: null, objects: grants.map(({ on }) => `osl.entities.${on}`) });
      record.says(JSON.stringify({ approval: id, chain, ends, ...(decision.forTask && { task: request.task }) }));
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

/** @throws QueryError E4090 */
function decisionFor(verdict: ApprovalVerdict, entry: ApprovalEntry, { subject }: Identity): ApprovalDecision {
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

/** The approval that an entry gives; null if it gives none. */
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

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
