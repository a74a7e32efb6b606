import { error, WireError } from './errors.js';
import type {
  Awaitable,
  FetchResult,
  NamedPortal,
  Portal,
  SessionHandler,
  SimpleStatement,
} from './handler.js';
import type { MessageWriter } from './message-fields.js';
import * as messages from './messages/extended.js';
import {
  commandComplete,
  copyDone,
  copyOutResponse,
  decodeQuery,
  emptyQueryResponse,
  noData,
  noticeResponse,
  portalSuspended,
  rowDescription,
} from './messages/results.js';
import { parameterStatus } from './messages/startup.js';
import type { SocketWriter } from './output.js';
import {
  cannotRun,
  fitBind,
  type NamedStatement,
  type NamedStatements,
  type OpenPortal,
  type Portals,
} from './prepared.js';
import { type ResultShape, recodeRows } from './recode.js';

/** Sends everything between RowDescription and CommandComplete. COPY always fetches all rows. */
async function runPortal(
  shape: ResultShape,
  fetch: Portal['fetch'],
  maxRows: number,
  output: SocketWriter,
): Promise<FetchResult> {
  const out = output.messages;
  const { copy } = shape;
  const rows = out.encoding === null ? output : recodeRows(output, shape, out.encoding);
  if (copy !== null) copyOutResponse(out, copy);
  const result = await fetch(copy === null ? maxRows : 0, rows);
  if (copy !== null) copyDone(out);
  for (const notice of result.notices ?? []) noticeResponse(out, notice);
  for (const [name, value] of result.parameterChanges ?? []) parameterStatus(out, name, value);
  return result;
}

/**
 * Answers a Query, except for ReadyForQuery: runs its statements in order, with text results, and stops at the first
 * error. `requireNotEnded` is called before each statement but the first and throws if the session must end.
 */
export async function simpleQuery(
  body: Buffer,
  handler: SessionHandler,
  output: SocketWriter,
  requireNotEnded: () => void,
): Promise<void> {
  const text = decodeQuery(body);
  const split = handler.split(text);
  const statements = split instanceof Promise ? await split : split;
  if (statements.length === 0) emptyQueryResponse(output.messages);
  for (const [i, statement] of statements.entries()) {
    if (i > 0) requireNotEnded();
    try {
      await answer(statement.text, handler, output);
    } catch (cause) {
      throw cause instanceof WireError ? cause.withShiftedPosition(charactersBefore(statement, text)) : cause;
    }
  }
}

async function answer(text: string, handler: SessionHandler, output: SocketWriter): Promise<void> {
  const out = output.messages;
  const statement = await handler.prepare(text, []);
  if (statement === null) return emptyQueryResponse(out);
  if (statement.parameterTypes.length > 0) throw error('42P02', 'there is no parameter $1');
  const resultFormats = (statement.columns ?? []).map(() => 0 as const);
  const opening = statement.open({ parameterFormats: [], parameters: [], resultFormats });
  const portal = opening instanceof Promise ? await opening : opening;
  try {
    if (statement.columns !== null) rowDescription(out, statement.columns, resultFormats);
    const shape = { columns: statement.columns ?? [], formats: [], copy: statement.copy ?? null };
    const { tag } = await runPortal(shape, (n, rows) => portal.fetch(n, rows), 0, output);
    commandComplete(out, tag);
  } finally {
    const closing = portal.close();
    if (closing !== undefined) await closing;
  }
}

/** Returns the number of Unicode code points before a statement; this is the unit of error positions. */
function charactersBefore(statement: SimpleStatement, text: string): number {
  let characters = 0;
  for (const _ of text.slice(0, statement.start)) characters++;
  return characters;
}

/** Handles Parse, Bind, Describe, Execute and Close. Each method writes its response or throws `WireError`. */
export class ExtendedQuery {
  readonly #handler: SessionHandler;
  readonly #output: SocketWriter;
  readonly #statements: NamedStatements;
  readonly #portals: Portals;

  constructor(handler: SessionHandler, output: SocketWriter, statements: NamedStatements, portals: Portals) {
    this.#handler = handler;
    this.#output = output;
    this.#statements = statements;
    this.#portals = portals;
  }

  async parse(body: Buffer): Promise<void> {
    const { name, text, parameterTypes } = messages.decodeParse(body);
    const bytes = body.length;
    this.#statements.reserve(name, bytes);
    const statement = await this.#handler.prepare(text, parameterTypes);
    const source = name === '' ? {} : { source: { text, preparedAt: Date.now(), fromSql: false } };
    this.#statements.add(name, { statement, bytes, ...source });
    messages.parseComplete(this.#output.messages);
  }

  async bind(body: Buffer): Promise<void> {
    const message = messages.decodeBind(body);
    const named = this.#statements.prepared(message.statement);
    const { statement } = named instanceof Promise ? await named : named;
    const bind = fitBind(message, statement);
    const bytes = body.length;
    this.#portals.reserve(message.portal, bytes);
    if (this.#cursor(message.portal) !== undefined)
      throw error('42P03', `cursor "${message.portal}" already exists`);
    const portal = statement === null ? null : await statement.open(bind);
    const { resultFormats } = bind;
    const open = { statement, portal, resultFormats, bytes, finished: null, running: false };
    this.#portals.add(message.portal, open);
    messages.bindComplete(this.#output.messages);
  }

  describe(body: Buffer): Awaitable<void> {
    const { kind, name } = messages.decodeTarget(body, 'DESCRIBE');
    const out = this.#output.messages;
    if (kind === 'statement') {
      const named = this.#statements.prepared(name);
      const describeStatement = ({ statement }: NamedStatement): void => {
        messages.parameterDescription(out, statement?.parameterTypes ?? []);
        describeRows(out, statement?.columns ?? null, []);
      };
      return named instanceof Promise ? named.then(describeStatement) : describeStatement(named);
    }
    const cursor = this.#cursor(name);
    const { columns, formats } = cursor ?? this.#openPortal(name);
    describeRows(out, cursor === undefined ? columns : (columns ?? []), formats);
  }

  #openPortal(name: string): Pick<NamedPortal, 'columns' | 'formats'> {
    const { statement, resultFormats } = this.#portals.get(name);
    return { columns: statement?.columns ?? null, formats: resultFormats };
  }

  async execute(body: Buffer): Promise<void> {
    const { portal: name, maxRows } = messages.decodeExecute(body);
    const cursor = this.#cursor(name);
    if (cursor !== undefined) {
      const { columns, formats } = cursor;
      const shape = { columns: columns ?? [], formats, copy: null };
      return this.#run(shape, (n, rows) => cursor.fetch(n, rows), maxRows);
    }
    const open = this.#portals.get(name);
    const { statement } = open;
    if (statement === null) return emptyQueryResponse(this.#output.messages);
    if (open.finished !== null)
      return commandComplete(this.#output.messages, repeatedTag(open, open.finished, name));
    const { columns, copy = null } = statement;
    const shape = { columns: columns ?? [], formats: open.resultFormats, copy };
    return this.#run(shape, (n, rows) => this.#portals.fetch(name, open, n, rows), maxRows);
  }

  close(body: Buffer): Awaitable<void> {
    const { kind, name } = messages.decodeTarget(body, 'CLOSE');
    const cursor = kind === 'portal' ? this.#cursor(name) : undefined;
    if (kind === 'statement') this.#statements.delete(name);
    else if (cursor === undefined) this.#portals.drop(name);
    const closing = cursor?.close();
    const confirm = () => messages.closeComplete(this.#output.messages);
    return closing === undefined ? confirm() : closing.then(confirm);
  }

  #cursor(name: string): NamedPortal | undefined {
    return name === '' ? undefined : this.#handler.cursor?.(name);
  }

  async #run(shape: ResultShape, fetch: Portal['fetch'], maxRows: number): Promise<void> {
    const out = this.#output.messages;
    const { suspended, tag } = await runPortal(shape, fetch, maxRows, this.#output);
    if (suspended) portalSuspended(out);
    else commandComplete(out, tag);
  }
}

function describeRows(
  out: MessageWriter,
  columns: NamedPortal['columns'],
  formats: NamedPortal['formats'],
): void {
  if (columns === null) noData(out);
  else rowDescription(out, columns, formats);
}

/**
 * Returns the tag for executing a finished portal again, as in Postgres: a query returns no more rows, a command fails.
 */
function repeatedTag(open: OpenPortal, tag: string, name: string): string {
  if (open.statement?.columns === null) throw cannotRun(name);
  return tag.replace(/^(SELECT|FETCH) \d+$/, '$1 0');
}
