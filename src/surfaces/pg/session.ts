import { randomUUID } from 'node:crypto';
import {
  oneStatement,
  type Parsed,
  type ParsedText,
  parseText,
  QueryError,
  queryError,
  queryWithin,
  statementTexts,
} from 'osl-compiler';
import { type Identity, isExpired } from '../../../policy/index.js';
import {
  type Awaitable,
  error,
  fatal,
  type NamedPortal,
  type Resting,
  type SessionControl,
  type SessionHandler,
  type SimpleStatement,
  type Statement,
  type TransactionStatus,
  WireError,
  type WireNotice,
} from '../../../wire/index.js';
import { type Answer, ask, type Delivery, prepare, type Question } from '../../ask/index.js';
import { isShort } from '../../ask/parsing/index.js';
import type { Body, Call } from '../../ask/question.js';
import { engineOf } from '../../ask/runtime/index.js';
import {
  type AccountSession,
  accountNow,
  refusedCommand,
  renewed,
  rightsNow,
  sessionCommand,
} from '../../ask/session.js';
import type { Snapshots } from '../../ask/snapshots.js';
import type { Service } from '../../service/service.js';
import type { CatalogSettings, Catalogs, Lane, SettingChange } from '../catalog/index.js';
import { catalogSettings } from './catalog-settings.js';
import { type CatalogSession, catalogStatement } from './catalog-statement.js';
import { type Command, commandOf } from './command.js';
import { type CommandResult, commandStatement } from './command-statement.js';
import { copyOptions, questionOf } from './copy-options.js';
import { copyStatement } from './copy-statement.js';
import { Cursors } from './cursor.js';
import { cursorCommandOf, cursorStatement } from './cursor-statement.js';
import { dataStatement, type Run } from './data-statement.js';
import { Isolation } from './isolation.js';
import { audible } from './notices.js';
import { Running } from './running.js';
import { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';
import { withKnownZones } from './time-zone.js';
import { type Prepared, Unrun } from './unrun.js';
import { wireError } from './wire-error.js';

/** Texts that can only be questions need no look at their syntax tree before they are compiled. */
const QUESTION = /^\s*(?:select|with|values)\b/i;

/** Whose session it is. `account`: the service account that proved its password, null where a token came. */
export interface SessionOwner {
  readonly identity: Identity;
  readonly account: AccountSession | null;
  /** Called when the session is over. */
  readonly ended: () => void;
}

/** One authenticated session of the wire: questions go to the spine, commands are answered here. */
export class PgSession implements SessionHandler {
  readonly #service: Service;
  #identity: Identity;
  #account: AccountSession | null;
  readonly #ended: () => void;
  readonly #settings: SessionSettings;
  readonly #catalogs: Catalogs | null;
  readonly #state: SessionState;
  readonly #cursors: Cursors;
  /** Errors whose refusal the spine has recorded. */
  readonly #recorded = new WeakSet<WireError>();
  /** A simple query of several statements is a transaction, if not a block. */
  #several = false;
  readonly #running: Running;
  readonly #unrun = new Unrun();
  readonly #catalogSettings: () => CatalogSettings;

  /** Without `catalogs`, questions about the catalog are questions like any other, and refused. */
  constructor(
    service: Service,
    { identity, account, ended }: SessionOwner,
    settings: SessionSettings,
    control: SessionControl,
    catalogs: Catalogs | null,
  ) {
    this.#service = service;
    this.#identity = identity;
    this.#account = account;
    this.#ended = ended;
    this.#settings = settings;
    this.#state = new SessionState(settings, new Isolation(service, settings), control);
    this.#catalogs = catalogs;
    this.#cursors = new Cursors(control, () => rightsNow(this.#service, this.#identity));
    this.#running = new Running(() => settings.milliseconds('statement_timeout'));
    this.#catalogSettings = catalogSettings(settings, () => control.processId);
  }

  get parameters(): ReadonlyMap<string, string> {
    return this.#settings.reported();
  }

  get transactionStatus(): TransactionStatus {
    return this.#state.block.status;
  }

  ready(): Awaitable<readonly (readonly [name: string, value: string])[]> {
    this.#several = false;
    const recorded = this.#unrun.settle();
    const settle = () => this.#settings.settle(this.#state.inBlock);
    return recorded === undefined ? settle() : recorded.then(settle);
  }

  resting(): Resting | null {
    const [setting, sqlstate, state] = this.#state.inBlock ? IDLE_IN_BLOCK : IDLE;
    const ms = this.#settings.milliseconds(setting);
    if (ms === 0) return null;
    return { ms, reason: fatal(sqlstate, `terminating connection due to ${state} timeout`) };
  }

  split(text: string): Awaitable<readonly SimpleStatement[]> {
    const last = text.trimEnd();
    const only = text.indexOf(';');
    if (only < 0 || only === last.length - 1) {
      this.#several = false;
      const start = only < 0 ? last : last.slice(0, -1);
      return start.trim() === '' ? [] : [{ text: start, start: 0 }];
    }
    if (!isShort(text)) return this.#splitLong(text);
    return this.#statementsIn(text, () => parseText(text));
  }

  async #splitLong(text: string): Promise<readonly SimpleStatement[]> {
    try {
      const parsed = await this.#parsed(text);
      return this.#statementsIn(text, () => parsed);
    } catch (failure) {
      return this.#unsplit(text, failure);
    }
  }

  #statementsIn(text: string, parse: () => ParsedText): readonly SimpleStatement[] {
    try {
      const statements = statementTexts(parse()).map((s) => ({ text: s.text, start: s.offset }));
      this.#several = statements.length > 1;
      return statements;
    } catch (failure) {
      return this.#unsplit(text, failure);
    }
  }

  /** As one question the text meets the same fault, and the refusal is recorded. */
  #unsplit(text: string, failure: unknown): readonly SimpleStatement[] {
    this.#several = false;
    if (failure instanceof QueryError) return [{ text, start: 0 }];
    throw failure;
  }

  prepare(text: string, parameterTypes: readonly number[]): Awaitable<Statement | null> {
    const recorded = this.#unrun.settle();
    if (recorded !== undefined) return recorded.then(() => this.#prepare(text, parameterTypes));
    return this.#prepare(text, parameterTypes);
  }

  #prepare(text: string, parameterTypes: readonly number[]): Promise<Statement | null> {
    if (!QUESTION.test(text)) return this.#prepareOther(text, parameterTypes);
    this.#state.block.requireUsable();
    return this.#question(text, parameterTypes);
  }

  /** Of a text that is no question at first sight. */
  async #prepareOther(text: string, parameterTypes: readonly number[]): Promise<Statement | null> {
    if (text.trim() === '') return null;
    const node = await this.#nodeOf(text);
    if (node === 'empty') return null;
    const command = node === null ? null : commandOf(node);
    if (command !== null) return this.#command(command);
    this.#state.block.requireUsable();
    const cursor = node === null ? null : cursorCommandOf(node);
    if (cursor !== null)
      return cursorStatement(
        {
          cursors: this.#cursors,
          inBlock: () => this.#state.block.status === 'T',
          requireUsable: () => this.#state.block.requireUsable(),
          admit: () => this.#admit(),
          declares: () => this.#unrun.settle() ?? this.#admit(),
          question: () => this.#question(queryWithin(text) ?? text, parameterTypes),
        },
        cursor,
      );
    if (node !== null && 'CopyStmt' in node) {
      const options = copyOptions(node.CopyStmt);
      const question = questionOf(node.CopyStmt) ?? queryWithin(text) ?? text;
      return copyStatement(await this.#question(question, []), options);
    }
    return this.#question(text, parameterTypes);
  }

  cursor(name: string): NamedPortal | undefined {
    return this.#cursors.named(name, {
      requireUsable: () => this.#state.block.requireUsable(),
      admit: () => this.#admit(),
    });
  }

  /** What the spine did not refuse, the surface or the protocol did: it is recorded here. */
  failed(failure: WireError): void {
    this.#state.fail();
    if (this.#recorded.has(failure)) return;
    const call = this.#call(randomUUID());
    refusedCommand(this.#service, call, failure.sqlstate).catch((cause: unknown) => {
      this.#service.log.warn('a refusal was not recorded', {
        request_id: call.requestId,
        cause: String(cause),
      });
    });
  }

  cancel(): void {
    this.#running.cancel();
  }

  expiry(): WireError | null {
    const gone = this.#account === null ? null : this.#accountAgain(this.#account);
    if (gone !== null || !isExpired(this.#identity, Date.now())) return gone;
    return fatal('28000', 'the token of this session has expired', {
      hint: 'connect again with a new token',
    });
  }

  /** A service account goes on while the policy knows it; what it may see is looked at for every question. */
  #accountAgain(held: AccountSession): WireError | null {
    const now = accountNow(this.#service, held.account.login, held);
    if (now === null) return fatal('28000', 'the service account of this session has changed');
    if (now !== held) this.#identity = now.identity;
    this.#account = now;
    return null;
  }

  async close(): Promise<void> {
    this.#ended();
    this.#running.cancel();
    this.#state.isolation.end();
    await this.#cursors.closeAll();
    await this.#unrun.settle();
  }

  #question(text: string, parameterTypes: readonly number[]): Promise<Statement> {
    const catalogs = this.#catalogs;
    if (catalogs === null) return this.#data(text, parameterTypes);
    const lane = catalogs.laneOf(text, (long) => this.#service.parsing.parse(long, this.#identity.subject));
    return lane instanceof Promise
      ? lane.then((judged) => this.#inLane(catalogs, judged, text, parameterTypes))
      : this.#inLane(catalogs, lane, text, parameterTypes);
  }

  #inLane(
    catalogs: Catalogs,
    lane: Lane,
    text: string,
    parameterTypes: readonly number[],
  ): Promise<Statement> {
    if (lane.kind === 'data') return this.#data(text, parameterTypes);
    return catalogStatement(this.#catalogSession(catalogs), lane, text, parameterTypes);
  }

  /** A long text is parsed in another thread. @throws QueryError E0511 */
  #parsed(text: string): ParsedText | Promise<ParsedText> {
    return isShort(text) ? parseText(text) : this.#service.parsing.parse(text, this.#identity.subject);
  }

  /** The statement of the text; null for a question, `empty` where it holds none. */
  async #nodeOf(text: string): Promise<Parsed['node'] | 'empty' | null> {
    try {
      const parsed = await this.#parsed(text);
      return oneStatement(parsed).node;
    } catch (failure) {
      if (failure instanceof QueryError && failure.entry === 'noStatement') return 'empty';
      // The spine meets the same fault again, and records the refusal.
      if (failure instanceof QueryError) return null;
      throw failure;
    }
  }

  #call(requestId: string): Call {
    return { requestId, surface: 'wire', credentials: { kind: 'session', identity: this.#identity } };
  }

  #catalogSession(catalogs: Catalogs): CatalogSession {
    return {
      service: this.#service,
      catalogs,
      unrun: this.#unrun,
      identity: () => this.#identity,
      user: () => this.#account?.account.login ?? this.#identity.subject,
      settings: this.#catalogSettings,
      change: (changes) => this.#change(changes),
      rights: () => rightsNow(this.#service, this.#identity),
      requireUsable: () => this.#state.block.requireUsable(),
      translated: <T>(requestId: string, said: string, run: () => Promise<T>) =>
        this.#translated(requestId, said, run),
      cancellable: <T>(run: (signal: AbortSignal) => Promise<T>) => this.#running.cancellable(run),
      audible: (notices) => this.#audible(notices),
    };
  }

  /** What `set_config` asked for, as by SET. @throws WireError */
  async #change(changes: readonly SettingChange[]): Promise<void> {
    for (const { name, value, local } of changes) {
      const assignments = [{ name, value }];
      const set: Command = { kind: 'set', assignments, local: local ? 'SET LOCAL' : null };
      if (name.toLowerCase() === TOKEN) throw error('42501', `parameter "${name}" is for SET only`);
      this.#state.run(await withKnownZones(this.#service, set), true);
    }
  }

  async #data(text: string, parameterOids: readonly number[]): Promise<Statement> {
    const body: Body = { kind: 'wire', text };
    const first: Question = { ...this.#call(randomUUID()), body, parameterOids };
    const prepared = await this.#translated(first.requestId, text, () => prepare(this.#service, first));
    const { plan } = prepared;
    const unrun = this.#holds(first.requestId, () => prepared.record());
    const run: Run = {
      ask: (delivery) => {
        const call = this.#unrun.runs(unrun) ? first : this.#call(randomUUID());
        const question: Question = { ...call, body, parameterOids, prepared };
        return this.#translated(call.requestId, text, () =>
          ask(this.#service, question, this.#withSettings(delivery)).then(whole),
        );
      },
      cancellable: (work) => {
        this.#state.block.requireUsable();
        return this.#running.cancellable(work);
      },
      while: (stop, work) => {
        this.#state.block.requireUsable();
        return this.#running.while(stop, work);
      },
      rights: () => rightsNow(this.#service, this.#identity),
      audible: (notices) => this.#audible(notices),
    };
    // What has the one session of a block must not hold it up for its client, who may ask for more meanwhile.
    const mayPause = (): boolean => this.#snapshots() === null && native;
    const native = engineOf(this.#service, plan).kind === 'postgres';
    return dataStatement(plan, run, mayPause);
  }

  /** Until it runs, a statement that was prepared is one that `record` has still to put on record. */
  #holds(requestId: string, record: () => Promise<void>): Prepared {
    const prepared = { record: () => this.#translated(requestId, '', record) };
    this.#unrun.hold(prepared);
    return prepared;
  }

  #audible(notices: readonly WireNotice[]): readonly WireNotice[] {
    return notices.length === 0
      ? notices
      : audible(notices, this.#settings.show('client_min_messages').value);
  }

  #withSettings(delivery: Delivery): Delivery {
    const settings = this.#settings.output();
    const snapshots = this.#snapshots();
    if (snapshots !== null) return { ...delivery, settings, snapshots };
    return settings.length === 0 ? delivery : { ...delivery, settings };
  }

  #snapshots(): Snapshots | null {
    return this.#state.isolation.snapshots(this.#state.inBlock, this.#identity.subject);
  }

  /** Counts and records a statement that the gateway answers itself. */
  async #admit(): Promise<void> {
    const requestId = randomUUID();
    await this.#translated(requestId, '', () => sessionCommand(this.#service, this.#call(requestId)));
  }

  /** Everything that the spine throws, as the protocol says it. */
  #translated<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T> {
    return run().catch((failure: unknown) => {
      const told = wireError(failure, requestId, text);
      if (told instanceof WireError) this.#recorded.add(told);
      throw told;
    });
  }

  #command(command: Command): Statement {
    const columns = command.kind === 'show' ? this.#state.shownColumns(command.name) : null;
    const requestId = randomUUID();
    const unrun = this.#holds(requestId, () =>
      sessionCommand(this.#service, this.#call(requestId), 'prepare'),
    );
    return commandStatement(columns, async () => {
      this.#unrun.runs(unrun);
      if (!EVEN_WHEN_FAILED.has(command.kind)) this.#state.block.requireUsable();
      const token = tokenIn(command);
      if (token !== null) return this.#renew(token);
      const result = this.#state.run(await withKnownZones(this.#service, command), this.#several);
      if (command.kind === 'commit' || command.kind === 'rollback')
        await this.#cursors.endBlock(result.tag !== 'ROLLBACK');
      if (command.kind === 'discard' && command.what === 'all') await this.#cursors.closeAll();
      await this.#admit();
      return { ...result, notices: this.#audible(result.notices ?? []) };
    });
  }

  /** `SET osl.token`: the same caller goes on under a newer token. The token is neither shown nor logged. */
  async #renew(token: string): Promise<CommandResult> {
    const requestId = randomUUID();
    const run = () => renewed(this.#service, this.#call(requestId), this.#identity, token);
    this.#identity = await this.#translated(requestId, '', run);
    return { tag: 'SET' };
  }
}

/** A clipped answer is an error here: the protocol has no way to say that rows are missing. */
function whole(answer: Answer): Answer {
  if (answer.truncated) throw queryError('rowCap', { limit: answer.rows });
  return answer;
}

const EVEN_WHEN_FAILED: ReadonlySet<Command['kind']> = new Set(['commit', 'rollback', 'rollback to']);

/** The token that `SET osl.token = '…'` names, or null for any other command. @throws WireError */
function tokenIn(command: Command): string | null {
  const named = command.kind === 'set' && command.assignments.find((a) => a.name === TOKEN);
  if (!named) return null;
  if (named.value === null) throw error('22023', `parameter "${TOKEN}" takes a token`);
  return named.value;
}

const TOKEN = 'osl.token';

const IDLE = ['idle_session_timeout', '57P05', 'idle-session'] as const;
const IDLE_IN_BLOCK = ['idle_in_transaction_session_timeout', '25P03', 'idle-in-transaction'] as const;
