import { type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import { ALL_APPROVED, type ApprovalRule, effectiveAccess } from '../../../policy/index.js';
import type { Caller } from '../request/caller.js';
import type { DecisionRecord } from '../request/ledger.js';
import { type CompilingParts, planOf } from './planning.js';
import type { PlannedQuestion } from './question.js';

/** A grant of the caller that only lacks an approval. */
export interface UnapprovedGrant extends ApprovalRule {
  /** The relation. */
  readonly on: string;
}

/** The caller with every approval, and the grants that it lacks one for; null if it lacks none. */
interface SupposedCaller {
  readonly caller: Caller;
  readonly grants: readonly UnapprovedGrant[];
}

/** For finding out what an approval would change; never for an answer. */
export function supposeApproved(caller: Caller): SupposedCaller | null {
  const { identity, snapshot, manifest, circumstances, access: now } = caller;
  const supposed = { ...circumstances, approved: ALL_APPROVED };
  const access = effectiveAccess(identity, snapshot, manifest.catalog, supposed, now.read);
  const lacking = new Set(access.open.filter((key) => !now.open.includes(key)));
  if (lacking.size === 0) return null;
  const grants = [...access.dataRoles].flatMap((role) =>
    [...(snapshot.roles.get(role)?.grants ?? [])].flatMap(([on, own]) =>
      own.flatMap(({ conditions }): readonly UnapprovedGrant[] =>
        conditions?.approval == null || !lacking.has(conditions.key) ? [] : [{ on, ...conditions.approval }],
      ),
    ),
  );
  return { caller: Object.freeze({ ...caller, access }), grants };
}

/**
 * Plans a query like `planOf`. If it is refused and would not be with an approval, the error says so. That depends on
 * the policy and the query only, not on data.
 *
 * @throws QueryError E0535, and the errors of `planOf`
 */
export function planOrNeedApproval(
  parts: CompilingParts,
  caller: Caller,
  question: PlannedQuestion,
  record: Pick<DecisionRecord, 'mark'>,
): GovernedPlan | Promise<GovernedPlan> {
  const refuse = async (error: unknown): Promise<never> => {
    const supposed = error instanceof QueryError ? supposeApproved(caller) : null;
    if (supposed === null) throw error;
    const lacking = await unapprovedOf(parts, supposed, question, record).catch((reason: unknown) => {
      if (reason instanceof QueryError) throw error;
      throw reason;
    });
    if (lacking.length === 0) throw error;
    throw queryError('needsApproval', { relations: namesOf(lacking) });
  };
  try {
    const planned = planOf(parts, caller, question, record);
    return planned instanceof Promise ? planned.catch(refuse) : planned;
  } catch (error) {
    return refuse(error);
  }
}

/** The unapproved grants on relations that the query reads. @throws the errors of `planOf` */
export async function unapprovedOf(
  parts: CompilingParts,
  { caller, grants }: SupposedCaller,
  question: PlannedQuestion,
  record: Pick<DecisionRecord, 'mark'>,
): Promise<readonly UnapprovedGrant[]> {
  const { objects } = await planOf(parts, caller, question, record);
  const read = new Set(objects.flatMap((name) => (name.startsWith('osl.metrics.') ? [] : [name.split('.').at(-1)])));
  return grants.filter(({ on }) => read.has(on));
}

function namesOf(grants: readonly UnapprovedGrant[]): string {
  const names = [...new Set(grants.map(({ on }) => `\`${on}\``))];
  return names.sort().join(', ');
}
