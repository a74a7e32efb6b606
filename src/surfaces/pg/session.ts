import type { Identity } from '../../../policy/index.js';
import {
  type Awaitable,
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
import type { AnswerParts, QuestionRouter, TokenlessSession } from '../../ask/index.js';
import { MemoryShare } from '../../engine/index.js';
import type { CatalogDoor, CatalogSession } from '../catalog/index.js';
import { ActivityRecorder, RunningStatement } from './activity.js';
import { Cursors } from './cursor.js';
import { PgFastLane } from './fast-lane.js';
import { Isolation } from './isolation.js';
import {
  type OwnSessions,
  openSession,
  ownerOf,
  type SessionRegister,
  type ToldSession,
} from './own-sessions.js';
import { prepareStatement, splitQuery } from './prepare-statement.js';
import { SessionCaller } from './session-caller.js';
import type { SessionParts } from './session-parts.js';
import { SessionRecords, WaitingRowRights } from './session-records.js';
import { SessionState } from './session-state.js';
import { PURPOSE } from './setting-list.js';
import type { SessionSettings } from './settings.js';

/** Whose session it is. `held`: who the policy knows without a token, null where one came. */
export interface SessionOwner {
  readonly identity: Identity;
  readonly held: TokenlessSession | null;
  /** Of its peer. */
  readonly address: string;
  /** Called when the session is over. */
  readonly ended: () => void;
  /** All open sessions, of which the caller sees its own. */
  readonly sessions: OwnSessions;
}

/** One authenticated session of the wire: what each of its messages asks for is done in the file that it names. */
export class PgSession implements SessionHandler {
  readonly #parts: SessionParts;
  readonly #ended: () => void;
  #fast: PgFastLane | null = null;
  #leave = (): void => undefined;

  constructor(
    service: AnswerParts,
    { identity, held, address, ended, sessions }: SessionOwner,
    settings: SessionSettings,
    control: SessionControl,
    catalogs: CatalogDoor | null,
    questions: QuestionRouter,
  ) {
    const purpose = (): string | null => settings.show(PURPOSE).value || null;
    const caller = new SessionCaller(service, identity, held, address, purpose);
    const records = new SessionRecords(service, () => caller.newCall());
    const rights = new WaitingRowRights(caller, records);
    this.#ended = ended;
    this.#parts = {
      service,
      caller,
      rights,
      records,
      settings,
      state: new SessionState(settings, new Isolation(service, settings), control),
      cursors: new Cursors(control, rights, records, () => new MemoryShare(service.memory, identity.subject)),
      statements: control,
      activity: new ActivityRecorder(),
      own: {
        all: () => sessions.of(this.owner()),
        signal: (signal) => sessions.signal(this.owner(), signal),
      },
      running: new RunningStatement(() => settings.milliseconds('statement_timeout')),
      catalogs,
      questions,
      processId: () => control.processId,
    };
  }

  /** Its own caller may see, cancel and end it from now on, until it is over. */
  enter(register: SessionRegister, control: Pick<SessionControl, 'cancel' | 'end'>): void {
    const open = openSession(this, control);
    this.#leave = register.add(open);
    // Its token may have been revoked since it was looked at.
    open.endIfOver();
  }

  /** Whose it is, as `ownerOf` says it. */
  owner(): string {
    const { caller } = this.#parts;
    return ownerOf(caller.identity, caller.user);
  }

  /** As its client knows it; 0 before. */
  pid(): number {
    return this.#parts.processId();
  }

  /** As its own caller sees it; null before its client knows its process id. */
  seen(): CatalogSession | null {
    const { activity, settings, state } = this.#parts;
    const pid = this.pid();
    if (pid === 0) return null;
    const doing = activity.seen(state.block.status, this.#fast?.isAsking === true);
    return {
      pid,
      application_name: settings.show('application_name').value,
      backend_start: activity.begunAt,
      xact_start: doing.transactionAt,
      query_start: doing.queryAt,
      state_change: doing.changedAt,
      state: doing.state,
      query: doing.query,
    };
  }

  /** As who runs the server is told of it; null before its client knows its process id. */
  told(): ToldSession | null {
    const seen = this.seen();
    const { caller } = this.#parts;
    if (seen === null) return null;
    const { chain, tokenId: token_id } = caller.identity;
    return { ...seen, user: caller.user, chain, token_id, objects: this.#fast?.asks ?? null };
  }

  get parameters(): ReadonlyMap<string, string> {
    return this.#parts.settings.reported();
  }

  endSeries(): Awaitable<SeriesEnd> {
    const { records, settings, state, activity } = this.#parts;
    state.several = false;
    activity.rests(state.inBlock);
    const recording = records.unrun.record();
    const end = (): SeriesEnd => ({
      status: state.block.status,
      changes: settings.settle(state.inBlock),
      idleLimit: idleLimit(this.#parts),
    });
    return recording === undefined ? end() : recording.then(end);
  }

  split(text: string): Awaitable<readonly SimpleStatement[]> {
    const { state, activity } = this.#parts;
    activity.asks(text);
    const count = (statements: readonly SimpleStatement[]) => {
      state.several = statements.length > 1;
      return statements;
    };
    const statements = splitQuery(this.#parts, text);
    return statements instanceof Promise ? statements.then(count) : count(statements);
  }

  prepare(text: string, parameterTypes: readonly number[]): Promise<WireStatement | null> {
    this.#parts.activity.asks(text);
    const recording = this.#parts.records.unrun.record();
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
    this.#leave();
    this.#ended();
    return endSession(this.#parts);
  }
}

const IDLE = ['idle_session_timeout', '57P05', 'idle-session'] as const;
const IDLE_IN_BLOCK = ['idle_in_transaction_session_timeout', '25P03', 'idle-in-transaction'] as const;

/** How long the session lets its client say nothing, by its own settings; null: for ever. */
function idleLimit({ settings, state }: SessionParts): IdleLimit | null {
  const [setting, sqlstate, condition] = state.inBlock ? IDLE_IN_BLOCK : IDLE;
  const ms = settings.milliseconds(setting);
  if (ms === 0) return null;
  return { ms, reason: fatal(sqlstate, `terminating connection due to ${condition} timeout`) };
}

/** After Terminate, a lost client or a stop of the server: stops what runs, gives back what is held, records the rest. */
async function endSession({ running, state, cursors, records }: SessionParts): Promise<void> {
  running.cancel();
  state.isolation.end();
  await cursors.closeAll();
  await records.unrun.record();
}
