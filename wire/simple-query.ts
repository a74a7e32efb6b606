import { error, WireError } from './errors.js';
import type { FetchResult, Portal, SessionHandler, SimpleStatement } from './handler.js';
import {
  commandComplete,
  copyDone,
  copyOutResponse,
  decodeQuery,
  emptyQueryResponse,
  noticeResponse,
  rowDescription,
} from './messages/results.js';
import { parameterStatus } from './messages/startup.js';
import type { SocketWriter } from './output.js';
import { type ResultShape, recodeRows } from './recode.js';

/** Sends everything between RowDescription and CommandComplete. COPY always fetches all rows. */
export async function runPortal(
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
 * error. `requireAlive` is called before each statement but the first and throws if the session must end.
 */
export async function simpleQuery(
  body: Buffer,
  handler: SessionHandler,
  output: SocketWriter,
  requireAlive: () => void,
): Promise<void> {
  const text = decodeQuery(body);
  const split = handler.split(text);
  const statements = split instanceof Promise ? await split : split;
  if (statements.length === 0) emptyQueryResponse(output.messages);
  for (const [i, statement] of statements.entries()) {
    if (i > 0) requireAlive();
    try {
      await answer(statement.text, handler, output);
    } catch (cause) {
      throw cause instanceof WireError ? cause.shifted(charactersBefore(statement, text)) : cause;
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

/** The number of Unicode code points, the unit of error positions. */
function charactersBefore(statement: SimpleStatement, text: string): number {
  let characters = 0;
  for (const _ of text.slice(0, statement.start)) characters++;
  return characters;
}
