import type { GovernedPlan } from 'osl-compiler';
import type { ReceiptDigests } from '../../../audit/index.js';
import type { LimitBucket } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import { type Caller, isCurrent } from './caller.js';
import { callerAs, completeCaller, identify } from './identify.js';
import type { DecisionRecord } from './ledger.js';
import { limit, type Payment } from './limit.js';
import type { RequestParts } from './parts.js';
import { ForeignFault, type PublicError, publicError } from './public-error.js';
import type { AnsweringStandby, Permit, RequestEnd } from './recorder.js';
import { begin, type OpenRequest, refuse } from './refusals.js';
import type { RequestTarget } from './request-target.js';

/** The first half of a request: everything up to the decision. `D` is the type of its result. */
export interface Decision<D> {
  readonly action: string;
  /** The requested query or object. Logged as a fingerprint; a refusal also logs the objects named in it. */
  readonly target?: RequestTarget;
  readonly bucket: LimitBucket | null;
  /** Charge of an earlier request that also covers this one; see `Payment`. */
  readonly payment?: Payment | undefined;
  /** Throws if the caller may not make such requests. */
  readonly requireAllowed?: (caller: Caller) => void;
  /** True if the request needs no row filters; the attributes that they read from entities are then not read. */
  readonly readsNoRows?: true;
  /** Runs `work` when it is this request's turn. Access is evaluated again then, since it may have changed. */
  readonly inTurn?: <T>(work: () => Promise<T>) => Promise<T>;
  decide(caller: Caller, record: DecisionRecord): D | Promise<D>;
}

/** Issues permits for similar requests. */
export interface Permits {
  permit(plan: GovernedPlan): Permit;
}

/** Second half of a request: produces the answer and the facts for its outcome record. */
export interface AnswerSteps<D, A> {
  /** Called once the decision is recorded, or earlier if `mayStartEarly`; sends nothing before `recorded` resolves. */
  answer(decided: D, caller: Caller, recorded: Promise<void>, permits: Permits): A | Promise<A>;
  readonly readPlan?: (decided: D) => GovernedPlan | null;
  readonly mayStartEarly?: boolean;
  readonly countRows?: (answer: A) => { readonly rows: number; readonly truncated: boolean };
  /** The number of rows sent so far, for a request that fails. */
  readonly rowsSent?: () => number;
  /** Details for the outcome record, as JSON; called even if the request fails. */
  readonly detail?: () => string | null;
  /** The standby that answered, for the outcome record; null for the primary. Called even if the request fails. */
  readonly standby?: () => AnsweringStandby | null;
  /** The receipt that the caller requested; absent or null if none was requested. */
  readonly receipt?: RequestedReceipt<A> | null;
  /** Abort signal of the request; once it is aborted, a failure is recorded as a cancellation. */
  readonly signal?: AbortSignal | null;
}

/** A receipt that the caller requested: computes the digests for the record and receives the record's proof. */
export interface RequestedReceipt<A> {
  digests(answer: A): ReceiptDigests;
  /** @param proof C2SP tlog-proof, once the outcome is durable; rejects with a public error */
  issue(proof: Promise<string>): void;
}

/**
 * Handles one request of any surface, in a fixed order: authenticate → evaluate access → rate limit → read attributes
 * from entities → plan → record the decision → answer → record the outcome. Failures before the answer are recorded as
 * refusals. If the decision cannot be recorded, nothing is sent (E5030).
 *
 * @throws QueryError, ForeignFault: safe to show to the caller. Other errors are bugs: they are logged and become
 * E5000.
 */
export async function respond<D, A>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D> & AnswerSteps<D, A>,
): Promise<A> {
  const { inTurn } = request;
  if (inTurn === undefined) return (await authorize(parts, call, request)).answer(request);
  const openRequest = begin(parts, call, request.action, request.target);
  const { identity } = await recordRefusalOnError(openRequest, () => admit(openRequest, request));
  return inTurn(async () => {
    const admitAgain = async (): Promise<Caller> => {
      const caller = callerAs(parts, identity, openRequest.ledger, call);
      return checkAllowed(request, await withAttributes(parts, caller, request));
    };
    return (await decideRequest(openRequest, request, admitAgain)).answer(request);
  });
}

/** Runs the first half of a request without recording the decision yet. @throws the errors of `respond` */
export function authorize<D>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D>,
): Promise<AuthorizedRequest<D>> {
  const openRequest = begin(parts, call, request.action, request.target);
  return decideRequest(openRequest, request, () => admit(openRequest, request));
}

/** An authorized request whose decision is not recorded yet. */
export class AuthorizedRequest<D> {
  readonly caller: Caller;
  readonly decided: D;
  readonly #request: OpenRequest;

  constructor(request: OpenRequest, caller: Caller, decided: D) {
    this.#request = request;
    this.caller = caller;
    this.decided = decided;
  }

  async answer<A>(steps: AnswerSteps<D, A>): Promise<A> {
    const { answer, mayStartEarly, readPlan, countRows, rowsSent, signal, receipt } = steps;
    const { ledger } = this.#request;
    const plan = readPlan?.(this.decided) ?? null;
    if (plan !== null) ledger.registerPlan(plan); // directly before the decision, so that both are written together
    const recorded = ledger.allow();
    try {
      if (mayStartEarly === true)
        recorded.catch(() => undefined); // awaited below in any case
      else await recorded;
      const result = await answer(this.decided, this.caller, recorded, this);
      await recorded;
      const rowCount = countRows?.(result);
      const outcome = rowCount?.truncated === true ? 'truncated' : 'ok';
      const end = { outcome, rows: rowCount?.rows ?? 0, error: null, ...usageOf(steps) } as const;
      if (receipt == null) ledger.outcome(end);
      else receipt.issue(this.#prove(end, receipt.digests(result)));
      return result;
    } catch (error) {
      const reported = toPublicError(this.#request, await causeOf(recorded, error));
      const outcome = signal?.aborted === true ? 'cancelled' : 'error';
      ledger.outcome({ outcome, rows: rowsSent?.() ?? 0, error: reported, ...usageOf(steps) });
      throw reported;
    }
  }

  async #prove(end: RequestEnd, digests: ReceiptDigests): Promise<string> {
    try {
      return await this.#request.ledger.provenOutcome(end, digests);
    } catch (error) {
      throw toPublicError(this.#request, error);
    }
  }

  permit(plan: GovernedPlan): Permit {
    return this.#request.ledger.permit(this.caller, plan);
  }

  /** Records the decision and outcome of a request that is not continued. @throws QueryError E5030 */
  finish(): Promise<void> {
    return this.answer({ answer: () => undefined });
  }

  /** True if `call` continues this request: the caller, rights and model are the same. */
  isContinuedBy({ requestId, credentials, origin }: RequestCall): boolean {
    const { parts, call } = this.#request;
    return (
      requestId === call.requestId &&
      credentials.kind === 'session' &&
      credentials.identity === this.caller.identity &&
      origin === call.origin &&
      isCurrent(this.caller) &&
      parts.model() === this.caller.model
    );
  }

  continueAs(action: string): this {
    this.#request.ledger.resume(action);
    return this;
  }

  /** Stops the clock until the request is continued or finished. */
  suspend(): this {
    this.#request.ledger.pauseClock();
    return this;
  }
}

/** Returns the details and the standby of a request, for its outcome record. */
function usageOf<D, A>({ detail, standby }: AnswerSteps<D, A>): Pick<RequestEnd, 'detail' | 'standby'> {
  return { detail: detail?.() ?? null, standby: standby?.() ?? null };
}

/** Authenticates the caller, applies limits, reads attributes, and calls `requireAllowed`. @throws QueryError */
async function admit<D>({ parts, call, ledger }: OpenRequest, request: Decision<D>): Promise<Caller> {
  const identified = identify(parts, call, ledger);
  const caller = identified instanceof Promise ? await identified : identified;
  ledger.endStage('identify');
  const { bucket, payment } = request;
  if (bucket !== null && payment?.take() !== true) {
    const pending = limit(parts, caller, bucket, call.surface);
    if (pending !== undefined) await pending;
  }
  ledger.endStage('limit');
  const complete = withAttributes(parts, caller, request);
  return checkAllowed(request, complete instanceof Promise ? await complete : complete);
}

function withAttributes<D>(
  parts: RequestParts,
  caller: Caller,
  { readsNoRows }: Decision<D>,
): Caller | Promise<Caller> {
  return readsNoRows === true ? caller : completeCaller(parts, caller);
}

function checkAllowed<D>({ requireAllowed }: Decision<D>, caller: Caller): Caller {
  requireAllowed?.(caller);
  return caller;
}

function decideRequest<D>(
  openRequest: OpenRequest,
  request: Decision<D>,
  admitCaller: () => Caller | Promise<Caller>,
): Promise<AuthorizedRequest<D>> {
  return recordRefusalOnError(openRequest, async () => {
    const caller = await admitCaller();
    const decision = request.decide(caller, openRequest.ledger);
    const decided = decision instanceof Promise ? await decision : decision;
    openRequest.ledger.endStage('decide');
    return new AuthorizedRequest(openRequest, caller, decided);
  });
}

async function recordRefusalOnError<T>(request: OpenRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await refuse(request, toPublicError(request, error));
  }
}

/** Returns the error from recording the decision, if that failed; otherwise `error`. */
async function causeOf(recorded: Promise<void>, error: unknown): Promise<unknown> {
  try {
    await recorded;
    return error;
  } catch (unrecorded) {
    return unrecorded;
  }
}

function toPublicError({ parts, call }: OpenRequest, error: unknown): PublicError {
  return error instanceof ForeignFault ? error : publicError(parts, call.requestId, error);
}
