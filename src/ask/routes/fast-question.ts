import { InternalError, type QueryError, queryError } from 'osl-compiler';
import { type ShortAnswer, ShortRun, type StandbySource, ValueError } from '../../engine/index.js';
import { run } from '../data/ask.js';
import { ModelUsage } from '../data/model-usage.js';
import type { AnswerParts } from '../data/parts.js';
import { CountedSink, type QueryUses, standbyFreshness } from '../data/query-answer.js';
import { requireWhole } from '../data/question.js';
import { standbyUseFor } from '../data/standby-choice.js';
import { PermittedRequest } from '../request/permitted-request.js';
import { publicError } from '../request/public-error.js';
import { SealedValue } from '../request/sealed.js';
import type { AnswerReceiver, FastQuestions, RoutedQuestion } from './routed-question.js';

/**
 * Runs queries on the fast path, one at a time. The log and the database are called in parallel, and nothing is sent
 * before the decision is recorded. A long answer continues on the governed engine under the same decision.
 */
export class FastQuestion implements ShortAnswer {
  readonly #parts: AnswerParts;
  readonly #receiver: AnswerReceiver;
  readonly #shared: FastQuestions;
  readonly #request: PermittedRequest;
  #run = new ShortRun(this);
  #question: RoutedQuestion | null = null;
  #rows: Uint8Array | null = null;
  #count = 0;
  /** The standby that answers; null for the primary. */
  #source: StandbySource | null = null;
  /** Error that ended or stopped the query, sent once the decision is recorded; null if there is none. */
  #failure: { readonly error: unknown; readonly cancelled: boolean } | null = null;
  /** Aborts the long answer that the governed engine is producing; null if there is none. */
  #streaming: AbortController | null = null;
  #deadline = 0;
  /** Resolves the promise of the code that waits until the decision is recorded. */
  #wake: (() => void) | null = null;

  constructor(parts: AnswerParts, receiver: AnswerReceiver, shared: FastQuestions) {
    this.#parts = parts;
    this.#receiver = receiver;
    this.#shared = shared;
    this.#request = new PermittedRequest(SealedValue.open(parts.controls), () => this.#onRecorded());
  }

  /** Starts a query. Returns false, without running or counting it, if it must take the full path. */
  begin(question: RoutedQuestion): boolean {
    const { route, literals, parameters, resultFormats } = question;
    if (parameters.length !== route.plan.clientOids.length) return false;
    const slots = route.slotsWith(literals);
    const values = slots === null ? null : route.valuesOf(slots, parameters);
    if (values === null || !route.statement.isReady(question.standby)) return false;
    const { caller, requestId, bytes, start, end } = question;
    if (!this.#request.begin(route.permit, caller.identity, requestId, bytes, start, end)) return false;
    this.#question = question;
    this.#rows = null;
    this.#failure = null;
    this.#deadline = performance.now() + question.timeout.ms;
    this.#shared.sweep.add(this);
    this.#shared.started += 1;
    this.#source = route.statement.begin(this.#run, values, resultFormats);
    this.#parts.shadow.running?.onFastPath(question);
    return true;
  }

  get isRunning(): boolean {
    return this.#question !== null;
  }

  get objectsRead(): readonly string[] | null {
    return this.#question?.route.plan.objects ?? null;
  }

  /** Called when the client cancels or disconnects. */
  cancel(): void {
    this.#stop(queryError('cancelled', {}), true);
  }

  stopIfLate(now: number): void {
    if (this.#question === null || now < this.#deadline) return;
    const { ms, isOfSession } = this.#question.timeout;
    this.#stop(queryError('timedOut', { seconds: isOfSession ? null : ms / 1_000 }), isOfSession);
  }

  onAnswer(rows: Uint8Array, count: number): void {
    this.#rows = rows;
    this.#count = count;
    this.#deliver();
  }

  onFailure(error: unknown): void {
    this.#failure = { error, cancelled: false };
    this.#deliver();
  }

  onUnanswered(): void {
    const question = this.#question;
    if (question === null) return;
    this.#streaming = new AbortController();
    void this.#continueStreaming(question, this.#streaming.signal);
  }

  /** Stops the query with `error`. `cancelled` is true if the client or its session's timeout stopped it. */
  #stop(error: QueryError, cancelled: boolean): void {
    if (this.#question === null || this.#failure !== null) return;
    if (this.#streaming !== null) {
      this.#failure = { error, cancelled };
      this.#streaming.abort(error);
      return;
    }
    if (this.#rows !== null) return; // already answered; only waits for the log
    this.#abandonRun();
    this.#failure = { error, cancelled };
    this.#deliver();
  }

  #abandonRun(): void {
    this.#run.abandon();
    this.#run = new ShortRun(this);
  }

  #onRecorded(): void {
    this.#wake?.();
    this.#deliver();
  }

  /** Sends the result or error if the decision is recorded. If recording it failed, sends that failure instead. */
  #deliver(): void {
    const question = this.#question;
    const { recorded, requestId } = this.#request;
    if (question === null || this.#streaming !== null || recorded === 'waiting') return;
    const { route, caller } = question;
    if (this.#rows !== null && !this.#parts.runningQueries.mayAnswer(caller, route.plan, this.#parts.model()))
      this.#failure ??= { error: queryError('rightsChanged', {}), cancelled: false };
    if (recorded !== 'recorded') {
      if (this.#rows === null && this.#failure === null) this.#abandonRun();
      this.#reset();
      this.#receiver.onFailure(route.plan, publicError(this.#parts, requestId, recorded), requestId, '');
    } else if (this.#failure !== null) {
      const { error, cancelled } = this.#failure;
      this.#fail(question, error, cancelled);
    } else if (this.#rows !== null) {
      const rows = this.#rows;
      this.#reset();
      this.#request.recordAnswer(this.#count, rows.length, this.#source);
      this.#receiver.onAnswer(route.plan, rows, this.#count, standbyFreshness(this.#source));
    }
  }

  #fail(question: RoutedQuestion, error: unknown, cancelled: boolean): void {
    const { requestId } = this.#request;
    const { reported, text } = this.#publicErrorOf(question, error);
    this.#reset();
    this.#request.recordFailure({
      outcome: cancelled ? 'cancelled' : 'error',
      rows: 0,
      error: reported,
      standby: this.#source,
    });
    this.#receiver.onFailure(question.route.plan, reported, requestId, text);
  }

  /** Returns the error for the client and the text that the error's position refers to. */
  #publicErrorOf({ route, literals, bytes, start, end }: RoutedQuestion, error: unknown) {
    const text = error instanceof ValueError ? Buffer.from(bytes.subarray(start, end)).toString('utf8') : '';
    const positioned = text === '' ? error : route.withPosition(error, text, literals);
    return { reported: publicError(this.#parts, this.#request.requestId, positioned), text };
  }

  #reset(): void {
    this.#question = null;
    this.#rows = null;
    this.#failure = null;
    this.#streaming = null;
    this.#shared.sweep.delete(this);
  }

  async #continueStreaming(question: RoutedQuestion, signal: AbortSignal): Promise<void> {
    const { route, caller, literals, parameters, resultFormats, standby } = question;
    const { requestId } = this.#request;
    const sink = this.#receiver.openStream(route.plan);
    const countedSink = new CountedSink(sink);
    const recorded = this.#untilRecorded();
    let uses: QueryUses | null = null;
    try {
      const plan = route.planWith(literals);
      if (plan === null) throw new InternalError('a question of a route has another plan');
      const delivery = {
        parameters,
        resultFormats,
        signal,
        maxRows: 0,
        whole: this.#receiver.whole,
        standby,
      };
      uses = { usage: new ModelUsage(), standby: standbyUseFor(this.#parts, caller, plan, delivery) };
      const answer = await run(this.#parts, caller, plan, delivery, recorded, () => countedSink, uses);
      const { rows, truncated } = answer;
      await recorded;
      if (truncated) requireWhole(delivery, rows);
      this.#reset();
      const outcome = truncated ? 'truncated' : 'ok';
      this.#request.recordOutcome({ outcome, rows, error: null, standby: uses.standby.source });
      sink.onFinished(rows, truncated, requestId, answer.freshness);
    } catch (error) {
      // A failure to record the decision takes precedence.
      const cause = await recorded.then(
        () => error,
        (unrecorded: unknown) => unrecorded,
      );
      const { reported, text } = this.#publicErrorOf(question, cause);
      const cancelled = this.#failure?.cancelled === true;
      this.#reset();
      this.#request.recordOutcome({
        outcome: cancelled ? 'cancelled' : 'error',
        rows: countedSink.rowsSent(),
        error: reported,
        standby: uses?.standby.source ?? null,
      });
      sink.onFailure(reported, requestId, text);
    }
  }

  async #untilRecorded(): Promise<void> {
    while (this.#request.recorded === 'waiting') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#wake = null;
    if (this.#request.recorded !== 'recorded') throw this.#request.recorded;
  }
}
