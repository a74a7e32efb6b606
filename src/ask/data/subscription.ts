import { createHash, createHmac } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import {
  comparesOverlaps,
  type GovernedPlan,
  InternalError,
  indeterminacyOf,
  QueryError,
  queryError,
} from 'osl-compiler';
import { eachDataRow, type RowSink, rowScheduler } from '../../engine/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { RequestCall } from '../request/call.js';
import { type Caller, type ServedVersions, versionsOf } from '../request/caller.js';
import { quotasFor } from '../request/limit.js';
import { publicError } from '../request/public-error.js';
import { statementOf } from '../request/request-target.js';
import { respond } from '../request/respond.js';
import { cacheRulesOf } from './answer-cache.js';
import { answerStepsOf, decisionOf } from './ask.js';
import type { AnswerParts } from './parts.js';
import type { DataQuestion, ResultDelivery } from './question.js';

export interface SubscriptionParts extends AnswerParts {
  readonly subscriptions: Subscriptions;
  /** True if the server takes no new sessions and ends subscriptions. */
  draining(): boolean;
}

export interface SubscriptionRequest extends Pick<DataQuestion, 'body'>, Pick<ResultDelivery, 'parameters'> {
  /** The call that subscribes. */
  readonly call: RequestCall;
  /** Returns the call for the next check: a request with its own id and the current credentials. May abort `signal`. */
  nextCall(): RequestCall;
  readonly intervalMs: number;
  /** The last event that the client has received; null for a new subscription. */
  readonly since: EventId | null;
  /** Aborted to end the subscription. */
  readonly signal: AbortSignal;
  /** Runs one check with a signal that cancels it. */
  run<T>(call: RequestCall, check: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** `answer` is a keyed digest of the rows that the caller saw; without the key it reveals nothing about them. */
export interface EventId {
  readonly number: number;
  readonly answer: string;
}

/** `requestId` is the id of the check in the audit log. */
export type SubscriptionEvent = { readonly requestId: string } & (
  | { readonly kind: 'ready'; readonly id: EventId | null; readonly versions: ServedVersions }
  | { readonly kind: 'changed'; readonly id: EventId; readonly versions: ServedVersions }
  /** The check failed for a reason that may be temporary; the next check runs as usual. */
  | { readonly kind: 'retrying'; readonly error: QueryError }
  | { readonly kind: 'ended'; readonly error: QueryError }
);

/**
 * Runs a query immediately and then at each interval; yields an event whenever its answer differs from the last one.
 * Each run is a request like any other: authenticated, limited, governed and recorded, with the action `subscribe`.
 *
 * INVARIANT: events depend on the caller's own answers at these times only, so hidden rows cannot cause one.
 *
 * @throws QueryError if the first run fails: E0533 if its answer is not determined by the rows it reads, E4290, E5031
 *   and the errors of `ask`
 */
export async function* eventsOf(
  parts: SubscriptionParts,
  request: SubscriptionRequest,
): AsyncGenerator<SubscriptionEvent, void> {
  const { call, intervalMs, since, signal } = request;
  let unsubscribe: (() => void) | null = null;
  const admit = ({ identity }: Caller): void => {
    if (parts.draining()) throw queryError('shuttingDown', {});
    unsubscribe ??= parts.subscriptions.begin(identity.subject);
  };
  try {
    const startedAt = performance.now();
    const first = await check(parts, request, call, admit);
    let { answer } = first;
    const hasChanged = since !== null && since.answer !== answer;
    let number = since?.number ?? 0;
    // The id is sent with the event that reports its answer, so that a client never has one without the other.
    yield { kind: 'ready', id: hasChanged ? null : { number, answer }, ...metadataOf(first) };
    if (hasChanged) yield { kind: 'changed', id: { number: ++number, answer }, ...metadataOf(first) };
    for (let tick = 1; await sleepUntil(startedAt + tick * intervalMs, signal); tick++) {
      const next = request.nextCall();
      if (signal.aborted) return;
      const checked = await check(parts, request, next, admit).catch((error: unknown) =>
        publicError(parts, next.requestId, error),
      );
      if (signal.aborted) return;
      if (checked instanceof QueryError) {
        const kind = isTemporary(checked) ? 'retrying' : 'ended';
        yield { kind, error: checked, requestId: next.requestId };
        if (kind === 'ended') return;
      } else if (checked.answer !== answer) {
        answer = checked.answer;
        yield { kind: 'changed', id: { number: ++number, answer }, ...metadataOf(checked) };
      }
      tick = Math.max(tick, Math.floor((performance.now() - startedAt) / intervalMs)); // a slow check skips intervals
    }
  } finally {
    // The cast is needed, since TypeScript does not see the assignment in `admit` above.
    (unsubscribe as (() => void) | null)?.();
  }
}

interface CheckedAnswer {
  readonly answer: string;
  readonly requestId: string;
  readonly versions: ServedVersions;
}

function metadataOf({ requestId, versions }: CheckedAnswer): Pick<CheckedAnswer, 'requestId' | 'versions'> {
  return { requestId, versions };
}

function check(
  parts: AnswerParts & Pick<SubscriptionParts, 'subscriptions'>,
  { body, parameters, run }: SubscriptionRequest,
  call: RequestCall,
  requireAllowed: (caller: Caller) => void,
): Promise<CheckedAnswer> {
  const question: DataQuestion = { ...call, body, parameterOids: [] };
  return run(call, (signal) => {
    let digest: AnswerDigest | null = null;
    const delivery: { -readonly [K in keyof ResultDelivery]: ResultDelivery[K] } = {
      ...{ parameters, signal, resultFormats: [], maxRows: 0, whole: true },
      sink: () => digest ?? failUnplanned(),
    };
    const decision = decisionOf(parts, question, 'subscribe');
    return respond<GovernedPlan, CheckedAnswer>(parts, question, {
      ...decision,
      requireAllowed,
      decide: async (caller, record) => {
        const plan = await decision.decide(caller, record);
        const reason = comparesOverlaps(plan, caller.access)
          ? 'its grant compares answers with earlier ones'
          : indeterminacyOf(plan);
        if (reason !== null) throw queryError('notSubscribable', { reason });
        if (notifiesEveryChange(caller.manifest, plan) && !hasTimeQuota(caller)) delivery.caching = 'reuse';
        const text = JSON.stringify([body.kind, statementOf(body), parameters.map(textOf)]);
        digest = new AnswerDigest(parts.subscriptions.keyFor(caller.identity.chain, text));
        return plan;
      },
      ...stepsOf(parts, question, delivery, () => digest ?? failUnplanned()),
    });
  });
}

function failUnplanned(): never {
  throw new InternalError('an answer came before its plan');
}

function stepsOf(
  parts: AnswerParts,
  question: DataQuestion,
  delivery: ResultDelivery,
  digestOf: () => AnswerDigest,
) {
  const steps = answerStepsOf(parts, question, delivery);
  return {
    ...steps,
    receipt: null,
    // No row is sent to the client.
    readPlan: () => null,
    countRows: () => ({ rows: 0, truncated: false }),
    answer: async (...args: Parameters<typeof steps.answer>): Promise<CheckedAnswer> => {
      const { plan, caller } = await steps.answer(...args);
      const { requestId } = question;
      return { answer: digestOf().tag(plan), requestId, versions: versionsOf(caller) };
    },
  };
}

function textOf({ bytes }: ResultDelivery['parameters'][number]): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('hex');
}

/**
 * True if the database notifies of every change of the data that the plan reads. The cached answer is then current
 * until a notification, and the query need not run again. A watermark is not enough, since it does not show deletions:
 * a change of a hidden row would determine when the deletion of a visible row is noticed.
 */
function notifiesEveryChange(manifest: Manifest, plan: GovernedPlan): boolean {
  const rules = cacheRulesOf(manifest, plan);
  return rules !== null && [...rules.values()].every((rule) => rule.notify);
}

/** True if a quota counts database time, and would thus tell the caller whether a query ran again or was cached. */
function hasTimeQuota(caller: Caller): boolean {
  return quotasFor(caller, 'query').some(({ unit }) => unit === 'ms');
}

/** True for temporary errors: limits, failures of the database or server, cancellation, or a change of rights. */
function isTemporary({ http, entry }: QueryError): boolean {
  if (entry === 'shuttingDown') return false;
  return http >= 500 || http === 429 || entry === 'rightsChanged' || entry === 'cancelled';
}

/** Waits until `time` on the clock of `performance.now()`; returns false if `signal` aborts the wait. */
async function sleepUntil(time: number, signal: AbortSignal): Promise<boolean> {
  try {
    await setTimeout(Math.max(0, time - performance.now()), undefined, { signal });
    return true;
  } catch {
    return false; // the only error is the abort
  }
}

/** Number of bytes hashed in one turn of the event loop. */
const HASH_BYTES_PER_TURN = 65_536;
/** Fixed cost of hashing a row, expressed in bytes. */
const ROW_COST = 128;

/**
 * Keyed digest of the columns and rows of an answer, independent of row order, in constant memory. Each row is hashed
 * with the key, and the hashes are summed: without the key, nobody can construct two sets of rows with the same sum.
 */
class AnswerDigest implements RowSink {
  readonly #key: Uint8Array;
  readonly #sums = new Uint32Array(8);
  #rows = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param dataRows whole DataRow messages with values in text format */
  write(dataRows: Uint8Array): void | Promise<void> {
    if (dataRows.length > HASH_BYTES_PER_TURN / 8) return this.#addInTurns(dataRows);
    for (const row of eachDataRow(dataRows)) this.#add(createHash('sha256').update(this.#key).update(row));
  }

  async #addInTurns(dataRows: Uint8Array): Promise<void> {
    let remaining = HASH_BYTES_PER_TURN;
    for (const row of eachDataRow(dataRows)) {
      const hash = createHash('sha256').update(this.#key);
      remaining -= ROW_COST;
      for (let at = 0; at < row.length; at += HASH_BYTES_PER_TURN) {
        const piece = row.subarray(at, at + HASH_BYTES_PER_TURN);
        hash.update(piece);
        remaining -= piece.length;
        if (remaining > 0) continue;
        remaining = HASH_BYTES_PER_TURN;
        await rowScheduler.wait();
      }
      this.#add(hash);
    }
  }

  #add(hash: ReturnType<typeof createHash>): void {
    const digest = hash.digest();
    for (let i = 0; i < this.#sums.length; i++)
      this.#sums[i] = (this.#sums[i] ?? 0) + digest.readUInt32LE(4 * i);
    this.#rows += 1;
  }

  /** Returns an opaque text of 22 characters, which is equal for equal answers under the same key. */
  tag({ outputs }: Pick<GovernedPlan, 'outputs'>): string {
    const columns = outputs.map(({ name, type }) => [name, type]);
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([columns, this.#rows, [...this.#sums]]))
      .digest()
      .toString('base64url', 0, 16);
  }
}

export interface SubscriptionLimits {
  /** Maximum number of subscriptions in this process. */
  readonly total: number;
  readonly perSubject: number;
  /** Minimum interval, in ms. */
  readonly minIntervalMs: number;
}

/** The open subscriptions of this process, and the secret from which the keys of their digests are derived. */
export class Subscriptions {
  readonly limits: SubscriptionLimits;
  readonly #key: Uint8Array;
  readonly #bySubject = new Map<string, number>();
  #openCount = 0;

  /** @param secret the same in all gateways of a tenant, so that event ids survive a restart and a change of gateway */
  constructor(limits: SubscriptionLimits, secret: Uint8Array, tenant: string) {
    this.limits = limits;
    this.#key = createHmac('sha256', secret).update(`osl subscription ${tenant}`).digest();
  }

  get open(): number {
    return this.#openCount;
  }

  /** Counts a new subscription. Returns the function to call when it ends. @throws QueryError E4290, E5031 */
  begin(subject: string): () => void {
    const current = this.#bySubject.get(subject) ?? 0;
    const { total, perSubject: limit } = this.limits;
    if (current >= limit)
      throw queryError('tooManySubscriptions', { limit, retryAfterSeconds: RETRY_SECONDS });
    if (this.#openCount >= total) throw queryError('overloaded', { retryAfterSeconds: RETRY_SECONDS });
    this.#openCount += 1;
    this.#bySubject.set(subject, current + 1);
    return () => {
      this.#openCount -= 1;
      const remaining = (this.#bySubject.get(subject) ?? 1) - 1;
      if (remaining === 0) this.#bySubject.delete(subject);
      else this.#bySubject.set(subject, remaining);
    };
  }

  /** Returns the digest key for a chain and a query: digests of different chains or queries cannot be compared. */
  keyFor(chain: readonly string[], query: string): Uint8Array {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([chain, query]))
      .digest();
  }
}

const RETRY_SECONDS = 30;
