import type { GovernedPlan, QueryError } from 'osl-compiler';
import type { Bind, FastAnswer, FastLane, WireStatement } from '../../../wire/index.js';
import type { AnswerReceiver, RunValues, SessionQuestions, TimeLimit } from '../../ask/index.js';
import type { StandbyReads } from '../../engine/index.js';
import { audible, columnsOf, DataStatement, planNotices } from './data-statement.js';
import type { SessionParts } from './session-parts.js';
import { rowSink } from './session-requests.js';

/** Shorter session timeouts need a timer per query, which the fast lane does not have. */
const LEAST_TIMEOUT_MS = 1_000;

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const SEMICOLON = 0x3b;

/** Fast lane of one session: recognizes messages with queries of a known shape and writes their answers. */
export class PgFastLane implements FastLane {
  readonly #session: SessionParts;
  readonly #questions: SessionQuestions;
  /** Timeout according to the settings of `version`; null if these settings rule out the fast lane. */
  #settings: { readonly version: object; readonly timeout: TimeLimit | null };

  constructor(session: SessionParts, answer: FastAnswer) {
    this.#session = session;
    this.#questions = session.questions.ofSession(session.caller, receiverOf(session, answer));
    this.#settings = this.#settingsNow();
  }

  query(bytes: Buffer, start: number, end: number): boolean {
    const timeout = this.#timeout();
    if (timeout === null) return false;
    const last = statementEnd(bytes, start, end);
    if (bytes[last - 1] === SEMICOLON) return false; // the parser handles several semicolons
    return this.#begun(this.#questions.begin(bytes, start, last, NONE, noValues, timeout, this.#standby));
  }

  execute(statement: WireStatement, bind: Bind): boolean {
    const timeout = statement instanceof DataStatement ? this.#timeout() : null;
    if (timeout === null || !(statement instanceof DataStatement)) return false;
    return this.#begun(
      this.#questions.beginPrepared(statement.question, valuesIn(bind), timeout, this.#standby),
    );
  }

  parse(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    bindTo: (described: Pick<WireStatement, 'parameterTypes' | 'columns'>) => Bind,
  ): boolean {
    const timeout = this.#timeout();
    if (timeout === null) return false;
    const valuesOf = ({ clientOids, outputs }: GovernedPlan): RunValues =>
      valuesIn(bindTo({ parameterTypes: clientOids, columns: columnsOf(outputs) }));
    return this.#begun(
      this.#questions.begin(bytes, start, end, parameterTypes, valuesOf, timeout, this.#standby),
    );
  }

  get #standby(): StandbyReads | null {
    return this.#session.settings.standbyReads();
  }

  get isAsking(): boolean {
    return this.#questions.isAsking;
  }

  get objectsRead(): readonly string[] | null {
    return this.#questions.reads;
  }

  cancel(): void {
    this.#questions.cancel();
  }

  #begun(begun: boolean): boolean {
    if (begun) {
      this.#session.settings.beginReceipt();
    }
    return begun;
  }

  /** Timeout for a query that starts now; null if the session's state or settings rule out the fast lane. */
  #timeout(): TimeLimit | null {
    const { state, records, caller, settings } = this.#session;
    if (state.inBlock || records.pending.isHeld || caller.expiry() !== null) return null;
    if (settings.version !== this.#settings.version) this.#settings = this.#settingsNow();
    return this.#settings.timeout;
  }

  /** Only sessions with default output settings use the fast lane. */
  #settingsNow(): { readonly version: object; readonly timeout: TimeLimit | null } {
    const { settings, service } = this.#session;
    const own = settings.milliseconds('statement_timeout');
    const usual =
      settings.output().length === 0 && !settings.wantsReceipts && (own === 0 || own >= LEAST_TIMEOUT_MS);
    const most = service.caps.timeoutMs;
    const timeout = own > 0 && own < most ? { ms: own, own: true } : { ms: most, own: false };
    return { version: settings.version, timeout: usual ? timeout : null };
  }
}

function receiverOf({ settings, records }: SessionParts, answer: FastAnswer): AnswerReceiver {
  const noticesOf = (plan: GovernedPlan) => audible(settings, planNotices(plan));
  const toWireError = (error: QueryError, requestId: string, text: string) =>
    records.toWireError(error, requestId, text);
  return {
    whole: true, // an incomplete answer is an error: the protocol cannot express it
    answered: (plan, rows, count, freshness) => {
      settings.setFreshness(freshness);
      answer.answered(columnsOf(plan.outputs), rows, `SELECT ${count}`, noticesOf(plan));
    },
    streaming: (plan) => {
      const stream = answer.streaming(columnsOf(plan.outputs));
      return {
        ...rowSink(stream),
        finished: (count, _truncated, _requestId, freshness) => {
          settings.setFreshness(freshness);
          stream.finished(`SELECT ${count}`, noticesOf(plan));
        },
        failed: (error, requestId, text) => stream.failed(toWireError(error, requestId, text)),
      };
    },
    failed: ({ outputs }, error, requestId, text) =>
      answer.failed(columnsOf(outputs), toWireError(error, requestId, text)),
  };
}

const NONE: readonly never[] = Object.freeze([]);
const NO_VALUES: RunValues = Object.freeze({ parameters: NONE, resultFormats: NONE });

function noValues(): RunValues {
  return NO_VALUES;
}

function valuesIn({ parameterFormats, parameters, resultFormats }: Bind): RunValues {
  return {
    parameters: parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? 0, bytes })),
    resultFormats,
  };
}

/** Returns the end of a Query's statement, without trailing whitespace and one semicolon, as in `splitQuery`. */
function statementEnd(bytes: Buffer, start: number, end: number): number {
  let last = end;
  while (last > start && SPACES.has(bytes[last - 1] ?? 0)) last--;
  return last > start && bytes[last - 1] === SEMICOLON ? last - 1 : last;
}
