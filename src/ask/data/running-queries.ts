import { type GovernedPlan, queryError, relationsRead } from 'osl-compiler';
import type { Identity, PolicySnapshot, RevocationCheck } from '../../../policy/index.js';
import type { Caller } from '../request/caller.js';

/** A statement that runs. */
export interface QueryRun {
  /** Aborts when the client cancels, or once its caller's rights have changed. */
  readonly signal: AbortSignal;
  end(): void;
}

interface RunningQuery {
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  readonly stop: AbortController;
}

/** The statements that run, each with the rights that it was decided under: it goes on under the same ones only. */
export class RunningQueries {
  readonly #running = new Set<RunningQuery>();
  readonly #revoked: RevocationCheck;

  constructor(revoked: RevocationCheck) {
    this.#revoked = revoked;
    revoked.follow(() => {
      for (const running of this.#running) this.#endIfRevoked(running);
    });
  }

  begin(caller: Caller, plan: GovernedPlan, signal: AbortSignal | null, served: Caller['model']): QueryRun {
    const running = { caller, plan, stop: new AbortController() };
    const { stop } = running;
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    this.#running.add(running);
    // Between its decision and now something else may have come to serve.
    endUnlessKept(running, served);
    this.#endIfRevoked(running);
    const end = (): void => {
      this.#running.delete(running);
      signal?.removeEventListener('abort', onAbort);
    };
    return { signal: stop.signal, end };
  }

  /** Something else serves from now on: what runs under rights that are gone ends. */
  changed(model: Caller['model']): void {
    for (const running of this.#running) endUnlessKept(running, model);
  }

  #endIfRevoked({ caller, stop }: RunningQuery): void {
    if (this.#revoked.has(caller.identity)) stop.abort(queryError('rightsChanged', {}));
  }
}

function endUnlessKept({ caller, plan, stop }: RunningQuery, served: Caller['model']): void {
  if (caller.model === served) return;
  if (!keeps(caller, plan, served)) stop.abort(queryError('rightsChanged', {}));
}

/**
 * True if a statement may go on: the policy says the same as before about everybody in the caller's chain and about
 * each role that it claims, and the relations are declared as before, so that its rights have not changed.
 */
function keeps({ identity, manifest, snapshot }: Caller, plan: GovernedPlan, now: Caller['model']): boolean {
  if (now.snapshot === null) return false;
  return samePolicy(identity, snapshot, now.snapshot) && sameRelations(plan, manifest, now.manifest);
}

function samePolicy({ chain, aclRoles }: Identity, before: PolicySnapshot, now: PolicySnapshot): boolean {
  if (before.version === now.version) return true;
  const [old, next] = [before.document, now.document];
  return (
    same(aboutAll(old), aboutAll(next)) &&
    chain.every((subject) => same(old.subjects[subject], next.subjects[subject])) &&
    chain.every((subject) => same(accountsOf(old, subject), accountsOf(next, subject))) &&
    aclRoles.every((role) => same(old.roles[role], next.roles[role]))
  );
}

/** All of a policy that may be about anybody: masks, how tokens are exchanged, … */
function aboutAll(document: SnapshotDocument): object {
  return { ...document, subjects: null, roles: null, service_accounts: null, limits: null, order: null };
}

/** Logins whose sessions are the subject's. */
function accountsOf({ service_accounts = {} }: SnapshotDocument, subject: string): object {
  return Object.entries(service_accounts).filter(([, account]) => account.subject === subject);
}

type SnapshotDocument = PolicySnapshot['document'];

function sameRelations(plan: GovernedPlan, before: Caller['manifest'], now: Caller['manifest']): boolean {
  if (before.catalog === now.catalog) return true;
  if (plan.runtime.length > 0) return before.catalog.version === now.catalog.version;
  return relationsRead(plan.query).every(({ name }) =>
    same(before.catalog.relations.get(name), now.catalog.relations.get(name)),
  );
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
