import { type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import { ALL_APPROVED, effectiveAccess } from '../../../policy/index.js';
import {
  type ApprovalRequestParts,
  approvalRequest,
  type OpenApproval,
  openRequest,
  type UnapprovedGrant,
} from '../request/approval-requests.js';
import type { Caller } from '../request/caller.js';
import type { DecisionRecord } from '../request/ledger.js';
import { statementOf } from '../request/request-target.js';
import { type CompilingParts, planOf } from './planning.js';
import type { DataQuestion, PlannedQuestion } from './question.js';

/** The caller as if it had every approval, and its grants that lack an approval. */
interface FullyApprovedCaller {
  readonly caller: Caller;
  readonly grants: readonly UnapprovedGrant[];
}

/**
 * Returns the caller as if every approval were given, to find out what approvals would change; never used for an
 * answer. Null if no approval is missing.
 */
function withAllApprovals(caller: Caller): FullyApprovedCaller | null {
  const { identity, snapshot, manifest, circumstances, access: current } = caller;
  const approvedCircumstances = { ...circumstances, approved: ALL_APPROVED };
  const access = effectiveAccess(
    identity,
    snapshot,
    manifest.catalog,
    approvedCircumstances,
    current.readAttributes,
  );
  const unmetConditions = new Set(access.metConditions.filter((key) => !current.metConditions.includes(key)));
  if (unmetConditions.size === 0) return null;
  const grants = [...access.dataRoles].flatMap((role) =>
    [...(snapshot.roles.get(role)?.grants ?? [])].flatMap(([on, relationGrants]) =>
      relationGrants.flatMap(({ conditions }): readonly UnapprovedGrant[] =>
        conditions?.approval == null || !unmetConditions.has(conditions.key)
          ? []
          : [{ on, ...conditions.approval }],
      ),
    ),
  );
  return { caller: Object.freeze({ ...caller, access }), grants };
}

type RefusalRecord = Pick<DecisionRecord, 'mark' | 'setDetail'>;

/**
 * Plans a query like `planOf`. If the query is refused only for lack of an approval, the error says so, and the
 * approval is requested if the client states a reason. The error depends on the policy and the query only, not on data.
 *
 * @throws QueryError E0535, E4290, E5036, and the errors of `planOf`
 */
export function planOrNeedApproval(
  parts: CompilingParts & ApprovalRequestParts,
  caller: Caller,
  question: DataQuestion,
  record: RefusalRecord,
): GovernedPlan | Promise<GovernedPlan> {
  const refuse = async (error: unknown): Promise<never> => {
    const approved = error instanceof QueryError ? withAllApprovals(caller) : null;
    if (approved === null) throw error;
    const grants = await unapprovedOf(parts, approved, question, record).catch((reason: unknown) => {
      if (reason instanceof QueryError) throw error;
      throw reason;
    });
    if (grants.length === 0) throw error;
    const reason = question.origin?.approvalReason ?? null;
    const statement = statementOf(question.body);
    const requested =
      reason === null ? null : await openNewRequest(parts, caller, { grants, reason, statement }, record);
    throw queryError('needsApproval', { relations: namesOf(grants), requested });
  };
  try {
    const plan = planOf(parts, caller, question, record);
    return plan instanceof Promise ? plan.catch(refuse) : plan;
  } catch (error) {
    return refuse(error);
  }
}

async function openNewRequest(
  parts: ApprovalRequestParts,
  caller: Caller,
  details: Parameters<typeof approvalRequest>[2],
  record: RefusalRecord,
): Promise<OpenApproval> {
  const request = await approvalRequest(parts, caller, details);
  const { id: approval, reason, purpose, task } = request;
  record.setDetail(JSON.stringify({ approval, reason, purpose, task }));
  return openRequest(parts, request);
}

/** Returns the unapproved grants on relations that the query reads. @throws the errors of `planOf` */
async function unapprovedOf(
  parts: CompilingParts,
  { caller, grants }: FullyApprovedCaller,
  question: PlannedQuestion,
  record: Pick<DecisionRecord, 'mark'>,
): Promise<readonly UnapprovedGrant[]> {
  const { objects } = await planOf(parts, caller, question, record);
  const relations = new Set(
    objects.flatMap((name) => (name.startsWith('osl.metrics.') ? [] : [name.split('.').at(-1)])),
  );
  return grants.filter(({ on }) => relations.has(on));
}

function namesOf(grants: readonly UnapprovedGrant[]): string {
  const names = [...new Set(grants.map(({ on }) => `\`${on}\``))];
  return names.sort().join(', ');
}

/** Returns unapproved grants on `relation`, or on the relations in `statement`; empty if the statement has an error. */
export async function grantsToApprove(
  parts: CompilingParts,
  caller: Caller,
  { relation, statement }: { readonly relation: string; readonly statement: string | null },
  record: Pick<DecisionRecord, 'mark'>,
): Promise<readonly UnapprovedGrant[]> {
  const approved = withAllApprovals(caller);
  if (approved === null) return [];
  if (statement === null) return approved.grants.filter(({ on }) => on === relation);
  const body = { kind: 'wire', text: statement } as const;
  try {
    return await unapprovedOf(parts, approved, { body, parameterOids: [] }, record);
  } catch (error) {
    if (error instanceof QueryError) return [];
    throw error;
  }
}
