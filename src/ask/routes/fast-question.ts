import { type GovernedPlan, InternalError, type QueryError, queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import { type BoundValue, type RowSink, type ShortAnswer, ShortRun, ValueError } from '../../engine/index.js';
import { CountedSink, run } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import { requireWhole } from '../data/question.js';
import { PermittedRequest } from '../request/permitted-request.js';
import { SealedValue } from '../request/sealed.js';
import { publicError } from '../request/told.js';
import type { Literals, Route } from './route.js';

/** Question of a known shape, with the route that it takes. */
interface RoutedQuestion extends RunValues {
  readonly route: Route;
  readonly identity: Identity;
  /** Null: it gets one. */
  readonly requestId: string | null;
  /** Its statement is the UTF-8 of these. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly literals: Literals;
  readonly timeout: TimeLimit;
}

/** Values of one run of a statement. */
export interface RunValues {
  /** Values of `$1 …`. */
  readonly parameters: readonly BoundValue[];
  readonly resultFormats: readonly (0 | 1)[];
}

/** Time after which a question is stopped. */
export interface TimeLimit {
  readonly ms: number;
  /** True if it is the limit of its session, not the service's. */
  readonly own: boolean;
}

/** Receiver of answers: called once when a question has ended, never before the call that began it has returned. */
export interface AnswerReceiver {
  /** As of `Delivery`. */
  readonly whole: boolean;
  /** Takes every row. The decision is on record. */
  answered(plan: GovernedPlan, rows: Uint8Array, count: number): void;
  /** Gives a sink for an answer that is long after all. */
  streaming(plan: GovernedPlan): LongAnswerSink;
  /** `text` is what the place of the error refers to; empty if it has none. */
  failed(plan: GovernedPlan, error: QueryError, requestId: string, text: string): void;
}

/** Sink of a long answer; ended once. */
interface LongAnswerSink extends RowSink {
  /** `truncated`: a cap on the answer held rows back. */
  finished(count: number, truncated: boolean, requestId: string): void;
  failed(error: QueryError, requestId: string, text: string): void;
}

/** Interval in ms between looks at who has taken too long: so much longer a question may take than it is allowed. */
const EVERY_MS = 100;

/** Clock for all questions that are under way, in the place of a timer for each. */
export class Sweep {
  readonly #open = new Set<FastQuestion>();
  #timer: NodeJS.Timeout | null = null;

  add(one: FastQuestion): void {
    this.#open.add(one);
    this.#timer ??= setInterval(() => this.#look(), EVERY_MS).unref();
  }

  delete(one: FastQuestion): void {
    this.#open.delete(one);
  }

  #look(): void {
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const now = performance.now();
    for (const one of [...this.#open]) one.stopIfLate(now);
  }
}

/** State shared by all questions of one surface. */
export interface FastQuestions {
  readonly sweep: Sweep;
  /** Number of questions answered on the fast path. */
  taken: number;
}

/**
 * Questions of routes, one after the other, each begun in the turn in which it came: the log and the database are asked
 * at once, and nothing is told before the decision is on record. What turns out not to be short goes on at the governed
 * door, under the same decision.
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
  /** Failure of the question; sent once the decision is on record, or could not be recorded. */
  #failure: { readonly error: unknown; readonly cancelled: boolean } | null = null;
  /** Set while the door runs what was not short. */
  #going: AbortController | null = null;
  #stopAt = 0;
  /** Wakes what waits for the decision. */
  #wake: (() => void) | null = null;

  constructor(parts: AnswerParts, receiver: AnswerReceiver, all: FastQuestions) {
    this.#parts = parts;
    this.#receiver = receiver;
    this.#all = all;
    this.#request = new PermittedRequest(SealedValue.open(parts.means), () => this.#onRecorded());
  }

  /** False, without side effects, if the question must take the full path after all. */
  begin(question: RoutedQuestion): boolean {
    const { route, literals, parameters, resultFormats } = question;
    if (parameters.length !== route.plan.clientOids.length) return false;
    const slots = route.slotsWith(literals);
    const values = slots === null ? null : route.valuesOf(slots, parameters);
    if (values === null || !route.statement.isReady()) return false;
    const { identity, requestId, bytes, start, end } = question;
    if (!this.#request.begin(route.permit, identity, requestId, bytes, start, end)) return false;
    this.#asked = question;
    this.#rows = null;
    this.#failure = null;
    this.#stopAt = performance.now() + question.timeout.ms;
    this.#all.sweep.add(this);
    this.#all.taken += 1;
    route.statement.begin(this.#run, values, resultFormats);
    return true;
  }

  get isAsking(): boolean {
    return this.#asked !== null;
  }

  /** Objects of the question that is running; null if none is. */
  get reads(): readonly string[] | null {
    return this.#asked?.route.plan.objects ?? null;
  }

  /** The client cancelled, or has gone. */
  cancel(): void {
    this.#stop(queryError('cancelled', {}), true);
  }

  /** Stops what has taken longer than it may. */
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

  /** `cancelled`: by the client or its session. */
  #stop(error: QueryError, cancelled: boolean): void {
    if (this.#asked === null || this.#failure !== null) return;
    if (this.#going !== null) {
      this.#failure = { error, cancelled };
      this.#going.abort(error);
      return;
    }
    if (this.#rows !== null) return; // it is answered, and waits for the log alone
    this.#letGo();
    this.#failure = { error, cancelled };
    this.#tell();
  }

  /** Discards the answer when it comes. */
  #letGo(): void {
    this.#run.abandon();
    this.#run = new ShortRun(this);
  }

  #onRecorded(): void {
    this.#wake?.();
    this.#tell();
  }

  /** Sends the result or the failure, once the decision is on record or could not be recorded. */
  #tell(): void {
    const asked = this.#asked;
    const { recorded, requestId } = this.#request;
    if (asked === null || this.#going !== null || recorded === 'waiting') return;
    const { route } = asked;
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
      this.#request.answered(this.#count, rows.length);
      this.#receiver.answered(route.plan, rows, this.#count);
    }
  }

  #fail(asked: RoutedQuestion, error: unknown, cancelled: boolean): void {
    const { requestId } = this.#request;
    const { told, text } = this.#placed(asked, error);
    this.#rest();
    this.#request.ended(cancelled ? 'cancelled' : 'error', 0, told);
    this.#receiver.failed(asked.route.plan, told, requestId, text);
  }

  /** Error for the client, and the text that its position refers to. */
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

  /** Asks the governed engine, under the same decision. */
  async #goOn(asked: RoutedQuestion, signal: AbortSignal): Promise<void> {
    const { route, literals, parameters, resultFormats } = asked;
    const { requestId } = this.#request;
    const sink = this.#receiver.streaming(route.plan);
    const counted = new CountedSink(sink);
    const recorded = this.#untilRecorded();
    try {
      const plan = route.planWith(literals);
      if (plan === null) throw new InternalError('a question of a route has another plan');
      const delivery = { parameters, resultFormats, signal, maxRows: 0, whole: this.#receiver.whole };
      const { caller } = route.permit;
      const { rows, truncated } = await run(this.#parts, caller, plan, delivery, recorded, () => counted);
      await recorded;
      if (truncated) requireWhole(delivery, rows);
      this.#rest();
      this.#request.ended(truncated ? 'truncated' : 'ok', rows, null);
      sink.finished(rows, truncated, requestId);
    } catch (error) {
      // If the decision could not be recorded, that is the reason, whatever else went wrong.
      const cause = await recorded.then(
        () => error,
        (unrecorded: unknown) => unrecorded,
      );
      const { told, text } = this.#placed(asked, cause);
      const cancelled = this.#failure?.cancelled === true;
      this.#rest();
      this.#request.ended(cancelled ? 'cancelled' : 'error', counted.left(), told);
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
