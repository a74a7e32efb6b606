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
  readonly #all: FastQuestions;
  readonly #request: PermittedRequest;
  #run = new ShortRun(this);
  #asked: RoutedQuestion | null = null;
  #rows: Uint8Array | null = null;
  #count = 0;
  /** The standby that answers; null for the primary. */
  #source: StandbySource | null = null;
  /** Error that ended or stopped the query, sent once the decision is recorded; null if there is none. */
  #failure: { readonly error: unknown; readonly cancelled: boolean } | null = null;
  /** Aborts the long answer that the governed engine is producing; null if there is none. */
  #going: AbortController | null = null;
  #stopAt = 0;
  /** Resolves the promise of the code that waits until the decision is recorded. */
  #wake: (() => void) | null = null;

  constructor(parts: AnswerParts, receiver: AnswerReceiver, all: FastQuestions) {
    this.#parts = parts;
    this.#receiver = receiver;
    this.#all = all;
    this.#request = new PermittedRequest(SealedValue.open(parts.means), () => this.#onRecorded());
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
    this.#asked = question;
    this.#rows = null;
    this.#failure = null;
    this.#stopAt = performance.now() + question.timeout.ms;
    this.#all.sweep.add(this);
    this.#all.taken += 1;
    this.#source = route.statement.begin(this.#run, values, resultFormats);
    this.#parts.shadow.running?.routed(question);
    return true;
  }

  get isAsking(): boolean {
    return this.#asked !== null;
  }

  get reads(): readonly string[] | null {
    return this.#asked?.route.plan.objects ?? null;
  }

  /** Called when the client cancels or disconnects. */
  cancel(): void {
    this.#stop(queryError('cancelled', {}), true);
  }

  stopIfLate(now: number): void {
    if (this.#asked === null || now < this.#stopAt) return;
    const { ms, own } = this.#asked.timeout;
    this.#stop(queryError('timedOut', { seconds: own ? null : ms / 1_000 }), own);
  }

  answered(rows: Uint8Array, count: number): void {
    this.#rows = rows;
    this.#count = count;
    this.#tell();
  }

  failed(error: unknown): void {
    this.#failure = { error, cancelled: false };
    this.#tell();
  }

  unanswered(): void {
    const asked = this.#asked;
    if (asked === null) return;
    this.#going = new AbortController();
    void this.#goOn(asked, this.#going.signal);
  }

  /** Stops the query with `error`. `cancelled` is true if the client or its session's timeout stopped it. */
  #stop(error: QueryError, cancelled: boolean): void {
    if (this.#asked === null || this.#failure !== null) return;
    if (this.#going !== null) {
      this.#failure = { error, cancelled };
      this.#going.abort(error);
      return;
    }
    if (this.#rows !== null) return; // already answered; only waits for the log
    this.#letGo();
    this.#failure = { error, cancelled };
    this.#tell();
  }

  #letGo(): void {
    this.#run.abandon();
    this.#run = new ShortRun(this);
  }

  #onRecorded(): void {
    this.#wake?.();
    this.#tell();
  }

  /** Sends the result or error if the decision is recorded. If recording it failed, sends that failure instead. */
  #tell(): void {
    const asked = this.#asked;
    const { recorded, requestId } = this.#request;
    if (asked === null || this.#going !== null || recorded === 'waiting') return;
    const { route, caller } = asked;
    if (this.#rows !== null && !this.#parts.underway.mayAnswer(caller, route.plan, this.#parts.model()))
      this.#failure ??= { error: queryError('rightsChanged', {}), cancelled: false };
    if (recorded !== 'recorded') {
      if (this.#rows === null && this.#failure === null) this.#letGo();
      this.#rest();
      this.#receiver.failed(route.plan, publicError(this.#parts, requestId, recorded), requestId, '');
    } else if (this.#failure !== null) {
      const { error, cancelled } = this.#failure;
      this.#fail(asked, error, cancelled);
    } else if (this.#rows !== null) {
      const rows = this.#rows;
      this.#rest();
      this.#request.answered(this.#count, rows.length, this.#source);
      this.#receiver.answered(route.plan, rows, this.#count, standbyFreshness(this.#source));
    }
  }

  #fail(asked: RoutedQuestion, error: unknown, cancelled: boolean): void {
    const { requestId } = this.#request;
    const { told, text } = this.#placed(asked, error);
    this.#rest();
    this.#request.failed({
      outcome: cancelled ? 'cancelled' : 'error',
      rows: 0,
      error: told,
      standby: this.#source,
    });
    this.#receiver.failed(asked.route.plan, told, requestId, text);
  }

  /** Returns the error for the client and the text that the error's position refers to. */
  #placed({ route, literals, bytes, start, end }: RoutedQuestion, error: unknown) {
    const text = error instanceof ValueError ? Buffer.from(bytes.subarray(start, end)).toString('utf8') : '';
    const placed = text === '' ? error : route.placed(error, text, literals);
    return { told: publicError(this.#parts, this.#request.requestId, placed), text };
  }

  #rest(): void {
    this.#asked = null;
    this.#rows = null;
    this.#failure = null;
    this.#going = null;
    this.#all.sweep.delete(this);
  }

  async #goOn(asked: RoutedQuestion, signal: AbortSignal): Promise<void> {
    const { route, caller, literals, parameters, resultFormats, standby } = asked;
    const { requestId } = this.#request;
    const sink = this.#receiver.streaming(route.plan);
    const counted = new CountedSink(sink);
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
      uses = { spending: new ModelUsage(), standby: standbyUseFor(this.#parts, caller, plan, delivery) };
      const answer = await run(this.#parts, caller, plan, delivery, recorded, () => counted, uses);
      const { rows, truncated } = answer;
      await recorded;
      if (truncated) requireWhole(delivery, rows);
      this.#rest();
      const outcome = truncated ? 'truncated' : 'ok';
      this.#request.ended({ outcome, rows, error: null, standby: uses.standby.source });
      sink.finished(rows, truncated, requestId, answer.freshness);
    } catch (error) {
      // A failure to record the decision takes precedence.
      const cause = await recorded.then(
        () => error,
        (unrecorded: unknown) => unrecorded,
      );
      const { told, text } = this.#placed(asked, cause);
      const cancelled = this.#failure?.cancelled === true;
      this.#rest();
      this.#request.ended({
        outcome: cancelled ? 'cancelled' : 'error',
        rows: counted.left(),
        error: told,
        standby: uses?.standby.source ?? null,
      });
      sink.failed(told, requestId, text);
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
