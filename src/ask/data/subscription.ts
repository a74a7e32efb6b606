import { setTimeout } from 'node:timers/promises';
import {
  comparesOverlaps,
  type GovernedPlan,
  InternalError,
  indeterminacyOf,
  QueryError,
  queryError,
} from 'osl-compiler';
import type { Manifest } from '../../model/manifest/index.js';
import type { RequestCall } from '../request/call.js';
import { type Caller, type ServedVersions, versionsOf } from '../request/caller.js';
import { quotasFor } from '../request/limit.js';
import { publicError } from '../request/public-error.js';
import { statementOf } from '../request/request-target.js';
import { respond } from '../request/respond.js';
import { cacheRulesOf } from './answer-cache.js';
import { AnswerDigest } from './answer-digest.js';
import { answerStepsOf, decisionOf } from './ask.js';
import type { AnswerParts } from './parts.js';
import type { DataQuestion, ResultDelivery } from './question.js';
import type { Subscriptions } from './subscriptions.js';

export interface SubscriptionParts extends AnswerParts {
  readonly subscriptions: Subscriptions;
  /** True if the server takes no new sessions and ends subscriptions. */
  draining(): boolean;
}

export interface SubscriptionRequest extends Pick<DataQuestion, 'body'>, Pick<ResultDelivery, 'parameters'> {
  /** The call that subscribes. */
  readonly call: RequestCall;
  /** The call of the next check: a request with its own id and the current credentials. May abort `signal`. */
  nextCall(): RequestCall;
  readonly intervalMs: number;
  /** The last event that the client has received; null for a new subscription. */
  readonly since: EventId | null;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
  /** Runs one check with a signal that cancels it. */
  run<T>(call: RequestCall, check: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** `answer` identifies the rows that the caller saw; without the key it says nothing about them. */
export interface EventId {
  readonly number: number;
  readonly answer: string;
}

/** `requestId` is that of the check in the audit log. */
export type SubscriptionEvent = { readonly requestId: string } & (
  | { readonly kind: 'ready'; readonly id: EventId | null; readonly versions: ServedVersions }
  | { readonly kind: 'changed'; readonly id: EventId; readonly versions: ServedVersions }
  /** The check failed for a reason that may pass; the next one is made as usual. */
  | { readonly kind: 'retrying'; readonly error: QueryError }
  | { readonly kind: 'ended'; readonly error: QueryError }
);

/**
 * Runs a query at once and then at each interval, and yields an event when its answer has changed since the last one.
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
  let leave: (() => void) | null = null;
  const admit = ({ identity }: Caller): void => {
    if (parts.draining()) throw queryError('shuttingDown', {});
    leave ??= parts.subscriptions.begin(identity.subject);
  };
  try {
    const begun = performance.now();
    const first = await check(parts, request, call, admit);
    let { answer } = first;
    const missed = since !== null && since.answer !== answer;
    let number = since?.number ?? 0;
    // The id is sent with the event that tells of the answer, so that a client never has the one without the other.
    yield { kind: 'ready', id: missed ? null : { number, answer }, ...ownOf(first) };
    if (missed) yield { kind: 'changed', id: { number: ++number, answer }, ...ownOf(first) };
    for (let tick = 1; await slept(begun + tick * intervalMs, signal); tick++) {
      const again = request.nextCall();
      if (signal.aborted) return;
      const checked = await check(parts, request, again, admit).catch((error: unknown) =>
        publicError(parts, again.requestId, error),
      );
      if (signal.aborted) return;
      if (checked instanceof QueryError) {
        const kind = mayPass(checked) ? 'retrying' : 'ended';
        yield { kind, error: checked, requestId: again.requestId };
        if (kind === 'ended') return;
      } else if (checked.answer !== answer) {
        answer = checked.answer;
        yield { kind: 'changed', id: { number: ++number, answer }, ...ownOf(checked) };
      }
      tick = Math.max(tick, Math.floor((performance.now() - begun) / intervalMs)); // a slow check skips intervals
    }
  } finally {
    // A cast, since the compiler does not see the assignment in `admit`.
    (leave as (() => void) | null)?.();
  }
}

interface CheckedAnswer {
  readonly answer: string;
  readonly requestId: string;
  readonly versions: ServedVersions;
}

function ownOf({ requestId, versions }: CheckedAnswer): Pick<CheckedAnswer, 'requestId' | 'versions'> {
  return { requestId, versions };
}

function check(
  parts: AnswerParts & Pick<SubscriptionParts, 'subscriptions'>,
  { body, parameters, run }: SubscriptionRequest,
  call: RequestCall,
  permits: (caller: Caller) => void,
): Promise<CheckedAnswer> {
  const question: DataQuestion = { ...call, body, parameterOids: [] };
  return run(call, (signal) => {
    let digest: AnswerDigest | null = null;
    const delivery: { -readonly [K in keyof ResultDelivery]: ResultDelivery[K] } = {
      ...{ parameters, signal, resultFormats: [], maxRows: 0, whole: true },
      sink: () => digest ?? unplanned(),
    };
    const decision = decisionOf(parts, question, 'subscribe');
    return respond<GovernedPlan, CheckedAnswer>(parts, question, {
      ...decision,
      permits,
      decide: async (caller, record) => {
        const plan = await decision.decide(caller, record);
        const reason = comparesOverlaps(plan, caller.access)
          ? 'its grant compares answers with earlier ones'
          : indeterminacyOf(plan);
        if (reason !== null) throw queryError('notSubscribable', { reason });
        if (tellsEveryChange(caller.manifest, plan) && !paysForTime(caller)) delivery.again = 'given before';
        const text = JSON.stringify([body.kind, statementOf(body), parameters.map(textOf)]);
        digest = new AnswerDigest(parts.subscriptions.keyFor(caller.identity.chain, text));
        return plan;
      },
      ...stepsOf(parts, question, delivery, () => digest ?? unplanned()),
    });
  });
}

function unplanned(): never {
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
    reads: () => null,
    counts: () => ({ rows: 0, truncated: false }),
    answer: async (...given: Parameters<typeof steps.answer>): Promise<CheckedAnswer> => {
      const { plan, caller } = await steps.answer(...given);
      const { requestId } = question;
      return { answer: digestOf().tag(plan), requestId, versions: versionsOf(caller) };
    },
  };
}

function textOf({ bytes }: ResultDelivery['parameters'][number]): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('hex');
}

/**
 * True if the database notifies of each change of what the plan reads. Without a notification the cached answer is then
 * the current one, and the query need not run again. A watermark is not enough: it does not tell of deleted rows, so a
 * change of a hidden row would decide when the deletion of a visible one is noticed.
 */
function tellsEveryChange(manifest: Manifest, plan: GovernedPlan): boolean {
  const rules = cacheRulesOf(manifest, plan);
  return rules !== null && [...rules.values()].every((rule) => rule.notify);
}

/** True if database time counts against the caller, who could otherwise see in a quota that a query has run again. */
function paysForTime(caller: Caller): boolean {
  return quotasFor(caller, 'query').some(({ unit }) => unit === 'ms');
}

/** True for errors of the moment: limits, the database, the server, a cancel, rights that changed during the run. */
function mayPass({ http, entry }: QueryError): boolean {
  if (entry === 'shuttingDown') return false;
  return http >= 500 || http === 429 || entry === 'rightsChanged' || entry === 'cancelled';
}

/** Waits until `time` on the clock of `performance.now()`; false if `signal` ends the wait. */
async function slept(time: number, signal: AbortSignal): Promise<boolean> {
  try {
    await setTimeout(Math.max(0, time - performance.now()), undefined, { signal });
    return true;
  } catch {
    return false; // the only error is the abort
  }
}
