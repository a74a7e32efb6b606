import { type Identity, isExpired } from '../../../policy/index.js';
import type { RowSink } from '../../engine/index.js';
import { type Answer, redactionOf } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import { type Delivery, formatsOf, type Question } from '../data/question.js';
import type { Credentials } from '../request/call.js';
import { type Caller, callerAgain, versionsOf } from '../request/caller.js';
import { type FastAsker, FastQuestion } from './fast-question.js';
import type { Literals, Route } from './route.js';
import type { RouteBook } from './route-book.js';

/**
 * As `ask`, of a question whose text is `bytes` in UTF-8, by a route of `book`; null where it must take the one way: then
 * nothing has happened. The answer is `route.plan`'s but for the values of its literals.
 */
export function askByRoute(
  parts: AnswerParts,
  book: RouteBook,
  question: Question,
  bytes: Buffer,
  delivery: Delivery,
): Promise<Answer> | null {
  // What belongs to a trace is told stage by stage.
  if (question.traceparent !== undefined && parts.observing.traces) return null;
  const identity = knownIdentity(parts, question.credentials);
  const caller = identity === null ? null : callerAgain(parts, identity, question);
  if (caller === null) return null;
  const { parameterOids: oids } = question;
  let answer: Promise<Answer> | null = null;
  book.of(caller).offer(bytes, 0, bytes.length, oids, (route, literals) => {
    answer = begun(parts, book, { question, delivery, caller, route, literals, bytes });
    return answer !== null;
  });
  return answer;
}

/** Who calls, where that needs no look at a token that was not looked at before. */
function knownIdentity({ verifier }: AnswerParts, credentials: Credentials): Identity | null {
  if (credentials.kind === 'bearer')
    return credentials.token === null ? null : verifier.known(credentials.token);
  return isExpired(credentials.identity, Date.now()) ? null : credentials.identity;
}

interface ToBegin {
  readonly question: Question;
  readonly delivery: Delivery;
  readonly caller: Caller;
  readonly route: Route;
  readonly literals: Literals;
  readonly bytes: Buffer;
}

/** Null where the route does not lead to the answer after all. */
function begun(parts: AnswerParts, book: RouteBook, toBegin: ToBegin): Promise<Answer> | null {
  const { question, delivery, caller, route, literals, bytes } = toBegin;
  const { signal, parameters } = delivery;
  const settled: Settled = { resolve: () => undefined, reject: () => undefined };
  const answer = new Promise<Answer>((resolve, reject) => {
    settled.resolve = resolve;
    settled.reject = reject;
  });
  const asked = new FastQuestion(parts, askerOf(toBegin, settled), book);
  const begins = asked.begin({
    route,
    literals,
    identity: caller.identity,
    requestId: question.requestId,
    bytes,
    start: 0,
    end: bytes.length,
    parameters,
    resultFormats: formatsOf(delivery, route.plan),
    timeout: { ms: parts.caps.timeoutMs, own: false },
  });
  if (!begins) return null;
  const onAbort = (): void => asked.cancel();
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  return answer.finally(() => signal?.removeEventListener('abort', onAbort));
}

interface Settled {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

function askerOf({ question, delivery, caller, route: { plan } }: ToBegin, settled: Settled): FastAsker {
  const { sink } = delivery;
  // No route has runtime relations.
  const open = (): RowSink =>
    typeof sink === 'function' ? sink(plan, versionsOf(caller), redactionOf(plan, [])) : sink;
  const give = (rows: number, truncated: boolean): void =>
    settled.resolve({
      requestId: question.requestId,
      plan,
      caller,
      versions: versionsOf(caller),
      rows,
      truncated,
      clipped: false,
      redactedFields: NONE,
      indexes: NONE,
      errors: NONE,
      permits: null,
      freshness: null,
    });
  return {
    whole: delivery.whole === true,
    answered: (_route, rows, count) => {
      try {
        const given = open();
        const writing = count === 0 ? undefined : given.write(rows, count);
        if (writing === undefined) give(count, false);
        else writing.then(() => give(count, false), settled.reject);
      } catch (error) {
        settled.reject(error);
      }
    },
    streaming: () => ({ ...open(), finished: give, failed: (error) => settled.reject(error) }),
    failed: (_route, error) => settled.reject(error),
  };
}

const NONE: readonly never[] = Object.freeze([]);
