import { randomUUID } from 'node:crypto';
import { parse, QueryError, queryError, queryWithin, splitStatements } from 'osl-compiler';
import { type Identity, isExpired } from '../../policy/index.js';
import {
  type Awaitable,
  error,
  fatal,
  type SessionControl,
  type SessionHandler,
  type SimpleStatement,
  type Statement,
  type TransactionStatus,
  WireError,
} from '../../wire/index.js';
import type { Catalogs } from '../catalog/index.js';
import type { Service } from '../service.js';
import { type Answer, ask, type Delivery, prepare, type Question } from '../spine/index.js';
import type { Body, Call } from '../spine/question.js';
import { engineOf } from '../spine/runtime/index.js';
import {
  type AccountSession,
  accountNow,
  refusedCommand,
  renewed,
  rightsNow,
  sessionCommand,
} from '../spine/session.js';
import { type CatalogSession, catalogStatement } from './catalog-statement.js';
import { type Command, commandOf } from './command.js';
import { type CommandResult, commandStatement } from './command-statement.js';
import { copyOptions, questionOf } from './copy-options.js';
import { copyStatement } from './copy-statement.js';
import { Cursors } from './cursor.js';
import { cursorCommandOf, cursorStatement } from './cursor-statement.js';
import { dataStatement, type Run } from './data-statement.js';
import { Isolation } from './isolation.js';
import { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';
import { withKnownZones } from './time-zone.js';
import { wireError } from './wire-error.js';

/** Texts that can only be questions need no look at their syntax tree before they are compiled. */
const QUESTION = /^\s*(?:select|with|values)\b/i;

/** Whose session it is. `account`: the service account that proved its password, null where a token came. */
export interface SessionOwner {
  readonly identity: Identity;
  readonly account: AccountSession | null;
}

/** One authenticated session of the wire: questions go to the spine, commands are answered here. */
export class PgSession implements SessionHandler {
  readonly #service: Service;
  #identity: Identity;
  #account: AccountSession | null;
  readonly #settings: SessionSettings;
  readonly #catalogs: Catalogs | null;
  readonly #state: SessionState;
  readonly #cursors = new Cursors();
  /** Errors whose refusal the spine has recorded. */
  readonly #recorded = new WeakSet<WireError>();
  /** A simple query of several statements is a transaction, if not a block. */
  #several = false;
  #running: AbortController | null = null;
  /** A controller that nothing has aborted serves statement after statement. */
  #spare: AbortController | null = null;

  /** Without `catalogs`, questions about the catalog are questions like any other, and refused. */
  constructor(
    service: Service,
    { identity, account }: SessionOwner,
    settings: SessionSettings,
    control: SessionControl,
    catalogs: Catalogs | null,
  ) {
    this.#service = service;
    this.#identity = identity;
    this.#account = account;
    this.#settings = settings;
    this.#state = new SessionState(settings, new Isolation(service, settings), control);
    this.#catalogs = catalogs;
  }

  get parameters(): ReadonlyMap<string, string> {
    return this.#settings.reported();
  }

  get transactionStatus(): TransactionStatus {
    return this.#state.block.status;
  }

  ready(): readonly (readonly [name: string, value: string])[] {
    this.#several = false;
    return this.#settings.settle(this.#state.block.status !== 'I');
  }

  split(text: string): readonly SimpleStatement[] {
    const statements = this.#split(text);
    this.#several = statements.length > 1;
    return statements;
  }

  #split(text: string): readonly SimpleStatement[] {
    const last = text.trimEnd();
    const only = text.indexOf(';');
    if (only < 0 || only === last.length - 1) {
      const start = only < 0 ? last : last.slice(0, -1);
      return start.trim() === '' ? [] : [{ text: start, start: 0 }];
    }
    try {
      return splitStatements(text).map((s) => ({ text: s.text, start: s.offset }));
    } catch (failure) {
      // As one question it meets the same fault, and the refusal is recorded.
      if (failure instanceof QueryError) return [{ text, start: 0 }];
      throw failure;
    }
  }

  prepare(text: string, parameterTypes: readonly number[]): Awaitable<Statement | null> {
    if (QUESTION.test(text)) {
      this.#state.block.requireUsable();
      return this.#question(text, parameterTypes);
    }
    return this.#prepareOther(text, parameterTypes);
  }

  /** Of a text that is no question at first sight. */
  async #prepareOther(text: string, parameterTypes: readonly number[]): Promise<Statement | null> {
    if (text.trim() === '') return null;
    const node = nodeOf(text);
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
          admit: () => {
            this.#state.block.requireUsable();
            return this.#admit();
          },
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

  cursorColumns(name: string): ReturnType<Cursors['described']> {
    return this.#cursors.described(name);
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
    this.#running?.abort();
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
    this.#running?.abort();
    this.#state.isolation.end();
    await this.#cursors.closeAll();
  }

  #question(text: string, parameterTypes: readonly number[]): Promise<Statement> {
    const catalogs = this.#catalogs;
    if (catalogs === null) return this.#data(text, parameterTypes);
    const lane = catalogs.laneOf(text);
    if (lane.kind === 'data') return this.#data(text, parameterTypes);
    return catalogStatement(this.#catalogSession(catalogs), lane, text, parameterTypes);
  }

  #call(requestId: string): Call {
    return { requestId, surface: 'wire', credentials: { kind: 'session', identity: this.#identity } };
  }

  #catalogSession(catalogs: Catalogs): CatalogSession {
    return {
      service: this.#service,
      catalogs,
      identity: () => this.#identity,
      settings: () => this.#settings.all(),
      rights: () => rightsNow(this.#service, this.#identity),
      requireUsable: () => this.#state.block.requireUsable(),
      translated: <T>(requestId: string, said: string, run: () => Promise<T>) =>
        this.#translated(requestId, said, run),
      cancellable: <T>(run: (signal: AbortSignal) => Promise<T>) => this.#cancellable(run),
    };
  }

  async #data(text: string, parameterOids: readonly number[]): Promise<Statement> {
    const body: Body = { kind: 'wire', text };
    const first: Question = { ...this.#call(randomUUID()), body, parameterOids };
    const prepared = await this.#translated(first.requestId, text, () => prepare(this.#service, first));
    const { plan } = prepared;
    // Preparing leaves a record only where it is refused, so the first run may have its id.
    let unused: string | null = first.requestId;
    const run: Run = {
      ask: (delivery) => {
        const call = this.#call(unused ?? randomUUID());
        unused = null;
        const question: Question = { ...call, body, parameterOids, prepared };
        return this.#translated(call.requestId, text, () =>
          ask(this.#service, question, this.#withSettings(delivery)).then(whole),
        );
      },
      cancellable: (work) => {
        this.#state.block.requireUsable();
        return this.#cancellable(work);
      },
      while: (stop, work) => {
        this.#state.block.requireUsable();
        return this.#while(stop, work);
      },
      rights: () => rightsNow(this.#service, this.#identity),
    };
    // What has the one session of a block must not hold it up for its client, who may ask for more meanwhile.
    const mayPause = (): boolean => this.#state.isolation.snapshots(this.#state.inBlock) === null && native;
    const native = engineOf(this.#service, plan).kind === 'postgres';
    return dataStatement(plan, run, mayPause);
  }

  #withSettings(delivery: Delivery): Delivery {
    const settings = this.#settings.output();
    const snapshots = this.#state.isolation.snapshots(this.#state.inBlock);
    if (snapshots !== null) return { ...delivery, settings, snapshots };
    return settings.length === 0 ? delivery : { ...delivery, settings };
  }

  /** Counts and records a statement that the gateway answers itself. */
  async #admit(): Promise<void> {
    const requestId = randomUUID();
    await this.#translated(requestId, '', () => sessionCommand(this.#service, this.#call(requestId)));
  }

  async #cancellable<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = this.#spare ?? new AbortController();
    this.#spare = null;
    this.#running = controller;
    try {
      return await run(controller.signal);
    } finally {
      this.#running = null;
      if (!controller.signal.aborted) this.#spare = controller;
    }
  }

  async #while<T>(stop: AbortController, work: () => Promise<T>): Promise<T> {
    this.#running = stop;
    try {
      return await work();
    } finally {
      this.#running = null;
    }
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
    return commandStatement(columns, async () => {
      if (!EVEN_WHEN_FAILED.has(command.kind)) this.#state.block.requireUsable();
      const token = tokenIn(command);
      if (token !== null) return this.#renew(token);
      const result = this.#state.run(await withKnownZones(this.#service, command), this.#several);
      if (command.kind === 'commit' || command.kind === 'rollback')
        await this.#cursors.endBlock(result.tag !== 'ROLLBACK');
      if (command.kind === 'discard' && command.what === 'all') await this.#cursors.closeAll();
      await this.#admit();
      return result;
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

/** The statement of the text; null for a question, `empty` where it holds none. */
function nodeOf(text: string): ReturnType<typeof parse>['node'] | 'empty' | null {
  try {
    return parse(text).node;
  } catch (failure) {
    if (failure instanceof QueryError && failure.entry === 'noStatement') return 'empty';
    // The spine meets the same fault again, and records the refusal.
    if (failure instanceof QueryError) return null;
    throw failure;
  }
}
