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

/** What is to be decided about a call, before anything is answered: `D` is what the decision gives. */
export interface Decision<D> {
  /** What the log calls it. */
  readonly action: string;
  /** What is asked, where something is: the log has its fingerprint, and of a refusal the objects that it names. */
  readonly asked?: RequestTarget;
  /** The limit that it counts against; null where a limit of another kind stands before it, as at a login. */
  readonly bucket: LimitBucket | null;
  /** What may have paid for it already. */
  readonly payment?: Payment | undefined;
  /** Throws where the caller may not ask in this way, whatever it asks. */
  readonly permits?: (caller: Caller) => void;
  /** Waits for its turn, with `work` done in it; the caller's rights are looked at again when it comes. */
  readonly inTurn?: <T>(work: () => Promise<T>) => Promise<T>;
  /** What it throws is the refusal. */
  decide(caller: Caller, record: DecisionRecord): D | Promise<D>;
}

/** Makes what requests like the one that runs may go by. */
export interface Permits {
  permit(plan: GovernedPlan): Permit;
}

/** How what was decided is answered. */
export interface AnswerSteps<D, A> {
  /** Called once the decision is on record, unless the answer `overlaps` that: then `recorded` tells when it is. */
  answer(decided: D, caller: Caller, recorded: Promise<void>, permits: Permits): A | Promise<A>;
  /** The plan that is going to run, where one is. */
  readonly reads?: (decided: D) => GovernedPlan | null;
  /** Whether answering begins before the decision is on record; nothing may leave before `recorded`. */
  readonly overlaps?: boolean;
  /** What the outcome says of the answer; without it, that it went well, with no rows. */
  readonly counts?: (answer: A) => { readonly rows: number; readonly truncated: boolean };
  /** How many rows have been given away so far: what the outcome says of an answer that failed. */
  readonly left?: () => number;
  /** What the outcome says beside, as JSON, also of an answer that failed. */
  readonly detail?: () => string | null;
  /** An answer that fails after its asker has gone was cancelled. */
  readonly signal?: AbortSignal | null;
}

/**
 * The one way of every request, from whatever surface and of whatever kind:
 *
 * identify → access → limit → decide → audit the decision → answer → audit the outcome
 *
 * A refusal on the way is recorded; what cannot be recorded is refused.
 *
 * @throws what the caller may be told: a QueryError, or a ForeignFault; anything else is ours, is logged, and told as E5000
 */
export async function respond<D, A>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D> & AnswerSteps<D, A>,
): Promise<A> {
  const { inTurn } = request;
  if (inTurn === undefined) return (await consider(parts, call, request)).answer(request);
  const ledger = new Ledger(
    SealedValue.open(parts.means).recording,
    call,
    request.action,
    request.asked ?? null,
  );
  const { identity } = await orRefused(parts, call, ledger, () => admit(parts, call, ledger, request));
  return inTurn(async () => {
    const again = (): Caller => permitted(request, callerAs(parts, identity, ledger, call));
    return (await decided(parts, call, ledger, request, again)).answer(request);
  });
}

/** The first half of the way, up to the decision, which is not on record yet. Throws as `respond`. */
export function consider<D>(
  parts: RequestParts,
  call: RequestCall,
  request: Decision<D>,
): Promise<AuthorizedRequest<D>> {
  const ledger = new Ledger(
    SealedValue.open(parts.means).recording,
    call,
    request.action,
    request.asked ?? null,
  );
  return decided(parts, call, ledger, request, () => admit(parts, call, ledger, request));
}

/** A request that was let in, and is not on record yet. */
export class AuthorizedRequest<D> {
  readonly caller: Caller;
  readonly decided: D;
  readonly #parts: RequestParts;
  readonly #call: RequestCall;
  readonly #ledger: Ledger;

  constructor(parts: RequestParts, call: RequestCall, ledger: Ledger, caller: Caller, decided: D) {
    this.#parts = parts;
    this.#call = call;
    this.#ledger = ledger;
    this.caller = caller;
    this.decided = decided;
  }

  /** Answers it: the second half of the way. Throws as `respond`. */
  async answer<A>({ answer, overlaps, reads, counts, left, detail, signal }: AnswerSteps<D, A>): Promise<A> {
    const ledger = this.#ledger;
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
      const told = toldOf(this.#parts, this.#call, await causeOf(recorded, error));
      ledger.outcome(signal?.aborted === true ? 'cancelled' : 'error', left?.() ?? 0, told, detail?.());
      throw told;
    }
  }

  /** What the next requests like this one may go by, which has been answered with `plan`. */
  permit(plan: GovernedPlan): Permit {
    return this.#ledger.permit(this.caller, plan);
  }

  /** Puts on record that it was let in and, as no more comes of it, that it went well. @throws QueryError E5030 */
  settle(): Promise<void> {
    return this.answer({ answer: () => undefined });
  }

  /** Whether it is this request of this caller that goes on, under what was served when it was let in. */
  isOf({ requestId, credentials, origin }: RequestCall): boolean {
    return (
      requestId === this.#call.requestId &&
      credentials.kind === 'session' &&
      credentials.identity === this.caller.identity &&
      origin === this.#call.origin &&
      stands(this.caller) &&
      this.#parts.model() === this.caller.model
    );
  }

  /** The same request as `action`, whose work begins now. */
  as(action: string): this {
    this.#ledger.resumes(action);
    return this;
  }

  /** No work is done for it until it goes on or is settled. */
  rest(): this {
    this.#ledger.done();
    return this;
  }
}

/** Who calls, counted once and permitted. @throws QueryError */
async function admit<D>(
  parts: RequestParts,
  call: RequestCall,
  ledger: Ledger,
  request: Decision<D>,
): Promise<Caller> {
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
  parts: RequestParts,
  call: RequestCall,
  ledger: Ledger,
  request: Decision<D>,
  callerNow: () => Caller | Promise<Caller>,
): Promise<AuthorizedRequest<D>> {
  return orRefused(parts, call, ledger, async () => {
    const caller = await callerNow();
    const found = request.decide(caller, ledger);
    const decided = found instanceof Promise ? await found : found;
    ledger.passed('decide');
    return new AuthorizedRequest(parts, call, ledger, caller, decided);
  });
}

/** Does `work`; what it throws is a refusal, and recorded as one. */
async function orRefused<T>(
  parts: RequestParts,
  call: RequestCall,
  ledger: Ledger,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await refuse(parts, call, ledger, toldOf(parts, call, error));
  }
}

/** If the decision could not be recorded, that is the reason, whatever else went wrong. */
async function causeOf(recorded: Promise<void>, error: unknown): Promise<unknown> {
  try {
    await recorded;
    return error;
  } catch (unrecorded) {
    return unrecorded;
  }
}

type PublicError = QueryError | ForeignFault;

function toldOf(parts: RequestParts, call: RequestCall, error: unknown): PublicError {
  return error instanceof ForeignFault ? error : publicError(parts, call.requestId, error);
}

/** Records a refusal and gives what the caller is told. A refusal that cannot be recorded is still a refusal. */
async function refuse<T extends PublicError>(
  parts: RequestParts,
  call: RequestCall,
  ledger: Ledger,
  told: T,
): Promise<T | QueryError> {
  try {
    return await recordRefusal(parts, call, ledger, told);
  } catch (unrecorded) {
    return publicError(parts, call.requestId, unrecorded);
  }
}

/** Without a token that is good a caller counts by its address, before it reaches the log: so it does with a revoked one. */
async function recordRefusal<T extends PublicError>(
  parts: RequestParts,
  call: RequestCall,
  ledger: Ledger,
  told: T,
): Promise<T | QueryError> {
  const { credentials } = call;
  const believed = ledger.identified && !(told instanceof QueryError && told.entry === 'invalidToken');
  if (credentials.kind === 'bearer' && !believed) {
    const { address } = credentials;
    const taken = await SealedValue.open(parts.means).limiter.takeAddress(address);
    if (!taken.ok) {
      const limited = queryError('addressLimited', { retryAfterSeconds: taken.retryAfterSeconds });
      if (parts.strangers.isFirst(call, address)) await ledger.refuse(limited);
      return limited;
    }
  }
  await ledger.refuse(told);
  return told;
}

/** Refuses, and records, a call whose caller nobody looks at. Gives what it is told. */
export function turnAwayStranger(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  reason: QueryError,
): Promise<QueryError> {
  return refuse(parts, call, new Ledger(SealedValue.open(parts.means).recording, call, action, null), reason);
}

/** Something failed before there was a session. What an address may do so is limited before it reaches the log. */
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
    await new Ledger(SealedValue.open(parts.means).recording, call, action, null).refuse(fault);
  } catch (error) {
    publicError(parts, call.requestId, error); // says so in the service's own log
  }
}
