import type { GovernedPlan } from 'osl-compiler';
import { type Identity, isExpired } from '../../../policy/index.js';
import type { RowSink, StandbyReads } from '../../engine/index.js';
import { ask, prepare, redactionOf } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import type { AnswerFreshness, QueryAnswer } from '../data/query-answer.js';
import {
  type CompiledQuestion,
  type DataQuestion,
  formatsOf,
  type ResultDelivery,
} from '../data/question.js';
import { engineOf } from '../data/runtime/index.js';
import type { Credentials, Origin, RequestCall } from '../request/call.js';
import { type Caller, isCurrent, versionsOf } from '../request/caller.js';
import { callerWithoutReads } from '../request/identify.js';
import { FastQuestion } from './fast-question.js';
import type { Literals, Route } from './route.js';
import { RouteBook, type TextRoute, type TextRoutes } from './route.js';
import {
  type AnswerReceiver,
  type FastQuestions,
  type RunValues,
  type TimeLimit,
  TimeoutSweep,
} from './routed-question.js';

/**
 * Runs the data queries of a surface. Queries of a known shape, which differ from an earlier one only in literals, take
 * the fast path. Others take the full path, which may make their shape known.
 */
export class QuestionRouter {
  readonly #parts: AnswerParts;
  readonly #fast: FastQuestions = { sweep: new TimeoutSweep(), started: 0 };
  /** Routes by kind of query, since the same text may mean different things. */
  readonly #books = { osql: new RouteBook(), sql: new RouteBook(), wire: new RouteBook() };

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  get fastPathCount(): number {
    return this.#fast.started;
  }

  async answer(question: DataQuestion, delivery: ResultDelivery): Promise<QueryAnswer> {
    const { body } = question;
    if (body.kind === 'metrics') return ask(this.#parts, question, delivery);
    const book = this.#books[body.kind];
    const bytes = Buffer.from(body.text, 'utf8');
    const fastAnswer = this.#answerFast(book, question, bytes, delivery);
    if (fastAnswer !== null) return fastAnswer;
    const answer = await ask(this.#parts, question, delivery);
    book.findOrCreate(this.#parts, question, { bytes }, answer, false);
    return answer;
  }

  /** Compiles a statement that the client runs later. @throws the errors of `prepare` */
  async prepare(
    question: DataQuestion & { readonly body: { readonly kind: 'wire' } },
  ): Promise<PreparedQuestion> {
    const prepared = await prepare(this.#parts, question);
    return new PreparedQuestion(this.#parts, this.#books.wire, question.body.text, prepared);
  }

  ofSession(session: FastPathSession, receiver: AnswerReceiver): SessionQuestions {
    return new SessionQuestions(this.#parts, this.#books.wire, this.#fast, session, receiver);
  }

  /** Answers on the fast path, or returns null without side effects. The answer's `plan` may contain other literals. */
  #answerFast(
    book: RouteBook,
    question: DataQuestion,
    bytes: Buffer,
    delivery: ResultDelivery,
  ): Promise<QueryAnswer> | null {
    const parts = this.#parts;
    // Traced requests take the full path, which records each stage.
    if (question.traceparent !== undefined && parts.observing.traces) return null;
    // A receipt is made on the full path.
    if (delivery.receipt != null) return null;
    const identity = verifiedIdentity(parts, question.credentials);
    const caller = identity === null ? null : callerWithoutReads(parts, identity, question);
    if (caller === null) return null;
    let answer: Promise<QueryAnswer> | null = null;
    book.routesOf(caller).tryEach(bytes, 0, bytes.length, question.parameterOids, (route, literals) => {
      answer = this.#begin({ question, delivery, caller, route, literals, bytes });
      return answer !== null;
    });
    return answer;
  }

  #begin(call: RoutedCall): Promise<QueryAnswer> | null {
    const { question, delivery, caller, route, literals, bytes } = call;
    const { signal, parameters } = delivery;
    const promise: AnswerPromise = { resolve: () => undefined, reject: () => undefined };
    const answer = new Promise<QueryAnswer>((resolve, reject) => {
      promise.resolve = resolve;
      promise.reject = reject;
    });
    const fast = new FastQuestion(this.#parts, receiverOf(call, promise), this.#fast);
    const hasBegun = fast.begin({
      route,
      literals,
      caller,
      requestId: question.requestId,
      bytes,
      start: 0,
      end: bytes.length,
      parameters,
      resultFormats: formatsOf(delivery, route.plan),
      timeout: { ms: this.#parts.caps.timeoutMs, isOfSession: false },
      standby: delivery.standby ?? null,
    });
    if (!hasBegun) return null;
    const onAbort = (): void => fast.cancel();
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    return answer.finally(() => signal?.removeEventListener('abort', onAbort));
  }
}

/** Returns the caller's identity if no token needs to be verified; otherwise null. */
function verifiedIdentity({ verifier }: AnswerParts, credentials: Credentials): Identity | null {
  if (credentials.kind === 'bearer')
    return credentials.token === null ? null : verifier.cached(credentials.token);
  return isExpired(credentials.identity, Date.now()) ? null : credentials.identity;
}

interface RoutedCall {
  readonly question: DataQuestion;
  readonly delivery: ResultDelivery;
  readonly caller: Caller;
  readonly route: Route;
  readonly literals: Literals;
  readonly bytes: Buffer;
}

interface AnswerPromise {
  resolve(answer: QueryAnswer): void;
  reject(error: unknown): void;
}

function receiverOf(
  { question, delivery, caller, route: { plan } }: RoutedCall,
  promise: AnswerPromise,
): AnswerReceiver {
  const { sink } = delivery;
  // Routes have no runtime relations.
  const openSink = (): RowSink =>
    typeof sink === 'function' ? sink(plan, versionsOf(caller), redactionOf(plan, [])) : sink;
  const resolveAnswer = (rows: number, truncated: boolean, freshness: AnswerFreshness | null): void =>
    promise.resolve({
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
      freshness,
      receipt: null,
    });
  return {
    whole: delivery.whole === true,
    onAnswer: (_plan, rows, count, freshness) => {
      try {
        const target = openSink();
        const writing = count === 0 ? undefined : target.write(rows, count);
        if (writing === undefined) resolveAnswer(count, false, freshness);
        else writing.then(() => resolveAnswer(count, false, freshness), promise.reject);
      } catch (error) {
        promise.reject(error);
      }
    },
    openStream: () => ({
      ...openSink(),
      onFinished: (rows, truncated, _requestId, freshness) => resolveAnswer(rows, truncated, freshness),
      onFailure: (error) => promise.reject(error),
    }),
    onFailure: (_plan, error) => promise.reject(error),
  };
}

const NONE: readonly never[] = Object.freeze([]);

/** A compiled statement that a client runs later, possibly several times. */
export class PreparedQuestion {
  readonly plan: GovernedPlan;
  readonly #parts: AnswerParts;
  readonly #book: RouteBook;
  readonly #text: string;
  readonly #prepared: CompiledQuestion;
  /** The route of this text; null until a run has created one. */
  #route: TextRoute | null = null;
  #bytes: Buffer | null = null;
  #runs = 0;

  constructor(parts: AnswerParts, book: RouteBook, text: string, prepared: CompiledQuestion) {
    this.#parts = parts;
    this.#book = book;
    this.#text = text;
    this.#prepared = prepared;
    this.plan = prepared.plan;
  }

  get engineKind(): 'postgres' | 'pglite' {
    return engineOf(this.#parts, this.plan).status.kind;
  }

  /** Records that the statement was compiled, unless it has been run. @throws QueryError E5030 */
  record(): Promise<void> {
    return this.#prepared.record();
  }

  /** Runs the statement on the full path. @throws the errors of `ask` */
  async run(call: RequestCall, mayBeOld: boolean, delivery: ResultDelivery): Promise<QueryAnswer> {
    const prepared = this.#prepared;
    const { body, parameterOids } = prepared;
    const question: DataQuestion = { ...call, body, parameterOids, prepared, mayBeOld };
    const answer = await ask(this.#parts, question, delivery);
    this.#runs += 1;
    if (this.#route?.route.isFor(answer.caller) !== true)
      this.#route = this.#book.findOrCreate(this.#parts, question, this, answer, this.#runs > 1);
    return answer;
  }

  /** The bytes of the text, created on demand because most statements run only once. */
  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.#text, 'utf8');
    return this.#bytes;
  }

  routeFor(caller: Caller): TextRoute | null {
    return this.#route?.route.isFor(caller) === true ? this.#route : null;
  }

  get hasRoute(): boolean {
    return this.#route !== null;
  }
}

/** The parts of a Postgres session that the fast path uses. */
export interface FastPathSession {
  readonly identity: Identity;
  /** The session's origin: a new object whenever it changes. */
  readonly origin: Origin;
  newCall(): RequestCall;
}

/** The caller and origin as of the last check, and their routes. */
interface SessionRoutes {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly routes: TextRoutes;
}

/** Fast path of a Postgres session: runs synchronously, in the event-loop turn in which the bytes arrived. */
export class SessionQuestions {
  readonly #parts: AnswerParts;
  readonly #book: RouteBook;
  readonly #fast: FastQuestions;
  readonly #session: FastPathSession;
  readonly #receiver: AnswerReceiver;
  /** Created on demand, because most sessions of a client's pool are idle. */
  #question: FastQuestion | null = null;
  #routes: SessionRoutes | null = null;

  constructor(
    parts: AnswerParts,
    book: RouteBook,
    fast: FastQuestions,
    session: FastPathSession,
    receiver: AnswerReceiver,
  ) {
    this.#parts = parts;
    this.#book = book;
    this.#fast = fast;
    this.#session = session;
    this.#receiver = receiver;
  }

  /**
   * Runs the statement in bytes [start, end), in UTF-8, with these declared parameter types. Returns false, without
   * side effects, if it must be prepared.
   *
   * @param valuesOf returns the values of the run, given the plan
   * @param standby permits a standby to answer; null if only the primary may
   */
  begin(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    valuesOf: (plan: GovernedPlan) => RunValues,
    timeout: TimeLimit,
    standby: StandbyReads | null,
  ): boolean {
    const current = this.#currentRoutes();
    if (current === null) return false;
    const { caller } = current;
    return current.routes.tryEach(bytes, start, end, parameterTypes, (route, literals) => {
      const { parameters, resultFormats } = valuesOf(route.plan);
      // A spread would double the cost of this call.
      return this.#fastQuestion().begin({
        route,
        literals,
        caller,
        requestId: null,
        bytes,
        start,
        end,
        parameters,
        resultFormats,
        timeout,
        standby,
      });
    });
  }

  /** Runs `prepared`. Returns false, without side effects, if it must take the full path. */
  beginPrepared(
    prepared: PreparedQuestion,
    values: RunValues,
    timeout: TimeLimit,
    standby: StandbyReads | null,
  ): boolean {
    const current = prepared.hasRoute ? this.#currentRoutes() : null;
    const textRoute = current === null ? null : prepared.routeFor(current.caller);
    if (current === null || textRoute === null) return false;
    const { bytes } = prepared;
    return this.#fastQuestion().begin({
      route: textRoute.route,
      literals: textRoute.literals,
      caller: current.caller,
      requestId: null,
      bytes,
      start: 0,
      end: bytes.length,
      parameters: values.parameters,
      resultFormats: values.resultFormats,
      timeout,
      standby,
    });
  }

  get isRunning(): boolean {
    return this.#question?.isRunning === true;
  }

  get objectsRead(): readonly string[] | null {
    return this.#question?.objectsRead ?? null;
  }

  cancel(): void {
    this.#question?.cancel();
  }

  #fastQuestion(): FastQuestion {
    this.#question ??= new FastQuestion(this.#parts, this.#receiver, this.#fast);
    return this.#question;
  }

  /** Returns the current routes; null if the full path must check caller and model first. */
  #currentRoutes(): SessionRoutes | null {
    const { identity, origin } = this.#session;
    const caller = this.#routes?.caller;
    if (
      caller?.identity !== identity ||
      caller.model !== this.#parts.model() ||
      this.#routes?.origin !== origin ||
      !isCurrent(caller)
    )
      this.#routes = this.#routesOf(identity, origin);
    return this.#routes;
  }

  #routesOf(identity: Identity, origin: Origin): SessionRoutes | null {
    const caller = callerWithoutReads(this.#parts, identity, this.#session.newCall());
    return caller === null ? null : { caller, origin, routes: this.#book.routesOf(caller) };
  }
}
