import { type GovernedPlan, QueryError, queryError } from 'osl-compiler';
import type { LimitBucket } from '../../../policy/index.js';
import type { RequestTarget } from './asked.js';
import type { RequestCall } from './call.js';
import { type Caller, callerAs, identify, stands } from './caller.js';
import { type DecisionRecord, Ledger } from './ledger.js';
import { limit, type Payment } from './limit.js';
import type { RequestParts } from './parts.js';
import type { Permit } from './recorder.js';
import { SealedValue } from './sealed.js';
import { ForeignFault, publicError } from './told.js';

/** First half of a request, up to the decision; `D` is the result of deciding. */
export interface Decision<D> {
  /** Name of the action in the audit log. */
  readonly action: string;
  /** Logged by its fingerprint; of a refusal also the objects that it names. */
  readonly asked?: RequestTarget;
  /** Rate limit to count against; null if another kind of limit applies, as at a login. */
  readonly bucket: LimitBucket | null;
  /** Payment of an earlier request that covers this one. */
  readonly payment?: Payment | undefined;
  /** Throws if the caller may not make requests of this kind. */
  readonly permits?: (caller: Caller) => void;
  /** Runs `work` once it is this request's turn; the caller's rights are checked again then. */
  readonly inTurn?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Throws to refuse. */
  decide(caller: Caller, record: DecisionRecord): D | Promise<D>;
}

/** Issues permits that let similar requests skip planning. */
export interface Permits {
  permit(plan: GovernedPlan): Permit;
}

/** Second half of a request, after the decision. */
export interface AnswerSteps<D, A> {
  /** Called once the decision is recorded or, if it `overlaps`, before: then nothing may leave before `recorded`. */
  answer(decided: D, caller: Caller, recorded: Promise<void>, permits: Permits): A | Promise<A>;
  /** Plan that is going to run, if any. */
  readonly reads?: (decided: D) => GovernedPlan | null;
  readonly overlaps?: boolean;
  /** Counts for the outcome record; absent: no rows. */
  readonly counts?: (answer: A) => { readonly rows: number; readonly truncated: boolean };
  /** Rows sent so far, for the outcome record of a failure. */
  readonly left?: () => number;
  /** Further details for the outcome record, as JSON, also of a failure. */
  readonly detail?: () => string | null;
  /** Once aborted, a failure is recorded as a cancellation. */
  readonly signal?: AbortSignal | null;
}

/**
 * Handles one request of any surface, in a fixed order:
 *
 *   identify → access → rate limit → decide → record the decision → answer → record the outcome
 *
 * Every failure before the answer is recorded as a refusal. If the decision cannot be recorded, nothing is sent: E5030
 *
 * @throws QueryError, ForeignFault: safe to show to the caller. Anything else is a bug: it is logged and becomes E5000.
 */
export async function respond<D, A>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D> & AnswerSteps<D, A>,
): Promise<A> {
  const { inTurn } = request;
  if (inTurn === undefined) return (await consider(parts, call, request)).answer(request);
  const underWay = begin(parts, call, request.action, request.asked);
  const { identity } = await recordRefusalOnError(underWay, () => admit(underWay, request));
  return inTurn(async () => {
    const again = (): Caller => permitted(request, callerAs(parts, identity, underWay.ledger, call));
    return (await decided(underWay, request, again)).answer(request);
  });
}

/** First half of a request: up to the decision, which is not recorded yet. Throws as `respond`. */
export function consider<D>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D>,
): Promise<AuthorizedRequest<D>> {
  const underWay = begin(parts, call, request.action, request.asked);
  return decided(underWay, request, () => admit(underWay, request));
}

/** One request on its way, with its audit records. */
interface OpenRequest {
  readonly parts: RequestParts;
  readonly call: RequestCall;
  readonly ledger: Ledger;
}

function begin(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  asked: RequestTarget | null = null,
): OpenRequest {
  return { parts, call, ledger: new Ledger(SealedValue.open(parts.means).recording, call, action, asked) };
}

/** Request that was authorized and whose decision is not recorded yet. */
export class AuthorizedRequest<D> {
  readonly caller: Caller;
  readonly decided: D;
  readonly #request: OpenRequest;

  constructor(request: OpenRequest, caller: Caller, decided: D) {
    this.#request = request;
    this.caller = caller;
    this.decided = decided;
  }

  /** Second half of the request. Throws as `respond`. */
  async answer<A>({ answer, overlaps, reads, counts, left, detail, signal }: AnswerSteps<D, A>): Promise<A> {
    const { ledger } = this.#request;
    const plan = reads?.(this.decided) ?? null;
    if (plan !== null) ledger.reads(plan); // at once before the decision, so that both are on disk together
    const recorded = ledger.allow();
    try {
      if (overlaps === true)
        recorded.catch(() => undefined); // awaited below, whatever becomes of the answer
      else await recorded;
      const given = await answer(this.decided, this.caller, recorded, this);
      await recorded;
      const counted = counts?.(given);
      const how = counted?.truncated === true ? 'truncated' : 'ok';
      ledger.outcome(how, counted?.rows ?? 0, null, detail?.());
      return given;
    } catch (error) {
      const told = toPublicError(this.#request, await causeOf(recorded, error));
      ledger.outcome(signal?.aborted === true ? 'cancelled' : 'error', left?.() ?? 0, told, detail?.());
      throw told;
    }
  }

  /** Permit for similar requests, once this one was answered with `plan`. */
  permit(plan: GovernedPlan): Permit {
    return this.#request.ledger.permit(this.caller, plan);
  }

  /** Records the decision and a successful outcome of a request that is not continued. @throws QueryError E5030 */
  settle(): Promise<void> {
    return this.answer({ answer: () => undefined });
  }

  /** True if `call` continues this request: same caller, and the same model is still served. */
  isOf({ requestId, credentials, origin }: RequestCall): boolean {
    const { parts, call } = this.#request;
    return (
      requestId === call.requestId &&
      credentials.kind === 'session' &&
      credentials.identity === this.caller.identity &&
      origin === call.origin &&
      stands(this.caller) &&
      parts.model() === this.caller.model
    );
  }

  /** Continues the request under the name `action`. */
  as(action: string): this {
    this.#request.ledger.resumes(action);
    return this;
  }

  /** Stops the clock until the request continues or is settled. */
  rest(): this {
    this.#request.ledger.done();
    return this;
  }
}

/** Identifies the caller and counts the request once. @throws QueryError */
async function admit<D>({ parts, call, ledger }: OpenRequest, request: Decision<D>): Promise<Caller> {
  const found = identify(parts, call, ledger);
  const caller = found instanceof Promise ? await found : found;
  ledger.passed('identify');
  const { bucket, payment } = request;
  if (bucket !== null && payment?.take() !== true) {
    const waits = limit(parts, caller, bucket, call.surface);
    if (waits !== undefined) await waits;
  }
  ledger.passed('limit');
  return permitted(request, caller);
}

function permitted<D>({ permits }: Decision<D>, caller: Caller): Caller {
  permits?.(caller);
  return caller;
}

function decided<D>(
  underWay: OpenRequest,
  request: Decision<D>,
  callerNow: () => Caller | Promise<Caller>,
): Promise<AuthorizedRequest<D>> {
  return recordRefusalOnError(underWay, async () => {
    const caller = await callerNow();
    const found = request.decide(caller, underWay.ledger);
    const decided = found instanceof Promise ? await found : found;
    underWay.ledger.passed('decide');
    return new AuthorizedRequest(underWay, caller, decided);
  });
}

async function recordRefusalOnError<T>(request: OpenRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await refuse(request, toPublicError(request, error));
  }
}

/** A failure to record the decision takes precedence over `error`. */
async function causeOf(recorded: Promise<void>, error: unknown): Promise<unknown> {
  try {
    await recorded;
    return error;
  } catch (unrecorded) {
    return unrecorded;
  }
}

type PublicError = QueryError | ForeignFault;

function toPublicError({ parts, call }: OpenRequest, error: unknown): PublicError {
  return error instanceof ForeignFault ? error : publicError(parts, call.requestId, error);
}

/** Records a refusal and returns the error for the caller. A refusal that cannot be recorded is still a refusal. */
async function refuse<T extends PublicError>(request: OpenRequest, error: T): Promise<T | QueryError> {
  try {
    return await recordRefusal(request, error);
  } catch (unrecorded) {
    return publicError(request.parts, request.call.requestId, unrecorded);
  }
}

/** Failures of callers without a valid token are limited by address, so that nobody can flood the log. */
async function recordRefusal<T extends PublicError>(
  { parts, call, ledger }: OpenRequest,
  error: T,
): Promise<T | QueryError> {
  const { credentials } = call;
  const believed = ledger.identified && !(error instanceof QueryError && error.entry === 'invalidToken');
  if (credentials.kind === 'bearer' && !believed) {
    const { address } = credentials;
    const taken = await SealedValue.open(parts.means).limiter.takeAddress(address);
    if (!taken.ok) {
      const limited = queryError('addressLimited', { retryAfterSeconds: taken.retryAfterSeconds });
      if (parts.strangers.isFirst(call, address)) await ledger.refuse(limited);
      return limited;
    }
  }
  await ledger.refuse(error);
  return error;
}

/** Refuses a call without identifying its caller, and records that. Returns the error for the caller. */
export function turnAwayStranger(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  reason: QueryError,
): Promise<QueryError> {
  return refuse(begin(parts, call, action), reason);
}

/** Records a failure before there was a session, limited by address. */
export async function recordBrokenConnection(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  fault: PublicError,
): Promise<void> {
  if (call.credentials.kind !== 'bearer') return;
  const { address } = call.credentials;
  const taken = await SealedValue.open(parts.means).limiter.takeAddress(address);
  if (!taken.ok && !parts.strangers.isFirst(call, address)) return;
  try {
    await begin(parts, call, action).ledger.refuse(fault);
  } catch (error) {
    publicError(parts, call.requestId, error); // writes it to the service's own log
  }
}
