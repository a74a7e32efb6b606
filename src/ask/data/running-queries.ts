import { type GovernedPlan, queryError, relationsRead } from 'osl-compiler';
import {
  effectiveAccess,
  type FollowedApprovals,
  type Identity,
  type PolicySnapshot,
  type RevocationCheck,
} from '../../../policy/index.js';
import type { Caller } from '../request/caller.js';

/** Handle of a running query. */
export interface QueryRun {
  /** Aborts when the client cancels or the caller's rights change. */
  readonly signal: AbortSignal;
  end(): void;
}

interface RunningQuery {
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  readonly stop: AbortController;
}

/** The running queries and the rights they were authorized under. A query is aborted if those rights change. */
export class RunningQueries {
  readonly #running = new Set<RunningQuery>();
  readonly #revoked: RevocationCheck;
  readonly #approvals: FollowedApprovals;

  constructor(revoked: RevocationCheck, approvals: FollowedApprovals) {
    this.#revoked = revoked;
    this.#approvals = approvals;
    const recheck = (): void => {
      for (const running of this.#running) this.#endIfRevoked(running);
    };
    revoked.follow(recheck);
    approvals.follow(recheck);
  }

  begin(caller: Caller, plan: GovernedPlan, signal: AbortSignal | null, served: Caller['model']): QueryRun {
    const running = { caller, plan, stop: new AbortController() };
    const { stop } = running;
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    this.#running.add(running);
    // The model may have changed since the decision.
    abortIfRightsChanged(running, served);
    this.#endIfRevoked(running);
    const end = (): void => {
      this.#running.delete(running);
      signal?.removeEventListener('abort', onAbort);
    };
    return { signal: stop.signal, end };
  }

  /** Called when another model is served; aborts queries whose rights have changed. */
  onModelChange(model: Caller['model']): void {
    for (const running of this.#running) abortIfRightsChanged(running, model);
  }

  /** True if the token, the approvals and the rights of `caller` still permit an answer to `plan`. */
  mayAnswer(caller: Caller, plan: GovernedPlan, served: Caller['model']): boolean {
    return hasSameRights(caller, plan, served) && !this.#isRevoked(caller);
  }

  #endIfRevoked({ caller, stop }: RunningQuery): void {
    if (this.#isRevoked(caller)) stop.abort(queryError('rightsChanged', {}));
  }

  /** True if the caller's token was revoked, or an approval that opened a grant to it has ended. */
  #isRevoked({ identity, access, snapshot, manifest, circumstances, purpose, task }: Caller): boolean {
    if (this.#revoked.has(identity)) return true;
    if (circumstances.approved.ids.length === 0) return false;
    const currentCircumstances = {
      ...circumstances,
      approved: this.#approvals.inForce(identity, purpose, task),
    };
    const { metConditions } = effectiveAccess(
      identity,
      snapshot,
      manifest.catalog,
      currentCircumstances,
      access.readAttributes,
    );
    return access.metConditions.some((key) => !metConditions.includes(key));
  }
}

function abortIfRightsChanged({ caller, plan, stop }: RunningQuery, served: Caller['model']): void {
  if (!hasSameRights(caller, plan, served)) stop.abort(queryError('rightsChanged', {}));
}

function hasSameRights(caller: Caller, plan: GovernedPlan, served: Caller['model']): boolean {
  return caller.model === served || isUnaffected(caller, plan, served);
}

/**
 * True if the policy is unchanged for every subject in the caller's chain and for all roles that apply to the caller, and
 * the declarations of the plan's relations are unchanged.
 */
function isUnaffected(
  { identity, manifest, snapshot }: Caller,
  plan: GovernedPlan,
  current: Caller['model'],
): boolean {
  if (current.snapshot === null) return false;
  return samePolicy(identity, snapshot, current.snapshot) && sameRelations(plan, manifest, current.manifest);
}

function samePolicy(
  { chain, aclRoles, members }: Identity,
  before: PolicySnapshot,
  current: PolicySnapshot,
): boolean {
  if (before.version === current.version) return true;
  const [old, next] = [before.document, current.document];
  // For an exchanged token, deny rules apply of all roles within a subject's ceiling, claimed or not.
  const imposed =
    members === undefined ? [] : chain.flatMap((subject) => next.subjects[subject]?.ceiling ?? []);
  return (
    isSame(commonParts(old), commonParts(next)) &&
    chain.every((subject) => isSame(old.subjects[subject], next.subjects[subject])) &&
    chain.every((subject) => isSame(accountsOf(old, subject), accountsOf(next, subject))) &&
    [...aclRoles, ...imposed].every((role) => isSame(old.roles[role], next.roles[role]))
  );
}

/** Returns the parts of a policy that apply to all callers: masks, token exchange, ... */
function commonParts(document: SnapshotDocument): object {
  return { ...document, subjects: null, roles: null, service_accounts: null, limits: null, order: null };
}

function accountsOf({ service_accounts = {} }: SnapshotDocument, subject: string): object {
  return Object.entries(service_accounts).filter(([, account]) => account.subject === subject);
}

type SnapshotDocument = PolicySnapshot['document'];

function sameRelations(plan: GovernedPlan, before: Caller['manifest'], current: Caller['manifest']): boolean {
  if (before.catalog === current.catalog) return true;
  if (plan.runtime.length > 0) return before.catalog.version === current.catalog.version;
  return relationsRead(plan.query).every(({ name }) =>
    isSame(before.catalog.relations.get(name), current.catalog.relations.get(name)),
  );
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
