import type { GovernedPlan, QueryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import {
  type Awaitable,
  type Bind,
  type FastAnswer,
  type FastLane,
  fatal,
  type IdleLimit,
  type NamedPortal,
  type SeriesEnd,
  type SessionControl,
  type SessionHandler,
  type SimpleStatement,
  type WireError,
  type WireStatement,
} from '../../../wire/index.js';
import type {
  AnswerReceiver,
  QuestionRouter,
  RunValues,
  SessionQuestions,
  SubscriptionParts,
  TimeLimit,
  TokenlessSession,
} from '../../ask/index.js';
import { MemoryShare, type StandbyReads } from '../../engine/index.js';
import type { CatalogProvider, SessionActivity } from '../catalog/index.js';
import { Channels } from './channels.js';
import { Cursors } from './cursor.js';
import { columnsOf, DataStatement, planNotices, visibleNotices } from './data-statement.js';
import { prepareStatement, splitQuery } from './prepare-statement.js';
import {
  type MonitoredSession,
  type OwnSessions,
  openSession,
  ownerOf,
  type SessionRegister,
} from './session-register.js';
import { rowSink, SessionCaller, SessionRecords, SuspendedRowRights } from './session-requests.js';
import {
  ActivityRecorder,
  Isolation,
  RunningStatement,
  type SessionParts,
  SessionState,
} from './session-state.js';
import { APPROVAL_REASON, PURPOSE, TASK } from './setting-list.js';
import type { SessionSettings } from './settings.js';

/**
 * Caller and address of a session. `tokenless` is set for a login by service account or certificate, and null for a
 * token.
 */
export interface SessionOwner {
  readonly identity: Identity;
  readonly tokenless: TokenlessSession | null;
  readonly address: string;
  readonly release: () => void;
  /** Sessions of all callers, for listing and signalling the caller's own. */
  readonly sessions: OwnSessions;
}

export class PgSession implements SessionHandler {
  readonly #parts: SessionParts;
  readonly #releaseCount: () => void;
  #fast: PgFastLane | null = null;
  #unregister = (): void => undefined;

  constructor(
    service: SubscriptionParts,
    { identity, tokenless, address, release, sessions }: SessionOwner,
    settings: SessionSettings,
    control: SessionControl,
    catalogs: CatalogProvider | null,
    questions: QuestionRouter,
  ) {
    const clientSettings = () => ({
      purpose: settings.show(PURPOSE).value || null,
      task: settings.show(TASK).value || null,
      approvalReason: settings.show(APPROVAL_REASON).value || null,
    });
    const caller = new SessionCaller(service, identity, tokenless, address, clientSettings);
    const records = new SessionRecords(service, () => caller.newCall());
    const rights = new SuspendedRowRights(caller, records);
    this.#releaseCount = release;
    this.#parts = {
      service,
      caller,
      rights,
      records,
      settings,
      state: new SessionState(settings, new Isolation(service, settings), control),
      channels: new Channels(service, caller, control),
      cursors: new Cursors(control, rights, records, () => new MemoryShare(service.memory, identity.subject)),
      statements: control,
      activity: new ActivityRecorder(),
      sameCaller: {
        all: () => sessions.sessionsOf(this.owner()),
        signal: (signal) => sessions.signal(this.owner(), signal),
      },
      running: new RunningStatement(() => settings.milliseconds('statement_timeout')),
      catalogs,
      questions,
      processId: () => control.processId,
    };
  }

  /** Registers the session, so that its caller can list, cancel and terminate it until it closes. */
  register(register: SessionRegister, control: Pick<SessionControl, 'cancel' | 'end'>): void {
    const handle = openSession(this, control);
    this.#unregister = register.add(handle);
    // The token may have been revoked since login.
    handle.endIfInvalid();
  }

  owner(): string {
    const { caller } = this.#parts;
    return ownerOf(caller.identity, caller.user);
  }

  pid(): number {
    return this.#parts.processId();
  }

  ownerView(): SessionActivity | null {
    const { activity, settings, state } = this.#parts;
    const pid = this.pid();
    if (pid === 0) return null;
    const { value: application_name } = settings.show('application_name');
    return { pid, application_name, ...activity.snapshot(state.block.status, this.#fast?.isAsking === true) };
  }

  operatorView(): MonitoredSession | null {
    const view = this.ownerView();
    const { caller } = this.#parts;
    if (view === null) return null;
    const { chain, tokenId: token_id } = caller.identity;
    return { ...view, user: caller.user, chain, token_id, objects: this.#fast?.objectsRead ?? null };
  }

  get parameters(): ReadonlyMap<string, string> {
    return this.#parts.settings.reported();
  }

  endSeries(): Awaitable<SeriesEnd> {
    const { records, settings, state, activity } = this.#parts;
    state.inMultiStatement = false;
    activity.finishSeries(state.inBlock);
    const recording = records.pending.record();
    const seriesEnd = (): SeriesEnd => ({
      status: state.block.status,
      changes: settings.takeChanges(state.inBlock),
      idleLimit: idleLimit(this.#parts),
    });
    return recording === undefined ? seriesEnd() : recording.then(seriesEnd);
  }

  split(text: string): Awaitable<readonly SimpleStatement[]> {
    const { state, activity } = this.#parts;
    activity.beginStatement(text);
    const noteCount = (statements: readonly SimpleStatement[]) => {
      state.inMultiStatement = statements.length > 1;
      return statements;
    };
    const statements = splitQuery(this.#parts, text);
    return statements instanceof Promise ? statements.then(noteCount) : noteCount(statements);
  }

  prepare(text: string, parameterTypes: readonly number[]): Promise<WireStatement | null> {
    this.#parts.activity.beginStatement(text);
    const recording = this.#parts.records.pending.record();
    const prepare = () => prepareStatement(this.#parts, text, parameterTypes);
    return recording === undefined ? prepare() : recording.then(prepare);
  }

  cursor(name: string): NamedPortal | undefined {
    return this.#parts.cursors.named(name, this.#parts);
  }

  noteFailure(failure: WireError): void {
    this.#parts.state.block.fail();
    this.#parts.records.recordFailure(failure);
  }

  cancel(): void {
    this.#parts.running.cancel();
  }

  expiry(): WireError | null {
    return this.#parts.caller.expiry();
  }

  fastLane(answer: FastAnswer): FastLane {
    this.#fast = new PgFastLane(this.#parts, answer);
    return this.#fast;
  }

  close(): Promise<void> {
    this.#unregister();
    this.#releaseCount();
    return endSession(this.#parts);
  }
}

const IDLE = ['idle_session_timeout', '57P05', 'idle-session'] as const;
const IDLE_IN_BLOCK = ['idle_in_transaction_session_timeout', '25P03', 'idle-in-transaction'] as const;

function idleLimit({ settings, state }: SessionParts): IdleLimit | null {
  const [setting, sqlstate, condition] = state.inBlock ? IDLE_IN_BLOCK : IDLE;
  const ms = settings.milliseconds(setting);
  if (ms === 0) return null;
  return { ms, reason: fatal(sqlstate, `terminating connection due to ${condition} timeout`) };
}

/**
 * Ends the session after Terminate, a lost connection or a server stop: cancels running work, closes cursors and
 * writes outstanding records.
 */
async function endSession(parts: SessionParts): Promise<void> {
  const { running, state, channels, cursors, records } = parts;
  running.cancel();
  await channels.close();
  state.isolation.end();
  await cursors.closeAll();
  await records.pending.record();
}

/**
 * Minimum `statement_timeout` in ms for the fast lane: a shorter one needs a timer per query, which the fast lane does
 * not have.
 */
const MIN_TIMEOUT_MS = 1_000;

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
    this.#settings = this.#readSettings();
  }

  query(bytes: Buffer, start: number, end: number): boolean {
    const timeout = this.#timeout();
    if (timeout === null) return false;
    const textEnd = statementEnd(bytes, start, end);
    if (bytes[textEnd - 1] === SEMICOLON) return false; // the parser handles several semicolons
    return this.#noteBegin(
      this.#questions.begin(bytes, start, textEnd, NO_ITEMS, noValues, timeout, this.#standby),
    );
  }

  execute(statement: WireStatement, bind: Bind): boolean {
    const timeout = statement instanceof DataStatement ? this.#timeout() : null;
    if (timeout === null || !(statement instanceof DataStatement)) return false;
    return this.#noteBegin(
      this.#questions.beginPrepared(statement.question, valuesIn(bind), timeout, this.#standby),
    );
  }

  parse(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    bindTo: (statement: Pick<WireStatement, 'parameterTypes' | 'columns'>) => Bind,
  ): boolean {
    const timeout = this.#timeout();
    if (timeout === null) return false;
    const valuesOf = ({ clientOids, outputs }: GovernedPlan): RunValues =>
      valuesIn(bindTo({ parameterTypes: clientOids, columns: columnsOf(outputs) }));
    return this.#noteBegin(
      this.#questions.begin(bytes, start, end, parameterTypes, valuesOf, timeout, this.#standby),
    );
  }

  get #standby(): StandbyReads | null {
    return this.#session.settings.standbyReads();
  }

  get isAsking(): boolean {
    return this.#questions.isRunning;
  }

  get objectsRead(): readonly string[] | null {
    return this.#questions.objectsRead;
  }

  cancel(): void {
    this.#questions.cancel();
  }

  #noteBegin(hasBegun: boolean): boolean {
    if (hasBegun) {
      this.#session.settings.beginReceipt();
    }
    return hasBegun;
  }

  /**
   * Returns the timeout for a query that starts now; null if the session's state or settings rule out the fast lane.
   */
  #timeout(): TimeLimit | null {
    const { state, records, caller, settings } = this.#session;
    if (state.inBlock || records.pending.isHeld || caller.expiry() !== null) return null;
    if (settings.version !== this.#settings.version) this.#settings = this.#readSettings();
    return this.#settings.timeout;
  }

  /**
   * Returns the timeout under the current settings. It is null, which rules out the fast lane, if output settings
   * differ from the defaults, receipts are on or `statement_timeout` is too short.
   */
  #readSettings(): { readonly version: object; readonly timeout: TimeLimit | null } {
    const { settings, service } = this.#session;
    const sessionTimeout = settings.milliseconds('statement_timeout');
    const isEligible =
      settings.output().length === 0 &&
      !settings.wantsReceipts &&
      (sessionTimeout === 0 || sessionTimeout >= MIN_TIMEOUT_MS);
    const serverTimeout = service.caps.timeoutMs;
    const timeout =
      sessionTimeout > 0 && sessionTimeout < serverTimeout
        ? { ms: sessionTimeout, isOfSession: true }
        : { ms: serverTimeout, isOfSession: false };
    return { version: settings.version, timeout: isEligible ? timeout : null };
  }
}

function receiverOf({ settings, records }: SessionParts, answer: FastAnswer): AnswerReceiver {
  const noticesOf = (plan: GovernedPlan) => visibleNotices(settings, planNotices(plan));
  const toWireError = (error: QueryError, requestId: string, text: string) =>
    records.toWireError(error, requestId, text);
  return {
    whole: true, // an incomplete answer is an error: the protocol cannot express it
    onAnswer: (plan, rows, count, freshness) => {
      settings.setFreshness(freshness);
      answer.answered(columnsOf(plan.outputs), rows, `SELECT ${count}`, noticesOf(plan));
    },
    openStream: (plan) => {
      const stream = answer.streaming(columnsOf(plan.outputs));
      return {
        ...rowSink(stream),
        onFinished: (count, _truncated, _requestId, freshness) => {
          settings.setFreshness(freshness);
          stream.finished(`SELECT ${count}`, noticesOf(plan));
        },
        onFailure: (error, requestId, text) => stream.failed(toWireError(error, requestId, text)),
      };
    },
    onFailure: ({ outputs }, error, requestId, text) =>
      answer.failed(columnsOf(outputs), toWireError(error, requestId, text)),
  };
}

const NO_ITEMS: readonly never[] = Object.freeze([]);
const NO_VALUES: RunValues = Object.freeze({ parameters: NO_ITEMS, resultFormats: NO_ITEMS });

function noValues(): RunValues {
  return NO_VALUES;
}

function valuesIn({ parameterFormats, parameters, resultFormats }: Bind): RunValues {
  return {
    parameters: parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? 0, bytes })),
    resultFormats,
  };
}

/**
 * Returns the end offset of the statement in a Query message, excluding trailing whitespace and at most one semicolon,
 * as in `splitQuery`.
 */
function statementEnd(bytes: Buffer, start: number, end: number): number {
  let textEnd = end;
  while (textEnd > start && SPACES.has(bytes[textEnd - 1] ?? 0)) textEnd--;
  return textEnd > start && bytes[textEnd - 1] === SEMICOLON ? textEnd - 1 : textEnd;
}
