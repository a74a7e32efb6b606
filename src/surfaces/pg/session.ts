import type { Identity } from '../../../policy/index.js';
import type {
  Awaitable,
  NamedPortal,
  SeriesEnd,
  SessionControl,
  SessionHandler,
  SimpleStatement,
  WireError,
  WireStatement,
} from '../../../wire/index.js';
import type { AnswerParts } from '../../ask/index.js';
import type { AccountSession } from '../../ask/request/session.js';
import type { Catalogs } from '../catalog/index.js';
import { Cursors } from './cursor.js';
import { Isolation } from './isolation.js';
import { prepareStatement } from './prepare-statement.js';
import { splitQuery } from './query-message.js';
import { Running } from './running.js';
import { SessionCaller } from './session-caller.js';
import { endSession, idleLimit } from './session-end.js';
import type { SessionParts } from './session-parts.js';
import { SessionRecords } from './session-records.js';
import { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** Whose session it is. `account`: the service account that proved its password, null where a token came. */
export interface SessionOwner {
  readonly identity: Identity;
  readonly account: AccountSession | null;
  /** Called when the session is over. */
  readonly ended: () => void;
}

/** One authenticated session of the wire: what each of its messages asks for is done in the file that it names. */
export class PgSession implements SessionHandler {
  readonly #parts: SessionParts;
  readonly #ended: () => void;

  constructor(
    service: AnswerParts,
    { identity, account, ended }: SessionOwner,
    settings: SessionSettings,
    control: SessionControl,
    catalogs: Catalogs | null,
  ) {
    const caller = new SessionCaller(service, identity, account);
    this.#ended = ended;
    this.#parts = {
      service,
      caller,
      records: new SessionRecords(service, caller),
      settings,
      state: new SessionState(settings, new Isolation(service, settings), control),
      cursors: new Cursors(control, () => caller.rights),
      running: new Running(() => settings.milliseconds('statement_timeout')),
      catalogs,
      processId: () => control.processId,
    };
  }

  get parameters(): ReadonlyMap<string, string> {
    return this.#parts.settings.reported();
  }

  endSeries(): Awaitable<SeriesEnd> {
    const { records, settings, state } = this.#parts;
    state.several = false;
    const recording = records.unrun.record();
    const end = (): SeriesEnd => ({
      status: state.block.status,
      changes: settings.settle(state.inBlock),
      idleLimit: idleLimit(this.#parts),
    });
    return recording === undefined ? end() : recording.then(end);
  }

  split(text: string): Awaitable<readonly SimpleStatement[]> {
    const { state } = this.#parts;
    const count = (statements: readonly SimpleStatement[]) => {
      state.several = statements.length > 1;
      return statements;
    };
    const statements = splitQuery(this.#parts, text);
    return statements instanceof Promise ? statements.then(count) : count(statements);
  }

  prepare(text: string, parameterTypes: readonly number[]): Promise<WireStatement | null> {
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

  close(): Promise<void> {
    this.#ended();
    return endSession(this.#parts);
  }
}
