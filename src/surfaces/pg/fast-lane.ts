import type { QueryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import type { Bind, FastAnswer, FastLane, WireStatement } from '../../../wire/index.js';
import type { Caller } from '../../ask/index.js';
import type { Origin } from '../../ask/request/call.js';
import { callerAgain, stands } from '../../ask/request/caller.js';
import {
  type FastAsker,
  FastQuestion,
  type Route,
  type RoutedQuestion,
  type TextRoutes,
} from '../../ask/routes/index.js';
import type { BoundValue } from '../../engine/index.js';
import { isDataStatement } from './data-statement.js';
import { audible } from './notices.js';
import type { SessionParts } from './session-parts.js';
import { columnsOf, planNotices } from './told-of-plan.js';

/** A shorter limit of the session's own needs a clock of its own. */
const LEAST_TIMEOUT_MS = 1_000;

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const SEMICOLON = 0x3b;

type Timeout = RoutedQuestion['timeout'];

/** Who asks, and what is served, as they were when they were last looked at; and the routes of that. */
interface Standing {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly routes: TextRoutes;
}

/** The fast lane of one session: which questions may take it, and how their answers are told. */
export class PgFastLane implements FastLane {
  readonly #session: SessionParts;
  readonly #answer: FastAnswer;
  /** Made with the first question that may go fast: most sessions of a pool rest. */
  #question: FastQuestion | null = null;
  #standing: Standing | null = null;
  /** What the settings of `version` allow a question; null where they call for the one way. */
  #settings: { readonly version: object; readonly timeout: Timeout | null };

  constructor(session: SessionParts, answer: FastAnswer) {
    this.#session = session;
    this.#answer = answer;
    this.#settings = this.#settingsNow();
  }

  query(bytes: Buffer, start: number, end: number): boolean {
    const standing = this.#mayAsk();
    if (standing === null) return false;
    const last = statementEnd(bytes, start, end);
    if (bytes[last - 1] === SEMICOLON) return false; // more than one is for the parser to take off
    return standing.routes.offer(bytes, start, last, NONE, (route, literals) =>
      this.#begin(standing, {
        route,
        literals,
        bytes,
        start,
        end: last,
        parameters: NONE,
        resultFormats: NONE,
      }),
    );
  }

  execute(statement: WireStatement, bind: Bind): boolean {
    if (!isDataStatement(statement)) return false;
    const { found, bytes } = statement.learned;
    const standing = found === null ? null : this.#mayAsk();
    if (found === null || standing === null || !found.route.isOf(standing.caller)) return false;
    const asked = { ...found, bytes, start: 0, end: bytes.length };
    const { resultFormats } = bind;
    return this.#begin(standing, { ...asked, parameters: parametersOf(bind), resultFormats });
  }

  parse(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    bindTo: (described: Pick<WireStatement, 'parameterTypes' | 'columns'>) => Bind,
  ): boolean {
    const standing = this.#mayAsk();
    if (standing === null) return false;
    return standing.routes.offer(bytes, start, end, parameterTypes, (route, literals) => {
      const { clientOids, outputs } = route.plan;
      const { resultFormats, ...bind } = bindTo({ parameterTypes: clientOids, columns: columnsOf(outputs) });
      const parameters = parametersOf(bind);
      return this.#begin(standing, { route, literals, bytes, start, end, parameters, resultFormats });
    });
  }

  /** Whether a question is on its way. */
  get isAsking(): boolean {
    return this.#question?.isAsking === true;
  }

  /** What the question reads that is on its way; null where none is. */
  get asks(): readonly string[] | null {
    return this.#question?.reads ?? null;
  }

  cancel(): void {
    this.#question?.cancel();
  }

  #begin({ caller }: Standing, asked: Omit<RoutedQuestion, 'identity' | 'requestId' | 'timeout'>): boolean {
    const { timeout } = this.#settings;
    if (timeout === null) return false;
    const { route, literals, bytes, start, end, parameters, resultFormats } = asked;
    const { identity } = caller;
    // Field by field: to spread an object costs as much as the rest of this.
    this.#session.settings.tellFreshness(null);
    this.#question ??= new FastQuestion(this.#session.service, this.#asker(), this.#session.routes);
    return this.#question.begin({
      route,
      literals,
      identity,
      requestId: null,
      bytes,
      start,
      end,
      parameters,
      resultFormats,
      timeout,
    });
  }

  /** Null where what stands now, of the session or of what is served, is for the one way to judge. */
  #mayAsk(): Standing | null {
    const { state, records, caller, settings, service } = this.#session;
    if (state.inBlock || records.unrun.isHeld || caller.expiry() !== null) return null;
    if (settings.version !== this.#settings.version) this.#settings = this.#settingsNow();
    if (this.#settings.timeout === null) return null;
    const { identity } = caller;
    const { manifest, snapshot } = service.model();
    const { origin } = caller;
    const known = this.#standing?.caller;
    if (
      known?.identity !== identity ||
      known.manifest !== manifest ||
      known.snapshot !== snapshot ||
      this.#standing?.origin !== origin ||
      !stands(known)
    )
      this.#standing = this.#standingOf(identity, origin);
    return this.#standing;
  }

  #standingOf(identity: Identity, origin: Origin): Standing | null {
    const { service, routes, caller: session } = this.#session;
    const caller = callerAgain(service, identity, session.newCall());
    return caller === null ? null : { caller, origin, routes: routes.of(caller) };
  }

  /** Answers must be written, and notices told, as for a session that has set nothing. */
  #settingsNow(): { readonly version: object; readonly timeout: Timeout | null } {
    const { settings, service } = this.#session;
    const own = settings.milliseconds('statement_timeout');
    const usual = settings.output().length === 0 && (own === 0 || own >= LEAST_TIMEOUT_MS);
    const most = service.caps.timeoutMs;
    const timeout = own > 0 && own < most ? { ms: own, own: true } : { ms: most, own: false };
    return { version: settings.version, timeout: usual ? timeout : null };
  }

  #asker(): FastAsker {
    const answer = this.#answer;
    const { settings } = this.#session;
    const noticesOf = ({ plan }: Route) => audible(settings, planNotices(plan));
    return {
      whole: true, // the protocol has no way to say that rows are missing
      answered: (route, rows, count) =>
        answer.answered(columnsOf(route.plan.outputs), rows, `SELECT ${count}`, noticesOf(route)),
      streaming: (route) => {
        const stream = answer.streaming(columnsOf(route.plan.outputs));
        return {
          write: (rows) => stream.write(rows),
          finished: (count) => stream.finished(`SELECT ${count}`, noticesOf(route)),
          failed: (error, requestId, text) => stream.failed(this.#said(error, requestId, text)),
        };
      },
      failed: (route, error, requestId, text) =>
        answer.failed(columnsOf(route.plan.outputs), this.#said(error, requestId, text)),
    };
  }

  /** As the protocol says it; it is on record. */
  #said(error: QueryError, requestId: string, text = ''): unknown {
    return this.#session.records.say(error, requestId, text);
  }
}

function parametersOf({ parameterFormats, parameters }: Omit<Bind, 'resultFormats'>): readonly BoundValue[] {
  return parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? 0, bytes }));
}

const NONE: readonly never[] = Object.freeze([]);

/** Where the statement of a Query's text ends, as `splitQuery` has it: without what is blank, and without one semicolon. */
function statementEnd(bytes: Buffer, start: number, end: number): number {
  let last = end;
  while (last > start && SPACES.has(bytes[last - 1] ?? 0)) last--;
  return last > start && bytes[last - 1] === SEMICOLON ? last - 1 : last;
}
